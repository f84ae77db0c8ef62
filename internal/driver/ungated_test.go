package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// loose drives a shell script as an agent whose calls do not pass the gate.
type loose struct {
	script string
	gated  bool // whether it declares that its calls pass the gate
}

func (l loose) Command(_ context.Context, req provider.Request) (provider.Command, error) {
	return provider.Command{Argv: []string{"sh", "-c", l.script}, Input: []byte(req.Prompt), Once: true, Gated: l.gated}, nil
}

// Parse reads each line as an event: TYPE TEXT.
func (loose) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for line := range strings.Lines(string(lines)) {
		kind, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "started":
			events = append(events, provider.Started{Conversation: text})
		case "text":
			events = append(events, provider.Text{Text: text})
		case "call":
			events = append(events, provider.ToolCall{ID: "c1", Name: text, Input: []byte(`{"file_path":"a/b"}`)})
		case "result":
			events = append(events, provider.ToolResult{ID: "c1", Text: text})
		case "retry":
			events = append(events, provider.Retry{Reason: text})
		case "end":
			events = append(events, provider.Result{OK: true})
		}
	}
	return events, nil
}

func (loose) Message(context.Context, provider.Message) ([]byte, error) {
	return nil, fmt.Errorf("its agent CLI takes no messages while it works: %w", pluginerr.ErrUnsupported)
}

func looseWorld(t *testing.T, script string) *world {
	t.Helper()
	w := newWorld(t, "/bin/true", "")
	w.job.Provider = loose{script: script}
	return w
}

// hastened reruns the test in a process whose clock runs fast, and reports
// whether this is that process.
func hastened(t *testing.T) bool {
	t.Helper()
	if os.Getenv(clock.Env) != "" {
		return true
	}
	self, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), clock.Env+"=300")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// An ungated agent is not started without the user's permission.
func TestUngatedIsRefused(t *testing.T) {
	w := looseWorld(t, "echo no >ran")
	w.start()
	<-w.ended
	if w.err == nil || !strings.Contains(w.err.Error(), "do not pass coven's gate") {
		t.Errorf("%v", w.err)
	}
	if _, err := os.Stat(w.dir + "/ran"); err == nil {
		t.Error("it ran")
	}
}

// An agent whose calls bypass the gate is stopped. Its input ends with its task, its calls are
// recorded, and its last text counts although its result does not repeat it. It cannot receive
// messages.
func TestUngated(t *testing.T) {
	w := looseWorld(t, `task=$(cat); echo started one; echo started two; echo "call edit"; echo "result ok"
		echo "retry nobody there"; echo "text I did $task"; while ! [ -e go ]; do sleep 0.1; done; echo end`)
	w.job.Ungated = true
	w.start()
	w.say("", "be quick")
	w.eventually(func() bool { return len(emitted[event.Text](w, event.Warning)) > 0 })
	check(t, os.WriteFile(w.dir+"/go", nil, 0o600))
	report := w.end()
	if report.Kind != driver.None || report.Text != "I did the task" || len(report.Said) != 1 || report.Said[0] != "I did the task" || report.Conversation != "one" {
		t.Errorf("%+v", report)
	}
	if len(w.over) != 1 || w.over[0] != "c1" {
		t.Errorf("calls that are over: %v", w.over)
	}
	if calls := emitted[event.Tool](w, event.AgentTool); len(calls) != 1 || calls[0].Summary != "edit a/b" {
		t.Errorf("%+v", calls)
	}
	if retries := emitted[event.Text](w, event.AgentRetry); len(retries) != 1 || retries[0].Text != "no answer from the API (nobody there)" {
		t.Errorf("%+v", retries)
	}
	if said := emitted[event.Text](w, event.Warning)[0].Text; !strings.Contains(said, "cannot send the message from Ada to the agent: its agent CLI takes no messages") {
		t.Errorf("%s", said)
	}
	if taken := emitted[event.Message](w, event.AgentMessage); len(taken) != 0 {
		t.Errorf("taken: %+v", taken)
	}
}

// A declaration that every call passes the gate is enforced, even if the CLI has ended before it
// can be stopped.
func TestGateBypassed(t *testing.T) {
	for name, c := range map[string]struct{ script, decided, refused, want string }{
		"no decision":         {"echo call edit; echo result done; echo end", "", "", "a tool ran without a decision by coven's gate: call c1"},
		"no outcome is shown": {"echo call edit; echo end", "", "", "a tool ran without a decision by coven's gate: call c1"},
		"refused, and ran":    {"echo call edit; echo result done; echo end", "c1", "c1", "a tool ran although coven's gate had refused it: call c1"},
		"no call is shown":    {"echo text hello; echo end", "", "", "the agent CLI never connected to coven's gate"},
	} {
		t.Run(name, func(t *testing.T) {
			w := looseWorld(t, "cat >/dev/null; echo started one; "+c.script)
			w.job.Provider = loose{script: "cat >/dev/null; echo started one; " + c.script, gated: true}
			w.decided[c.decided], w.refused = c.decided != "", c.refused
			w.start()
			if report := w.end(); report.Kind != driver.Ungated || !strings.HasPrefix(report.Error, c.want) {
				t.Errorf("%+v", report)
			}
		})
	}
}

// The worktree is saved repeatedly. If that keeps failing, an agent whose calls do not pass the gate
// is stopped.
func TestUngatedIsSaved(t *testing.T) {
	if !hastened(t) {
		return
	}
	w := looseWorld(t, "cat; while :; do echo; sleep 0.05; done")
	tries := 0
	w.job.Ungated, w.job.Save = true, func(context.Context) error {
		if tries++; tries == 1 || tries > 4 { // a vanished file, then a full disk
			return errors.New("the disk is full")
		}
		return nil
	}
	w.start()
	if report := w.end(); report.Kind != driver.Internal || report.Error != "save the worktree: the disk is full" || tries != 7 {
		t.Errorf("saved %d times: %+v", tries, report)
	}
}

// An agent whose calls pass the gate continues: a snapshot preceded each of them.
func TestGatedIsSaved(t *testing.T) {
	if !hastened(t) {
		return
	}
	w := looseWorld(t, "")
	w.job.Provider = loose{script: "cat >/dev/null; while ! [ -e go ]; do sleep 0.05; done; echo started one; echo end", gated: true}
	tries := 0
	w.job.Save = func(context.Context) error {
		if tries++; tries == 5 {
			check(t, os.WriteFile(w.dir+"/go", nil, 0o600))
		}
		return errors.New("the disk is full")
	}
	w.start()
	if report := w.end(); report.Kind != driver.Ungated || tries < 5 { // the agent never asked the gate
		t.Errorf("saved %d times: %+v", tries, report)
	}
	said := emitted[event.Text](w, event.Warning)
	if len(said) != 1 || said[0].Text != "cannot save the worktree: the disk is full" {
		t.Errorf("%+v", said)
	}
}
