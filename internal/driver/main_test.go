package driver_test

import (
	"context"
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
	"github.com/coven-run/coven/internal/fake/fakeapi"
	"github.com/coven-run/coven/internal/fake/fakeclaude"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/builtin/claude"
	"github.com/coven-run/coven/plugins/provider"
)

// TestMain also serves as the launcher, the bridge to the gate, and the fake agent CLI.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "claude":
		os.Exit(fakeclaude.Main(os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == "exec":
		os.Exit(process.Main(os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == "gate":
		if err := mcp.Bridge(os.Stdin, os.Stdout, os.Getenv); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// patience bounds every wait. A healthy test never comes near it.
const patience = 2 * time.Minute

// recorded is an event that a run made durable.
type recorded struct {
	kind event.Type
	data any
}

// world is the environment of one agent: home, directory, model and gate.
type world struct {
	t         *testing.T
	api       *fakeapi.Server
	runner    *driver.Runner
	job       driver.Job
	home, dir string
	messages  chan event.Message

	mu      sync.Mutex
	events  []recorded
	decided map[string]bool
	refused string        // ID of the call that the gate has refused
	over    []string      // IDs of calls reported to the gate as ended
	hold    chan struct{} // if not nil, the gate waits until it is closed

	ended  chan struct{}
	report driver.Report
	err    error
}

// both runs a test with the fake CLI and, if it is installed, with the real one.
func both(t *testing.T, scenario string, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		self, err := os.Executable()
		check(t, err)
		test(t, newWorld(t, self, scenario))
	})
	t.Run("real", func(t *testing.T) { test(t, newWorld(t, realCLI(t), scenario)) })
}

func realCLI(t *testing.T) string {
	t.Helper()
	cli := os.Getenv("COVEN_REAL_CLAUDE")
	if _, err := os.Stat(cli); err != nil {
		if os.Getenv("COVEN_REQUIRE_REAL_CLAUDE") != "" {
			t.Fatalf("the real Claude Code CLI is required: %v", err)
		}
		t.Skip("the real Claude Code CLI is not here: make stories brings it")
	}
	cli, err := filepath.Abs(cli)
	check(t, err)
	return cli
}

func newWorld(t *testing.T, cli, scenario string) *world {
	t.Helper()
	parsed, err := fakeapi.Parse([]byte(scenario))
	check(t, err)
	api, err := fakeapi.New(parsed)
	check(t, err)
	t.Cleanup(func() { check(t, api.Close()) })
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	sockets, err := os.MkdirTemp("/tmp", "cv") // socket paths must be short
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(sockets)) })
	w := &world{
		t: t, api: api, home: filepath.Join(root, "home"), dir: filepath.Join(root, "work"),
		messages: make(chan event.Message), decided: map[string]bool{}, ended: make(chan struct{}),
	}
	bin := filepath.Join(root, "bin")
	for _, dir := range []string{w.home, w.dir, bin} {
		check(t, os.Mkdir(dir, 0o700))
	}
	check(t, os.Symlink(cli, filepath.Join(bin, "claude")))
	self, err := os.Executable()
	check(t, err)
	launcher, err := process.NewLauncher(self, "exec")
	check(t, err)
	w.runner = &driver.Runner{
		Launcher: launcher, Self: []string{self}, Version: "test", Sockets: sockets,
		Environ: func() []string {
			return []string{
				"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + w.home, "TERM=dumb", "LANG=C.UTF-8",
				"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
			}
		},
	}
	w.job = driver.Job{
		Provider: claude.Provider{}, Gate: w, Messages: w.messages,
		Input: driver.Input{
			Conversation: "11111111-1111-4111-8111-111111111111", Prompt: "the task", Model: "sonnet",
			Tools: []string{provider.ToolBash, provider.ToolWrite},
		},
		Place:  driver.Place{Dir: w.dir, StateDir: filepath.Join(w.home, ".claude")},
		Limits: driver.Limits{Idle: patience},
		Record: driver.Record{Emit: w.emit, Say: func(provider.Event) error { return nil }},
	}
	return w
}

// Decide allows every call once hold is closed.
func (w *world) Decide(_ context.Context, call gate.Call) gate.Verdict {
	w.mu.Lock()
	w.decided[call.ID] = true
	hold := w.hold
	w.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return gate.Verdict{Allow: true}
}

func (w *world) Decided(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.decided[id]
}

func (w *world) Refused(id string) bool { return w.refused == id }

func (w *world) Ended(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = append(w.over, id)
}

func (w *world) emit(kind event.Type, data any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, recorded{kind, data})
	return nil
}

// emitted returns the data of all events of a type.
func emitted[T any](w *world, kind event.Type) []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []T
	for _, e := range w.events {
		if e.kind == kind {
			all = append(all, e.data.(T))
		}
	}
	return all
}

// start starts the agent; end waits for it.
func (w *world) start() {
	ctx, cancel := context.WithTimeoutCause(w.t.Context(), patience, fmt.Errorf("the run did not end"))
	go func() {
		defer close(w.ended)
		defer cancel()
		w.report, w.err = w.runner.Run(ctx, w.job)
	}()
	w.t.Cleanup(func() { <-w.ended })
}

func (w *world) end() driver.Report {
	w.t.Helper()
	<-w.ended
	check(w.t, w.err)
	return w.report
}

// say sends a message, and reports whether the run read it.
func (w *world) say(id, text string) bool {
	select {
	case w.messages <- event.Message{ID: id, Text: text, By: "Ada"}:
		return true
	case <-w.ended:
		return false
	}
}

// reached waits until the CLI has read count messages, including the task.
func (w *world) reached(count int) {
	w.t.Helper()
	w.eventually(func() bool {
		files, err := filepath.Glob(filepath.Join(w.home, ".claude", "projects", "*", w.job.Conversation+".jsonl"))
		if err != nil || len(files) != 1 {
			return false
		}
		text, err := os.ReadFile(files[0])
		return err == nil && strings.Count(string(text), `"operation":"enqueue"`) >= count
	})
}

func (w *world) held(name string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	check(w.t, w.api.WaitHeld(ctx, name))
}

func (w *world) eventually(done func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			w.t.Fatal("waited in vain")
		}
	}
}

// told returns the user and CLI texts of the last request to the model.
func (w *world) told() string {
	var said []string
	for _, request := range w.api.Requests() {
		if request.Kind != fakeapi.KindTurn {
			continue
		}
		said = nil
		for _, message := range request.Messages {
			if message.Role != "assistant" {
				said = append(said, message.Text())
			}
		}
	}
	return strings.Join(said, "\n")
}

// succeeded checks that the run succeeded and that every message was accepted and reached the model.
func (w *world) succeeded(text string, messages ...string) {
	w.t.Helper()
	report := w.end()
	if report.Kind != driver.None || report.Text != text {
		w.t.Errorf("%q (%s: %s), want %q", report.Text, report.Kind, report.Error, text)
	}
	taken := emitted[event.Message](w, event.AgentMessage)
	if len(taken) != len(messages) {
		w.t.Fatalf("%d messages are taken, want %d: %+v", len(taken), len(messages), taken)
	}
	for _, m := range taken {
		if !slices.Contains(messages, m.Text) || m.By != "Ada" || !slices.Contains(report.Acknowledged, m.ID) || !strings.Contains(w.told(), m.Text) {
			w.t.Errorf("message %+v; heard: %q; the model was told:\n%s", m, report.Acknowledged, w.told())
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
