package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of issue 39.
const (
	takeoverLimit = 10 * time.Second // over the heartbeat
	clientLimit   = 100 * time.Millisecond
	memoryLimit   = 500 << 20
)

// verify checks the end of each task, prints the numbers, and returns all errors.
func (r *run) verify(ctx context.Context) error {
	wrong := []error{r.drain(ctx)}
	for _, check := range []func(context.Context) error{r.landed, r.left, r.agrees, r.intact, r.numbers, r.gone} {
		wrong = append(wrong, check(ctx))
	}
	for _, failed := range r.desk.failed {
		fmt.Println("a command of the person failed: coven", failed)
	}
	err := errors.Join(wrong...)
	if err == nil {
		fmt.Println("all is well")
	}
	return err
}

// drain ends the machines as a person would.
func (r *run) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var wrong []error
	for _, m := range r.fleet.there() {
		wrong = append(wrong, r.fleet.drain(ctx, m))
	}
	return errors.Join(wrong...)
}

// landed checks that each task has landed once, or not at all.
func (r *run) landed(ctx context.Context) error {
	text, err := output(ctx, r.origin.dir, os.Environ(), "git", "log", "--format=%(trailers:key=Coven-Task,valueonly,separator=%x20)", "main")
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, id := range strings.Fields(text) {
		times[id]++
	}
	text, err = output(ctx, r.origin.dir, os.Environ(), "git", "log", "--format=", "--patch", "main", "--", "t-*")
	if err != nil {
		return err
	}
	lines := map[string]int{}
	for line := range strings.Lines(text) {
		lines[strings.TrimSpace(line)]++
	}
	var wrong []error
	for _, t := range r.desk.tasks {
		want := 0
		if t.lands() {
			want = 1
		}
		if n := times[t.ID]; n != want {
			wrong = append(wrong, fmt.Errorf("%s (%s) has landed %d times", t.ID, t.Kind, n))
		}
		if n := lines["+final of coven/"+t.ID]; n != want {
			wrong = append(wrong, fmt.Errorf("the file of %s (%s) is there %d times", t.ID, t.Kind, n))
		}
		delete(times, t.ID)
	}
	if len(times) > 0 {
		wrong = append(wrong, fmt.Errorf("other tasks have landed: %v", slices.Sorted(maps.Keys(times))))
	}
	return errors.Join(wrong...)
}

// left checks that no session is left on the origin or the server.
func (r *run) left(ctx context.Context) error {
	refs, err := r.origin.refs(ctx, "refs/coven/live")
	if err == nil && len(refs) > 0 {
		err = fmt.Errorf("refs are left: %v", refs)
	}
	list, listErr := output(ctx, r.desk.dir, r.desk.env, r.o.Worker, "list", "--on", r.server.Address())
	var workflows []string
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "machine ") {
			workflows = append(workflows, line)
		}
	}
	if len(workflows) > 0 {
		listErr = errors.Join(listErr, fmt.Errorf("workflows are left: %s", workflows))
	}
	return errors.Join(err, listErr)
}

// agrees checks the sessions and the tasks of the desk.
func (r *run) agrees(ctx context.Context) error {
	views, err := r.desk.status(ctx, "--all")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.desk.dir, ".beads", "issues.jsonl"))
	if err != nil {
		return err
	}
	closed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var issue struct{ ID, Status string }
		if err := json.Unmarshal([]byte(line), &issue); err != nil {
			return err
		}
		closed[issue.ID] = issue.Status == "closed"
	}
	var wrong []error
	for _, t := range r.desk.tasks {
		if v := views[t.ID]; (v.Status == "completed") != t.lands() {
			wrong = append(wrong, fmt.Errorf("the desk says that %s (%s) is %s %s", t.ID, t.Kind, v.Status, v.Reason))
		}
		if closed[t.ID] != t.lands() {
			wrong = append(wrong, fmt.Errorf("the task %s (%s) is closed: %v", t.ID, t.Kind, closed[t.ID]))
		}
	}
	return errors.Join(wrong...)
}

// intact checks the repositories.
func (r *run) intact(ctx context.Context) error {
	var wrong []error
	for _, dir := range []string{r.origin.dir, r.desk.dir} {
		_, err := output(ctx, dir, os.Environ(), "git", "fsck", "--no-dangling", "--no-progress")
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// gone checks that no process is left but this one and its parent.
func (r *run) gone(context.Context) error {
	if err := r.close(); err != nil {
		return err
	}
	var left []string
	for _, p := range processes() {
		if p.pid != 1 && p.pid != os.Getpid() && p.state != "Z" {
			left = append(left, fmt.Sprintf("%s (%d, parent %d)", p.name, p.pid, p.parent))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("processes are left: %v", left)
	}
	return nil
}

// numbers prints the numbers, and checks those that have limits.
func (r *run) numbers(ctx context.Context) error {
	var wrong []error
	check := func(bad bool, format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if bad {
			line = "too much: " + line
		}
		fmt.Println(line)
		if bad && !r.o.Measure {
			wrong = append(wrong, errors.New(line))
		}
	}
	n := time.Duration(r.o.Tasks - r.before)
	all := r.stretches()
	kinds := map[string]int{}
	for _, f := range r.fleet.faults {
		kinds[f.kind]++
	}
	check(false, "%d tasks in %s, %d machines at once; machines: %v", r.o.Tasks, r.took.Round(time.Second), r.o.Machines, kinds)
	check(false, "%d stretches", len(all))
	if t := takeovers(all, r.fleet.faults); len(t) > 0 {
		p95 := t[len(t)*95/100].took
		for _, slow := range t {
			if slow.took > r.o.Heartbeat+takeoverLimit {
				fmt.Printf("slow takeover: %s of %s, %s at %s, after %.1f s\n", slow.task, slow.fault.machine, slow.fault.kind, slow.fault.at.Format(clock), slow.took.Seconds())
			}
		}
		check(p95 > r.o.Heartbeat+takeoverLimit, "takeovers: %d; median %.1f s, p95 %.1f s, max %.1f s", len(t), t[len(t)/2].took.Seconds(), p95.Seconds(), t[len(t)-1].took.Seconds())
	}
	used := r.fleet.used()
	check(used.worker/n > clientLimit, "processor time per task: coven-worker %d ms, machines in all %d ms, desk %d ms", (used.worker / n).Milliseconds(), (used.all / n).Milliseconds(), (r.desk.used / n).Milliseconds())
	if first, last, many := r.growth(); many {
		check(last > first*12/10, "processor time of this computer for each of the first %d tasks %d ms, for each of the last %d ms", sample, first.Milliseconds(), last.Milliseconds())
	}
	check(r.Peak > memoryLimit, "server: %d MB", r.Peak>>20)
	attempts, err := r.landings(ctx)
	check(false, "landings: %d repeated", attempts-r.landing())
	return errors.Join(append(wrong, err)...)
}

// landing returns the number of tasks that must land.
func (r *run) landing() (n int) {
	for _, t := range r.desk.tasks {
		if t.lands() {
			n++
		}
	}
	return n
}

// landings returns how often machines tried to land a task, from the archived sessions.
func (r *run) landings(ctx context.Context) (int, error) {
	archives, err := r.origin.refs(ctx, "refs/coven/archive")
	if err != nil {
		return 0, err
	}
	for _, ref := range archives {
		if strings.HasSuffix(ref, "/+joined") {
			joined, err := output(ctx, r.origin.dir, os.Environ(), "git", "rev-parse", ref+"^@")
			if err != nil {
				return 0, err
			}
			archives = append(archives, strings.Fields(joined)...)
		}
	}
	tried := map[string]bool{}
	for _, ref := range archives {
		// An archive has no session without an event, so that there is something to find.
		text, err := output(ctx, r.origin.dir, os.Environ(), "git", "grep", "-h", `"type":"land.intended"`, ref, "--", "*events.jsonl")
		if err != nil && text != "" {
			return 0, err
		}
		for line := range strings.Lines(text) {
			tried[line] = true
		}
	}
	return len(tried), nil
}
