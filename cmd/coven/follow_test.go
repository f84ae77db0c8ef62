package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// From each state in which a story leaves a session, the next command of coven why leads within five steps to a landed or
// rejected change, or to a question to the person; and no command is recommended again that has changed nothing.
func TestFollow(t *testing.T) {
	longRun(t)
	testscript.Run(t, testscript.Params{
		Files: stories(t, "script"), Cmds: scriptCommands(), RequireExplicitExec: true, RequireUniqueNames: true, Condition: condition,
		Setup: func(env *testscript.Env) error {
			if err := seal(env); err != nil {
				return err
			}
			env.Defer(func() { followAll(t, env) })
			return nil
		},
	})
}

// followAll follows the advice about all tasks with sessions below the directory of a story.
func followAll(t *testing.T, env *testscript.Env) {
	t.Helper()
	repos, err := filepath.Glob(filepath.Join(env.WorkDir, "*", ".coven", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, sessions := range repos {
		f := follower{repo: filepath.Dir(filepath.Dir(sessions)), env: env.Vars}
		var views []struct {
			Task string `json:"task"`
		}
		if out, err := f.coven("coven status --json"); err != nil || json.Unmarshal(out, &views) != nil {
			continue // the story has broken the repository or its configuration
		}
		for _, v := range views {
			if problem := f.follow(v.Task); problem != "" {
				t.Errorf("%s: %s", filepath.Base(env.WorkDir), problem)
			}
		}
	}
}

// follower follows the advice of coven in a repository.
type follower struct {
	repo string
	env  []string
}

// advice is the answer of coven why.
type advice struct{ State, Reason, Next string }

// isEnd reports whether the session is over, or waits: for a person, or for an account, a checkout or another task.
func (a advice) isEnd() bool {
	return strings.HasPrefix(a.State, "waiting (") || a.State == "cancelled" || a.State == "rejected" || !begins(a.Next, followed)
}

// followed lists the beginnings of the commands that a program can follow. The others ask a person to look, to decide or to
// change something.
var followed = []string{"coven resume ", "coven retry ", "coven run ", "coven doctor --fix "}

// begins reports whether a command begins with the words of one of the others.
func begins(command string, others []string) bool {
	return slices.ContainsFunc(others, func(begin string) bool { return strings.HasPrefix(command+" ", begin) })
}

// follow follows the advice about a task. It returns the fault of the advice, or "".
func (f follower) follow(task string) string {
	var said []string
	for range 5 {
		before, err := f.why(task)
		if err != nil || before.isEnd() { // the task may be gone
			return ""
		}
		said = append(said, fmt.Sprintf("%s: %s\n  next: %s", before.State, before.Reason, before.Next))
		out, changed, _ := f.try(before.Next) // its exit code is about the task
		after, err := f.why(task)
		switch {
		case err != nil:
			return ""
		case after == before && !changed && nextIn(out) != before.Next:
			return "" // the error asks the person for something else first, such as trust
		case after == before && !changed:
			return fmt.Sprintf("%s: %s\nchanged nothing, and is recommended again:\n%s", task, strings.Join(said, "\n"), out)
		case strings.HasPrefix(after.State, "running"):
			return "" // by another coven
		}
	}
	if last, err := f.why(task); err == nil && !last.isEnd() {
		return fmt.Sprintf("%s: after five steps the next is %s:\n%s", task, last.Next, strings.Join(said, "\n"))
	}
	return ""
}

// try runs a command that coven recommends. It reports whether the command has changed anything.
func (f follower) try(next string) (out []byte, changed bool, err error) {
	before := f.state()
	out, err = f.coven(next)
	return out, f.state() != before, err
}

// state returns the number of bytes in all journals, and the branches, tasks, settings and trust, which commands change, too.
func (f follower) state() string {
	var events int64
	files, _ := filepath.Glob(filepath.Join(f.repo, ".coven", "sessions", "*", "events.jsonl"))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			events += info.Size()
		}
	}
	rest, _ := f.coven("git for-each-ref; git config --list; coven task list; coven config list; coven trust --list")
	return fmt.Sprintf("%d\n%s", events, rest)
}

// nextIn returns the last command that an output recommends, or "".
func nextIn(out []byte) string {
	all := nexts(out)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// recommended is a line of the output with a command to run next.
var recommended = regexp.MustCompile(`(?m)^ *next: (.*)$`)

// nexts returns the commands that an output recommends.
func nexts(out []byte) (all []string) {
	for _, m := range recommended.FindAllSubmatch(out, -1) {
		all = append(all, string(m[1]))
	}
	return all
}

func (f follower) why(task string) (advice, error) {
	var a advice
	out, err := f.coven("coven why --json '" + task + "'")
	if err == nil {
		err = json.Unmarshal(out, &a)
	}
	return a, err
}

// coven runs a command line in the repository.
func (f follower) coven(line string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec </dev/null; "+line)
	cmd.Dir, cmd.Env = f.repo, f.env
	if strings.Contains(line, "--json") {
		return cmd.Output()
	}
	return cmd.CombinedOutput()
}
