package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coven-run/coven/distributed/server/servertest"
)

// A desk is the clone of the person who runs the tasks.
type desk struct {
	o     options
	dir   string
	env   []string
	log   *os.File
	tasks []task

	places chan struct{} // for commands of the person

	mu     sync.Mutex
	used   time.Duration   // processor time of all commands
	active map[string]bool // tasks with a command of the person
	failed []string        // commands of the person that failed, so that the person had to look again
	group  sync.WaitGroup
}

// newDesk makes the first commit of the origin and the clone of the desk.
func newDesk(ctx context.Context, o options, server *servertest.Server) (*desk, error) {
	d := &desk{o: o, dir: filepath.Join(o.Dir, "desk"), tasks: tasks(o.Tasks), places: make(chan struct{}, 16), active: map[string]bool{}}
	if err := home(d.dir); err != nil {
		return nil, err
	}
	d.env = append(environ(o.Dir, d.dir, server.Environ()...), "COVEN_WORKER_HEARTBEAT="+o.Heartbeat.String(), "PATH="+filepath.Dir(o.Worker)+":"+os.Getenv("PATH"))
	log, err := os.OpenFile(filepath.Join(o.Dir, "logs", "desk.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	d.log = log
	if o.Continue {
		d.dir = filepath.Join(d.dir, "clone")
		if err := d.hold(); err != nil {
			return nil, err
		}
		_, err := output(ctx, d.dir, d.env, o.Coven, "config", "set", "--user", "run.on", server.Address())
		return d, err
	}
	base := map[string]string{
		".coven/config.yaml": "provider: scripted-loop\nlimits: {max_wait: 1s}\nchecks: [\"test -n \\\"$(ls t-*)\\\"\"]\nrun: {remote: origin}\n",
		"README":             "the shop\n",
	}
	for name, steps := range grimoires {
		base[".coven/grimoires/"+name+".yaml"] = "name: " + name + "\nsteps:" + steps
	}
	for n := range files {
		base[fmt.Sprintf("t-%05d", n+1-files)] = "final of the base\n" // as the tasks before the first would have left
	}
	clone := filepath.Join(d.dir, "clone")
	if _, err := output(ctx, d.dir, d.env, "git", "clone", "-q", url, clone); err != nil {
		return nil, err
	}
	if err := write(clone, base); err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"git", "add", "-f", "."},
		{"git", "commit", "-qm", "base"},
		{"git", "push", "-q", "-u", "origin", "HEAD:main"},
		{o.Coven, "config", "set", "--user", "run.on", server.Address()},
	} {
		if _, err := output(ctx, clone, d.env, args...); err != nil {
			return nil, err
		}
	}
	d.dir = clone
	return d, errors.Join(
		write(clone, map[string]string{".beads/issues.jsonl": tracker(d.tasks), ".git/info/exclude": ".beads\n"}),
		os.WriteFile(filepath.Join(o.Dir, "script.yaml"), []byte(script(true)), 0o644),
	)
}

// hold keeps the tasks that the person has rejected or cancelled from beginning again.
func (d *desk) hold() error {
	file := filepath.Join(d.dir, ".beads", "issues.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var held strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"notes":"coven: rejected`) || strings.Contains(line, `"notes":"coven: cancelled`) {
			line = strings.Replace(line, `"status":"open"`, `"status":"blocked"`, 1)
		}
		held.WriteString(line)
	}
	return os.WriteFile(file, []byte(held.String()), 0o644)
}

// coven runs coven until it ends, and returns its error.
func (d *desk) coven(ctx context.Context, args ...string) error {
	begun := time.Now()
	cmd := exec.CommandContext(ctx, d.o.Coven, args...) //nolint:gosec // it is coven
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // its goroutines say why it has not ended
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used += processor(cmd)
	fmt.Fprintf(d.log, "%s coven %s: %v after %s, %s of processor time\n%s", begun.Format(clock), strings.Join(args, " "), err, time.Since(begun).Round(time.Millisecond), processor(cmd).Round(time.Millisecond), out) //nolint:errcheck // a log
	return err
}

// status returns the sessions of the desk by task.
func (d *desk) status(ctx context.Context, flags ...string) (map[string]view, error) {
	cmd := exec.CommandContext(ctx, d.o.Coven, append([]string{"status", "--json"}, flags...)...) //nolint:gosec // it is coven
	cmd.Dir, cmd.Env = d.dir, d.env
	text, err := cmd.Output()
	d.mu.Lock()
	d.used += processor(cmd)
	d.mu.Unlock()
	if len(text) == 0 {
		return nil, err
	}
	var all []view
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	tasks := map[string]view{}
	for _, v := range all {
		tasks[v.Task] = v
	}
	return tasks, nil
}

// A view is a session in coven status --json.
type view struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Reason string `json:"reason"`
	Detail string `json:"detail"`
	Next   string `json:"next"`
}

// over reports whether a session is over.
func (v view) over() bool {
	return v.Status == "completed" || v.Status == "cancelled" || v.Status == "failed" && strings.HasPrefix(v.Detail, "rejected")
}

// decide plays the person: approves, rejects and cancels open sessions.
func (d *desk) decide(ctx context.Context, running map[string]bool) error {
	views, err := d.status(ctx)
	if err != nil {
		return err
	}
	for _, t := range d.tasks {
		v, open := views[t.ID]
		switch {
		case !open, v.over():
		case t.Kind == cancelled && running[t.ID]:
			d.start(ctx, t.ID, "cancel", t.ID)
		case v.Reason == "review" && t.Kind == rejected:
			d.start(ctx, t.ID, "reject", t.ID, "--reason", "no")
		case v.Reason == "review":
			d.start(ctx, t.ID, "approve", t.ID)
		}
	}
	return nil
}

// count returns the number of tasks that are over. Once coven run has ended, it resumes the sessions that no command follows, and returns the tasks that have none.
func (d *desk) count(ctx context.Context, running map[string]bool, ended bool) (over int, unbegun []string, err error) {
	views, err := d.status(ctx, "--all")
	if err != nil {
		return 0, nil, err
	}
	for _, t := range d.tasks {
		switch v := views[t.ID]; {
		case v.over():
			over++
		case !ended, v.Reason == "review", t.Kind == cancelled && running[t.ID]:
		case v.Status != "":
			d.start(ctx, t.ID, "resume", t.ID)
		default:
			unbegun = append(unbegun, t.ID)
		}
	}
	return over, unbegun, nil
}

// run starts coven run for tasks, or all, and closes the channel when it has ended.
func (d *desk) run(ctx context.Context, tasks ...string) <-chan struct{} {
	ran := make(chan struct{})
	go func() {
		_ = d.coven(ctx, append([]string{"run", "--yes", "-j", "64"}, tasks...)...) // that of the worst session
		close(ran)
	}()
	return ran
}

// start starts a command of the person about a task, unless there is one already.
func (d *desk) start(ctx context.Context, id string, args ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active[id] {
		return
	}
	d.active[id] = true
	d.group.Go(func() {
		d.places <- struct{}{}
		err := d.coven(ctx, args...)
		<-d.places
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.active, id)
		if err != nil && ctx.Err() == nil {
			d.failed = append(d.failed, fmt.Sprintf("%s: %v", strings.Join(args, " "), err))
		}
	})
}

// processor returns the processor time of a command that has ended, with that of its children.
func processor(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// output runs a command in a directory and returns its output.
func output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // fixed commands
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w: %.500s", strings.Join(args, " "), err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
