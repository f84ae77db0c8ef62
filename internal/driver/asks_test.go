package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// curious drives a shell script that makes requests in the form "ask ID KIND TEXT". The script reads
// an answer as one line.
type curious struct {
	loose
	fails error // returned by Answer
}

func (c curious) Command(ctx context.Context, req provider.Request) (provider.Command, error) {
	command, err := c.loose.Command(ctx, req)
	command.Once, command.Server, command.Input = false, true, nil
	return command, err
}

func (c curious) Parse(ctx context.Context, lines []byte) (all []provider.Event, err error) {
	for line := range strings.Lines(string(lines)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		switch words[0] {
		case "ask":
			all = append(all, request(append(words, "", "")))
		case "part":
			all = append(all, provider.Chunk{Text: strings.Join(words[1:], " ")})
		default:
			events, err := c.loose.Parse(ctx, []byte(line))
			if err != nil {
				return nil, err
			}
			all = append(all, events...)
		}
	}
	return all, nil
}

func request(words []string) provider.Asked {
	e := provider.Asked{ID: words[1]}
	switch text := words[3]; words[2] {
	case "call":
		e.Calls = []provider.ToolCall{{ID: "c1", Name: "bash", Input: json.RawMessage(fmt.Sprintf(`{"command":%q}`, text))}}
	case "calls":
		for _, id := range []string{"c1", "c2"} {
			e.Calls = append(e.Calls, provider.ToolCall{ID: id, Name: "bash", Input: json.RawMessage(fmt.Sprintf(`{"command":%q,"dir":"/elsewhere"}`, id+text))})
		}
	case "read":
		e.Action = provider.ReadFile{Path: text}
	case "write":
		e.Action = provider.WriteFile{Path: "note", Content: text}
	case "run":
		e.Action = provider.RunCommand{Command: text, MaxOutput: 4}
	case "output", "await", "kill":
		e.Action = provider.UseTerminal{ID: text, Do: words[2]}
	}
	return e
}

func (c curious) Answer(_ context.Context, a provider.Answer) (provider.Reply, error) {
	if use, ok := a.Asked.Action.(provider.UseTerminal); ok && use.Do == provider.TerminalKill {
		a.Text, a.Terminal.Exited = "", false // depends on timing
	}
	text := fmt.Sprintf("%s %v %s%s %s", a.Asked.ID, a.Allowed, a.Reason, a.Text, a.Terminal.ID)
	if a.Terminal.Exited {
		text += fmt.Sprintf(" exit %d", a.Terminal.Code)
	}
	if a.NotFound {
		text += " missing"
	}
	return provider.Reply{Input: []byte(strings.Join(strings.Fields(text), " ") + "\n"), Cancel: []byte("cancel\n")}, c.fails
}

// hands is a host for files in a directory.
type hands struct{ dir string }

func (h hands) ReadFile(path string, _, _ int) (string, error) {
	text, err := os.ReadFile(filepath.Join(h.dir, path))
	return string(text), err
}

func (h hands) WriteFile(path, content string) error {
	return os.WriteFile(filepath.Join(h.dir, path), []byte(content), 0o600)
}

// RunCommand prints the command. The command sleep waits.
func (h hands) RunCommand(ctx context.Context, command string, output io.Writer) (process.Exit, error) {
	_, _ = io.WriteString(output, command)
	if command == "sleep" {
		<-ctx.Done()
		return process.Exit{Code: 1}, nil
	}
	return process.Exit{Code: 3}, nil
}

func (h hands) Hide(text string) string { return strings.ReplaceAll(text, "key", "***") }

// strict is a gate that refuses input with "evil" and modifies input with "modify".
type strict struct {
	*world
	calls *[]gate.Call
}

func (s strict) Decide(ctx context.Context, call gate.Call) gate.Verdict {
	s.mu.Lock()
	*s.calls = append(*s.calls, call)
	s.mu.Unlock()
	switch {
	case strings.Contains(string(call.Input), "slow"): // simulates a person who takes time
		<-ctx.Done()
		return gate.Verdict{Message: "stopped"}
	case strings.Contains(string(call.Input), "evil") && !strings.Contains(string(call.Input), "c1evil"):
		return gate.Verdict{Message: "no"}
	case strings.Contains(string(call.Input), "modify"):
		return gate.Verdict{Allow: true, Input: json.RawMessage(`{"path":"other","content":"modified","command":"true"}`)}
	}
	return s.world.Decide(ctx, call)
}

// curiousWorld returns a world that runs a script that makes requests.
func curiousWorld(t *testing.T, script string) (*world, *[]gate.Call) {
	t.Helper()
	w := newWorld(t, "/bin/true", "")
	calls := &[]gate.Call{}
	w.job.Provider, w.job.Ungated, w.job.Host, w.job.Gate = curious{loose: loose{script: script}}, true, hands{w.dir}, strict{w, calls}
	return w, calls
}

// said returns the lines that the script received; it repeats them as texts.
func (w *world) said() (all []string) {
	for _, text := range emitted[event.Text](w, event.AgentText) {
		all = append(all, text.Text)
	}
	return all
}

// The requests of an agent CLI are answered in order, by the gate where it decides.
func TestRequests(t *testing.T) {
	t.Parallel()
	w, calls := curiousWorld(t, `ask() { echo "ask $*"; read -r answer; echo "text $answer"; }
echo started c
ask 1 call make
ask 2 call evil
ask 3 write one
ask 4 read note
ask 5 read none
ask 6 write evil
ask 7 write modify
ask 8 call modify
ask 9 run a key and more
ask 10 await terminal-1
ask 11 output terminal-1
ask 12 output terminal-9
ask 13 run sleep
ask 14 kill terminal-2
ask 15 await terminal-2
ask 16
echo "ask 16"
part() { echo "part $*"; }
part hel; part lo
echo end; cat >/dev/null`)
	w.start()
	report := w.end()
	if report.Kind != driver.None || report.Text != "hello" {
		t.Errorf("%+v", report)
	}
	want := []string{
		"1 true", "2 false no", "3 true", "4 true one", "5 false open " + w.dir + "/none: no such file or directory missing", "6 false no", "7 true",
		`8 false the user modified the parameters; make the call again with {"path":"other","content":"modified","command":"true"}`,
		"9 true terminal-1", "10 true more terminal-1 exit 3", "11 true more terminal-1 exit 3", `12 false there is no terminal "terminal-9"`,
		"13 true terminal-2", "14 true terminal-2", "15 true leep terminal-2 exit 1", "16 true", "hello",
	}
	if got := w.said(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "other")); string(text) != "modified" {
		t.Errorf("the person's text is not written: %q, %v", text, err)
	}
	for _, id := range []string{"c1", "request 3", "request 4", "request 5", "request 7", "request 9", "request 13"} {
		if !slices.ContainsFunc(*calls, func(c gate.Call) bool { return c.ID == id }) || !slices.Contains(w.over, id) {
			t.Errorf("%s: the gate decided about %+v, and %q are over", id, *calls, w.over)
		}
	}
	if warnings := emitted[event.Text](w, event.Warning); len(warnings) != 1 || !strings.Contains(warnings[0].Text, `two requests with the ID "16"`) {
		t.Errorf("%+v", warnings)
	}
	if shown := emitted[event.Tool](w, event.AgentTool); len(shown) != 1 { // all requests are about c1
		t.Errorf("%+v", shown)
	}
}

// If one call of a request is refused, all are. The gate sees a command together with its directory.
func TestRequestForSeveralCalls(t *testing.T) {
	t.Parallel()
	const script = `ask() { echo "ask $*"; read -r answer; echo "text $answer"; }
echo started c
ask 1 calls ok
echo "result done"
ask 2 calls %s
echo "result done"
echo end; cat >/dev/null`
	w, calls := curiousWorld(t, fmt.Sprintf(script, "fine"))
	w.start()
	if report := w.end(); report.Kind != driver.None || string((*calls)[0].Input) != `{"command":"cd /elsewhere \u0026\u0026 c1ok"}` {
		t.Errorf("%+v, %q", report, *calls)
	}
	w, _ = curiousWorld(t, strings.Replace(fmt.Sprintf(script, "fine"), "ask 1 calls ok", "ask 1 calls evil; ask 3 calls ok", 1))
	w.start()
	if report := w.end(); report.Kind != driver.None { // the second request was allowed
		t.Errorf("%+v", report)
	}
	w, _ = curiousWorld(t, fmt.Sprintf(script, "evil"))
	w.start()
	if report := w.end(); report.Kind != driver.Ungated || report.Error != "a tool ran although coven's gate had refused it: call c1" {
		t.Errorf("%+v, %q", report, w.said())
	}
}

// Stopping a server CLI that does not end with its input is not a failure. Until it has started a
// conversation, it repeats an earlier one.
func TestServer(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo part old; echo text older; echo ask 1; read -r a; echo text oldest; echo started c; echo text new; echo end; exec sleep 600`)
	w.start()
	if report := w.end(); report.Kind != driver.None || report.Text != "new" {
		t.Errorf("%+v", report)
	}
	if got := w.said(); !slices.Equal(got, []string{"old", "older", "new"}) { // the first two precede a request
		t.Errorf("%q", got)
	}
}

// An interrupted CLI may cancel its work first, and a question to a person ends.
func TestCancel(t *testing.T) {
	t.Parallel()
	w, calls := curiousWorld(t, `echo started c; echo ask 1; read -r a; echo ask 2 call slow; read -r b; read -r c; echo "$b, $c" >answers; echo end; exec sleep 600`)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	go func() {
		w.eventually(func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(*calls) == 1
		})
		cancel(stop)
	}()
	if _, err := w.runner.Run(ctx, w.job); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(w.dir, "answers"))
	if got := string(text); err != nil || got != "2 false, cancel\n" && got != "cancel, 2 false\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// A CLI that makes too many requests is stopped. After its result it gets no answers.
func TestRequestsWithoutMeasure(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo started c; i=0; while test $i -lt 66; do echo ask $i call slow; i=$((i+1)); done; exec sleep 600`)
	w.start()
	if report := w.end(); report.Kind != driver.Failed || report.Error != "the agent CLI made more than 64 requests without waiting for the answers" {
		t.Errorf("%+v", report)
	}
	w, calls := curiousWorld(t, `echo started c; echo end; echo ask 1 call late; read -r a; echo "$a" >answer`)
	w.start()
	if report := w.end(); report.Kind != driver.None {
		t.Errorf("%+v", report)
	}
	if text, _ := os.ReadFile(filepath.Join(w.dir, "answer")); len(*calls) > 0 || strings.TrimSpace(string(text)) != "" {
		t.Errorf("%v, %q", *calls, text)
	}
}

// The provider cannot answer, or reports only now that its CLI cannot resume.
func TestCannotAnswer(t *testing.T) {
	t.Parallel()
	const script = `echo ask 1; exec sleep 600`
	w, _ := curiousWorld(t, script)
	w.job.Provider = curious{loose{script: script}, errors.New("no such model")}
	w.start()
	if report := w.end(); report.Kind != driver.Failed || report.Error != "cannot answer a request of the agent CLI: no such model" {
		t.Errorf("%+v", report)
	}
	w, _ = curiousWorld(t, script)
	w.job.Provider, w.job.Resume = curious{loose{script: script}, pluginerr.ErrUnsupported}, true
	if _, err := w.runner.Run(t.Context(), w.job); !errors.Is(err, pluginerr.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	w, _ = curiousWorld(t, script)
	w.job.Provider = struct{ provider.Provider }{curious{loose: loose{script: script}}}
	w.start()
	if report := w.end(); report.Error != "cannot answer a request of the agent CLI: its provider cannot answer" {
		t.Errorf("%+v", report)
	}
}

// An endless line does not fill coven's memory.
func TestEndlessLine(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo started c; exec cat /dev/zero`)
	w.start()
	if report := w.end(); report.Kind != driver.Internal || report.Error != "read the agent's output: a line is longer than 67108864 bytes" {
		t.Errorf("%.200v", report)
	}
}

// Endless output ends.
func TestEndlessOutput(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo started c; while head -c 50000000 /dev/zero && echo; do :; done`)
	w.start()
	if report := w.end(); report.Kind != driver.Internal || report.Error != "read the agent's output: it is longer than 268435456 bytes" {
		t.Errorf("%.200v", report)
	}
}

// The last plain output line is part of the reason unless the agent returned text.
func TestEndsWithoutAResult(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`echo "no  key" >&2; echo; echo '{"odd": 1}'; exit 7`:        "the agent ended with exit code 7 and without a result: no key",
		`echo started c; echo text Hello; echo "no key" >&2; exit 7`: "the agent ended with exit code 7 and without a result: Hello",
		`printf '\377%1000s' | tr ' ' x; echo; exit 7`:               "the agent ended with exit code 7 and without a result: " + strings.Repeat("x", 299) + "…",
		`exit 7`: "the agent ended with exit code 7 and without a result",
	} {
		w, _ := curiousWorld(t, script)
		w.start()
		if report := w.end(); report.Kind != driver.ProcessExit || report.Error != want {
			t.Errorf("%s: %v %q", script, report.Kind, report.Error)
		}
	}
}

// The CLI reports usage as a running sum, and answers without IDs.
func TestSums(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo started c; echo end`)
	var costs []float64
	w.job.Provider = scripted{w.job.Provider, []provider.Event{
		provider.Spent{Next: true, Done: true, Usage: provider.Usage{InputTokens: 1}},
		provider.Spent{Next: true, Done: true, Usage: provider.Usage{InputTokens: 1}},
		provider.Spent{ID: "session", Done: true, Usage: provider.Usage{CostUSD: 0.5}},
		provider.Spent{ID: "session", Done: true, Usage: provider.Usage{CostUSD: 0.75}},
		provider.Result{OK: true},
	}}
	w.job.Spend = func(used event.Usage) error { costs = append(costs, used.Cost); return nil }
	w.start()
	report := w.end()
	if used := report.Used; used.Input != 2 || used.Cost != 0.75 || !slices.Equal(costs, []float64{0, 0, 0.5, 0.75}) {
		t.Errorf("%+v, %v", used, costs)
	}
}

// Impossible usage is clamped: it neither overflows the sum nor reduces it.
func TestAbsurdUsage(t *testing.T) {
	t.Parallel()
	w, _ := curiousWorld(t, `echo started c; echo end`)
	most := provider.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CostUSD: math.MaxFloat64}
	least := provider.Usage{InputTokens: math.MinInt64, OutputTokens: -1, CostUSD: -math.MaxFloat64}
	w.job.Provider = scripted{w.job.Provider, []provider.Event{
		provider.Spent{Next: true, Done: true, Usage: least},
		provider.Spent{Next: true, Done: true, Usage: most},
		provider.Spent{Next: true, Done: true, Usage: most},
		provider.Result{OK: true, Usage: most},
		provider.Result{OK: true, Usage: most},
		provider.Result{OK: true, Usage: least},
	}}
	var before event.Usage
	w.job.Spend = func(used event.Usage) error {
		if used.Input < before.Input || used.Output < before.Output || used.Cost < before.Cost {
			t.Errorf("%+v after %+v", used, before)
		}
		before = used
		return nil
	}
	w.start()
	report := w.end()
	if used := report.Used; used.Input < before.Input || used.Output < before.Output || used.Cost < before.Cost || math.IsInf(used.Cost, 0) || before.Input == 0 {
		t.Errorf("%+v, before the result %+v", used, before)
	}
	if used := report.Result.Usage; used.InputTokens <= 0 || used.OutputTokens <= 0 || used.CostUSD <= 0 {
		t.Errorf("%+v", used)
	}
}

// scripted returns given events for the last line.
type scripted struct {
	provider.Provider
	events []provider.Event
}

func (s scripted) Parse(ctx context.Context, lines []byte) ([]provider.Event, error) {
	if strings.Contains(string(lines), "end") {
		return s.events, nil
	}
	return s.Provider.Parse(ctx, lines)
}

// A CLI that hangs after its result is stopped, and its work counts.
func TestHangsAfterItsResult(t *testing.T) {
	if !hastened(t) {
		return
	}
	for _, end := range []string{"exec sleep 100000", "trap '' TERM; exec >/dev/null; while :; do sleep 0.1; done"} {
		w, _ := curiousWorld(t, "echo started c; echo end; "+end)
		w.start()
		if report := w.end(); report.Kind != driver.None || report.Error != "" {
			t.Errorf("%s: %+v", end, report)
		}
	}
}
