package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	sessionusage "github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/runner"
	runengine "github.com/coven-run/coven/runner/engine"
)

// This benchmark measures the time to resume a session of 10,000 events, from the lookup of the session to
// its first leaf without a result. The floor reads and decodes the lines once.

// longSession is its number of events.
const longSession = 10_000

const longGrimoire = `name: long
budget: {usd: 1000}
steps:
- name: rounds
  type: loop
  max_iterations: 100
  steps:
  - name: quality
    type: loop
    max_iterations: 6
    steps:
    - {name: tests, type: script, command: "make test ROUND={{.loop.iteration}}", on_fail: continue, output: found}
    - {name: fix, type: agent, prompt: "Fix this:\n{{.found}}\n", when: "{{.previous.failed}}"}
    on_max_iterations: continue
`

func BenchmarkResume(b *testing.B) {
	root := b.TempDir()
	id, plan := long(b, root)
	var took, floor time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		resumeLong(b, root, id, plan)
		took += time.Since(start)
		start = time.Now()
		readLines(b, filepath.Join(root, session.Dir, id, "events.jsonl"))
		floor += time.Since(start)
		n++
	}
	b.ReportMetric(took.Seconds()*1000/float64(n), "ms/resume")
	b.ReportMetric(floor.Seconds()*1000/float64(n), "floor-ms")
	b.ReportMetric(took.Seconds()/floor.Seconds(), "x/floor")
}

// resumeLong reads the record of the session as coven resume does.
func resumeLong(b *testing.B, root, id string, plan *grimoires.Plan) {
	b.Helper()
	seen, err := session.NewFinder(root).OfTask("t")
	must(b, err)
	s, err := session.Open(root, id, time.Now)
	must(b, err)
	defer s.Close() //nolint:errcheck // every event is on disk
	now, err := s.View()
	must(b, err)
	if !now.Same(seen) {
		b.Fatalf("%+v, %+v", now, seen)
	}
	must(b, s.Append(event.Event{Type: event.SessionResumed}, event.Resumed{}))
	used := sessionusage.New(budget.DefaultPrices())
	used.Read(s.Events())
	if used.Within("").USD == 0 {
		b.Fatal("nothing was used")
	}
	_, err = runner.RunSteps(b.Context(), plan, runner.NewJournal(s), stopped{}, nil)
	if !errors.Is(err, runner.ErrInterrupted) {
		b.Fatal(err)
	}
}

// stopped does no work.
type stopped struct{}

func (stopped) Do(context.Context, runengine.Call) (event.Result, error) {
	return event.Result{}, runner.ErrInterrupted
}

// long creates the session.
func long(b *testing.B, root string) (id string, plan *grimoires.Plan) {
	b.Helper()
	g, err := grimoires.Parse("long.yaml", []byte(longGrimoire))
	must(b, err)
	plan, err = grimoires.NewLibrary(root, root).Freeze(g, nil)
	must(b, err)
	s, err := session.Create(root, "t", "A long one", time.Now)
	must(b, err)
	w := &tale{id: s.ID}
	must(b, w.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: "A long one", Project: root}))
	_, err = runner.RunSteps(b.Context(), plan, runner.NewJournal(w), w, nil)
	if !errors.Is(err, runner.ErrInterrupted) {
		b.Fatal(err)
	}
	must(b, s.Close())
	must(b, os.WriteFile(filepath.Join(s.Dir, "events.jsonl"), w.text.Bytes(), 0o644))
	return s.ID, plan
}

// tale writes a journal, and does the work that it records.
type tale struct {
	id     string
	events []event.Event
	text   bytes.Buffer
}

func (w *tale) Events() []event.Event { return w.events }

func (w *tale) Append(e event.Event, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	e.V, e.Seq, e.Time, e.Session, e.Task, e.Data = event.Version, int64(len(w.events))+1, time.Now().UTC(), w.id, "t", raw
	w.events = append(w.events, e)
	return json.NewEncoder(&w.text).Encode(e)
}

func (w *tale) OpenLog(string) (io.WriteCloser, int64, error) { return nil, 0, errors.ErrUnsupported }
func (w *tale) ReadLog(string, int64) (io.ReadCloser, error)  { return nil, errors.ErrUnsupported }

// Do implements runner's Leaves. The step of an agent has many events.
func (w *tale) Do(_ context.Context, c runengine.Call) (event.Result, error) {
	if len(w.events) >= longSession-12 {
		return event.Result{}, runner.ErrInterrupted
	}
	oid := fmt.Sprintf("%040x", len(w.events))
	type one struct {
		what event.Type
		data any
	}
	all := []one{{event.StepStarted, event.StepStart{Kind: c.Kind(), Snapshot: oid, Tree: oid}}}
	result := event.Result{Output: "--- FAIL: TestIt\n    it_test.go:12: it is not", ExitCode: 1, Tree: oid, Error: "the command ended with exit code 1"}
	if c.Agent == nil {
		receipt := event.Receipt{Command: "make test", ExitCode: 1, Tree: oid, Duration: time.Second, LogPart: event.LogPart{Sum: oid}}
		result.Receipts = []event.Receipt{receipt}
	} else {
		all = append(all, one{event.AgentStarted, event.AgentStart{Conversation: oid, Prompt: c.Agent.Prompt}})
		for range 4 {
			all = append(all, one{event.AgentText, event.Text{Text: "Now I look at the file that the test names, and at what it wants."}},
				one{event.GateDecided, event.Decision{ID: oid, Tool: "Edit", Permission: "file.write", Subject: "it.go", Allowed: true, Reason: "inside the worktree"}},
				one{event.AgentTool, event.Tool{ID: oid, Name: "Edit", Summary: "Edit it.go"}})
		}
		all = append(all, one{event.AgentUsage, event.Usage{Input: 1000, Output: 1000, Turns: 4, Model: "sonnet"}})
		result = event.Result{OK: true, Output: "I fixed it.", Summary: "fixed it", Commit: oid, Tree: oid, Files: []string{"it.go"}}
		result.Used = budget.Amount{USD: 0.02, Tokens: 2000, Turns: 4, Wall: time.Minute}
	}
	for _, o := range all {
		if err := w.Append(event.Event{Type: o.what, Path: c.Path}, o.data); err != nil {
			return event.Result{}, err
		}
	}
	return result, nil
}

// readLines measures the floor.
func readLines(b *testing.B, name string) {
	b.Helper()
	data, err := os.ReadFile(name)
	must(b, err)
	n := 0
	for line := range bytes.Lines(data) {
		var e event.Event
		must(b, json.Unmarshal(line, &e))
		n++
	}
	if n < longSession-100 {
		b.Fatalf("%d events", n)
	}
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
