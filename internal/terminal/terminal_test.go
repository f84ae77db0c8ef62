package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// emitters is the number of concurrent tasks.
const emitters = 50

// stalled is a writer that blocks until it is released.
type stalled struct {
	let  chan struct{}
	seen bytes.Buffer
}

func (s *stalled) Write(p []byte) (int, error) {
	<-s.let
	return s.seen.Write(p)
}

// Emitters never block, even if the output is not read. Afterwards each line appears
// exactly once, in the order of its emitter. C-40
func TestScreenIsNeverInTheWay(t *testing.T) {
	const each = 200
	out := &stalled{let: make(chan struct{})}
	s := New(out, func(e event.Event) string { return fmt.Sprintf("%s %s\n", e.Task, e.Path) }, nil)
	var all sync.WaitGroup
	for task := range emitters {
		all.Go(func() {
			for n := range each {
				s.See(event.Event{Type: event.Warning, Task: fmt.Sprint(task), Path: fmt.Sprint(n)})
			}
		})
	}
	all.Wait() // nothing has been read yet
	close(out.let)
	s.Close()
	lines := strings.Split(strings.TrimSpace(out.seen.String()), "\n")
	if len(lines) != emitters*each {
		t.Fatalf("%d lines, not %d", len(lines), emitters*each)
	}
	next := map[string]int{}
	for _, line := range lines {
		task, n, _ := strings.Cut(line, " ")
		if n != fmt.Sprint(next[task]) {
			t.Fatalf("task %s shows %s where %d belongs", task, n, next[task])
		}
		next[task]++
	}
}

// While a question has the screen, other output is held back.
func TestScreenAlone(t *testing.T) {
	var out bytes.Buffer
	s := New(&out, Lines, nil)
	s.Say("before\n")
	if err := s.Alone(t.Context(), func() {
		s.Say("after\n")
		out.WriteString("question\n")
	}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if out.String() != "before\nquestion\nafter\n" {
		t.Errorf("the screen shows %q", out.String())
	}
}

// A question on a blocked screen gives up when its context ends, and is not
// asked later.
func TestScreenAloneGivesUp(t *testing.T) {
	out := &stalled{let: make(chan struct{})}
	s := New(out, Lines, nil)
	s.Say("stuck\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	asked := false
	if err := s.Alone(ctx, func() { asked = true }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	close(out.let)
	s.Close()
	if asked {
		t.Error("the question was asked after all")
	}
}

// A person sees the first 100 characters of a summary, and the type and severity of a failure.
func TestStepEnd(t *testing.T) {
	for data, want := range map[string]string{
		`{"ok":true,"agent":"build","summary":"` + strings.Repeat("日本", 150) + `"}`:               "work: done\n  " + strings.Repeat("日本", 50),
		`{"ok":true,"agent":"build","summary":"two\nlines"}`:                                      "work: done\n  two lines",
		`{"ok":false,"agent":"build","error":"too\nlate","error_type":"timeout"}`:                 "  ✗ build failed: timeout: too late (error)",
		`{"ok":false,"agent":"build","error":"no_changes: nothing","error_type":"no_changes"}`:    "  ✗ build failed: no_changes: nothing (error)",
		`{"ok":false,"agent":"build","error":"too late","error_type":"timeout","tolerated":true}`: "  ✗ build failed: timeout: too late (warning)",
		`{"ok":false,"error":"the command ended with exit code 1","error_type":"process_exit"}`:   "work: failed: the command ended with exit code 1",
	} {
		e := event.Event{Type: event.StepCompleted, Path: "work#1", Data: []byte(data)}
		if got := story(e); got != want {
			t.Errorf("%s\ngot  %q\nwant %q", data, got, want)
		}
	}
}

// A change of the repository is a note, or a warning with the command that shows the change.
func TestRepositoryChange(t *testing.T) {
	for data, want := range map[string]string{
		`{"severity":"noted","changes":[{"severity":"noted","text":"branch a was added"}]}`:                                                                                 "  note: the repository changed during the step: branch a was added",
		`{"severity":"stops","rescue":"refs/coven/rescue/t/1","changes":[{"severity":"stops","text":"hook a was added"},{"severity":"noted","text":"branch a was added"}]}`: "warning: the repository changed during the step: hook a was added (to see them: coven rescue show refs/coven/rescue/t/1)",
	} {
		if got := story(event.Event{Type: event.RepositoryChanged, Path: "work#1", Data: []byte(data)}); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// A limit includes its end, if known, and the time when the task continues. A
// time on another day includes the date.
func TestLimit(t *testing.T) {
	now := time.Date(2026, 1, 2, 23, 0, 0, 0, time.Local)
	l := event.Limit{Account: "anthropic", Reason: "overloaded", At: now.Add(30 * time.Minute)}
	if got := Limit(l, now); got != "the account anthropic is limited (overloaded), the API did not report until when; continues automatically at 23:30:00" {
		t.Errorf("got %q", got)
	}
	l.Until, l.At, l.Reason = now.Add(90*time.Minute), now.Add(91*time.Minute).UTC(), "five_hour"
	if got := Limit(l, now); got != "the account anthropic is limited (five_hour) until 2026-01-03 00:30:00; continues automatically at 2026-01-03 00:31:00" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkScreen measures the delay of an event to the screen while 50 tasks emit concurrently: the
// 99th percentile must be below 100 ms. A direct call of the writer is the lower bound.
func BenchmarkScreen(b *testing.B) {
	var mu sync.Mutex
	var delays []time.Duration
	s := New(&bytes.Buffer{}, func(e event.Event) string {
		mu.Lock()
		defer mu.Unlock()
		delays = append(delays, time.Since(e.Time))
		return Lines(e)
	}, nil)
	b.ResetTimer()
	var all sync.WaitGroup
	for range emitters {
		all.Go(func() {
			for range b.N {
				s.See(event.Event{Type: event.StepStarted, Task: "task", Path: "step#1", Time: time.Now()})
			}
		})
	}
	all.Wait()
	s.Close()
	b.StopTimer()
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
}
