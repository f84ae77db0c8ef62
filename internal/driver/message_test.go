package driver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/provider"
)

const answering = `
conversations:
- turns: [{chunks: [{text: one}, {text: two, hold: model}]}, {text: second}, {text: third}, {text: fourth}]
`

const calling = `
conversations:
- turns: [{text: one, tools: [{name: Bash, input: {command: touch made}}]}, {text: second}]
`

// A message that arrives during the model's last answer gets its own turn, and both count.
func TestMessageWhileTheModelAnswers(t *testing.T) {
	both(t, answering, func(t *testing.T, w *world) {
		w.start()
		w.held("model")
		w.say("", "and the docs?")
		w.reached(2)
		w.api.Release("model")
		w.succeeded("second", "and the docs?")
		used := w.report.Result.Usage
		if used.InputTokens != 20 || used.OutputTokens != 10 || used.CostUSD < 0.00013 || used.CostUSD > 0.00015 || w.report.Result.Turns != 2 {
			t.Errorf("result %+v", w.report.Result)
		}
	})
}

// A message that arrives while a tool call waits at the gate is in the agent's next
// request, and one result answers both.
func TestMessageWhileAToolRuns(t *testing.T) {
	both(t, calling, func(t *testing.T, w *world) {
		w.hold = make(chan struct{})
		w.start()
		w.eventually(func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.decided) == 1
		})
		w.say("", "be quick")
		w.reached(2)
		close(w.hold)
		w.succeeded("second", "be quick")
		if used := w.report.Result.Usage; used.InputTokens != 20 || used.OutputTokens != 10 {
			t.Errorf("used %+v", used)
		}
	})
}

// A message that arrives after the result is either accepted and answered, or not accepted.
func TestMessageAtTheResult(t *testing.T) {
	for range 3 {
		both(t, answering, func(t *testing.T, w *world) {
			var said sync.WaitGroup
			var once sync.Once
			w.job.Say = func(e provider.Event) error {
				if _, result := e.(provider.Result); result {
					once.Do(func() { said.Go(func() { w.say("", "one more thing") }) })
				}
				return nil
			}
			w.api.Release("model")
			w.start()
			w.end()
			said.Wait()
			if len(emitted[event.Message](w, event.AgentMessage)) == 1 {
				w.succeeded("second", "one more thing")
			} else {
				w.succeeded("two")
			}
		})
	}
}

// After the run, messages are not read.
func TestMessageAfterTheRun(t *testing.T) {
	both(t, calling, func(t *testing.T, w *world) {
		w.start()
		w.succeeded("second")
		if w.say("", "too late") || len(emitted[event.Message](w, event.AgentMessage)) != 0 {
			t.Error("a message was taken when the agent was gone")
		}
	})
}

func TestManyMessages(t *testing.T) {
	both(t, answering, func(_ *testing.T, w *world) {
		w.start()
		w.held("model")
		var all []string
		var said sync.WaitGroup
		for n := range 20 {
			text := fmt.Sprintf("point %d. %s", n, strings.Repeat("x", 10_000)) // exceeds a pipe's buffer
			all = append(all, text)
			said.Go(func() { w.say("", text) })
		}
		said.Wait()
		w.reached(21)
		w.api.Release("model")
		w.succeeded("second", all...)
	})
}

// The CLI interprets no part of a message as a command or a file, however it receives the message.
func TestMessageIsText(t *testing.T) {
	dangerous := []string{"/compact", "@/etc/passwd", "/clear @/etc/passwd\n/exit", "!touch owned", "#note\u2028\x1b[0m"}
	check := func(t *testing.T, w *world) {
		t.Helper()
		if strings.Contains(w.told(), "root:") {
			t.Errorf("a file was read:\n%s", w.told())
		}
		if _, err := os.Stat(filepath.Join(w.dir, "owned")); err == nil {
			t.Error("a command ran")
		}
	}
	both(t, answering, func(t *testing.T, w *world) {
		w.start()
		w.held("model")
		for _, text := range dangerous {
			w.say("", text)
		}
		w.reached(1 + len(dangerous))
		w.api.Release("model")
		w.succeeded(w.end().Text, dangerous...) // the real CLI gives texts that look like commands their own turns
		check(t, w)
	})
	both(t, calling, func(t *testing.T, w *world) {
		w.hold = make(chan struct{})
		w.start()
		for _, text := range dangerous {
			w.say("", text)
		}
		w.reached(1 + len(dangerous))
		close(w.hold)
		w.succeeded("second", dangerous...)
		check(t, w)
	})
}

// A message with a known ID counts once, and a message without text does not count.
func TestMessageOnce(t *testing.T) {
	both(t, answering, func(t *testing.T, w *world) {
		w.start()
		w.held("model")
		const id = "22222222-2222-4222-8222-222222222222"
		w.say(id, "hello")
		w.say(id, "hello")
		w.say("", " ")
		w.reached(2)
		close(w.messages) // the agent no longer reads messages
		w.api.Release("model")
		w.succeeded("second", "hello")
		if warnings := emitted[event.Text](w, event.Warning); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "Ada") {
			t.Errorf("warnings: %+v", warnings)
		}
	})
}

// An agent that dies with a message in its input fails, and the message is recorded as unread.
func TestAgentDiesWithAMessage(t *testing.T) {
	both(t, `
conversations:
- turns: [{tools: [{name: Bash, input: {command: "until test -e go; do sleep 0.01; done; kill -9 $PPID; sleep 60"}}]}]
`, func(t *testing.T, w *world) {
		w.start()
		w.eventually(func() bool { return len(emitted[event.Tool](w, event.AgentTool)) == 1 })
		w.say("", "still there?")
		w.reached(2)
		check(t, os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600))
		report := w.end()
		taken := emitted[event.Message](w, event.AgentMessage)
		if report.Kind != driver.ProcessExit || len(taken) != 1 || slices.Contains(report.Acknowledged, taken[0].ID) {
			t.Errorf("report %+v, taken %+v", report, taken)
		}
		if warnings := emitted[event.Text](w, event.Warning); len(warnings) != 1 || !strings.Contains(warnings[0].Text, "did not read 1 message") {
			t.Errorf("warnings: %+v", warnings)
		}
	})
}

// If a CLI never acknowledges a message, the idle limit ends the run.
func TestMessageNeverHeard(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	check(t, err)
	w := newWorld(t, self, "")
	state := filepath.Join(w.home, ".fake-claude")
	check(t, os.Mkdir(state, 0o700))
	check(t, os.WriteFile(filepath.Join(state, "faults.yaml"), []byte(`faults: [{script: ['{"type":"result","is_error":false,"result":"done"}']}]`), 0o600))
	w.job.Idle = 2 * time.Second
	var once sync.Once
	w.job.Say = func(e provider.Event) error {
		if _, result := e.(provider.Result); result {
			once.Do(func() { w.say("", "hello?") }) // before the run has seen the result
		}
		return nil
	}
	w.start()
	report := w.end()
	if report.Kind != driver.Timeout || report.Text != "done" || len(report.Acknowledged) != 0 {
		t.Errorf("report %+v", report)
	}
}
