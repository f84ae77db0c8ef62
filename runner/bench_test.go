//go:build linux

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
	"golang.org/x/sys/unix"
)

// steps is the number of leaves in a run of the tree, and the number of lines in its journal.
const steps = 200

// BenchmarkStep measures the engine's time per step without the work of the step: the tree, and the record
// on disk. The floor is the time to write and sync a line of the same length in the same directory,
// measured alternately.
func BenchmarkStep(b *testing.B) {
	p := benchPlan(b)
	dir := b.TempDir()
	all, floor := time.Duration(0), time.Duration(0)
	n := 0
	for b.Loop() {
		name := filepath.Join(dir, "events.jsonl")
		j, err := event.Open(name, time.Now)
		must(b, err)
		f, err := os.Create(filepath.Join(dir, "floor.jsonl"))
		must(b, err)
		l := &lines{journal: j, file: f}
		start := time.Now()
		out, err := runner.RunSteps(b.Context(), p, runner.NewJournal(fileJournal{j}), l, nil)
		all += time.Since(start) - l.away
		if err != nil || out.Verdict != engine.Passed || len(j.Events()) != steps {
			b.Fatalf("%+v, %v, %d events", out, err, len(j.Events()))
		}
		n, floor = n+steps, floor+l.took
		must(b, errors.Join(j.Close(), f.Close(), os.Remove(name)))
	}
	b.ReportMetric(float64(all.Nanoseconds())/float64(n), "ns/step")
	b.ReportMetric(float64(floor.Nanoseconds())/float64(n), "floor-ns/step")
	b.ReportMetric(all.Seconds()/floor.Seconds(), "x/floor")
}

// fileJournal is a journal without logs, because no step has output.
type fileJournal struct{ *event.Journal }

func (fileJournal) OpenLog(string) (io.WriteCloser, int64, error) {
	return nil, 0, errors.ErrUnsupported
}

func (fileJournal) ReadLog(string, int64) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// lines implements leaves without work, which measure the floor.
type lines struct {
	journal *event.Journal
	file    *os.File
	took    time.Duration // time for writing and syncing
	away    time.Duration // total time
}

func (l *lines) Do(context.Context, engine.Call) (event.Result, error) {
	start := time.Now()
	line := bytes.Repeat([]byte("x"), 350)
	if events := l.journal.Events(); len(events) > 0 {
		var err error
		if line, err = json.Marshal(events[len(events)-1]); err != nil {
			return event.Result{}, err
		}
	}
	line = append(line, '\n')
	begun := time.Now()
	if _, err := l.file.Write(line); err != nil {
		return event.Result{}, err
	}
	err := unix.Fdatasync(int(l.file.Fd()))
	l.took += time.Since(begun)
	l.away += time.Since(start)
	return event.Result{OK: true, Output: "some output"}, err
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func benchPlan(b *testing.B) *grimoires.Plan {
	b.Helper()
	g, err := grimoires.Parse("bench.yaml", []byte(`name: bench
budget: {usd: 5}
steps:
- name: l
  type: loop
  max_iterations: 100
  on_max_iterations: continue
  steps:
  - {name: a, type: script, command: "echo {{.task.title}} {{.loop.iteration}}", output: a}
  - {name: b, type: script, command: "echo {{.a}}", when: "{{.previous.success}}", timeout: 1m}
`))
	if err != nil {
		b.Fatal(err)
	}
	p, err := grimoires.NewLibrary(b.TempDir(), b.TempDir()).Freeze(g, nil)
	if err != nil {
		b.Fatal(err)
	}
	p.Task = grimoires.Task{ID: "t-1", Title: "A title"}
	return p
}
