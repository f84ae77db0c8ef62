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

// emitters is how many tasks speak at once.
const emitters = 50

// stalled is a reader that does not read until it is let.
type stalled struct {
	let  chan struct{}
	seen bytes.Buffer
}

func (s *stalled) Write(p []byte) (int, error) {
	<-s.let
	return s.seen.Write(p)
}

// Emitters never block, even if the output is not read; afterwards every line is there
// once, in the order of each emitter. C-40
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
	all.Wait() // without a reader
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

// A question has the screen for itself: what is said meanwhile comes after it.
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

// Nobody waits for ever to ask a question on a screen that is stuck, and the
// question is not asked later.
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

// What a person sees is a summary's first 100 characters, whatever they are made
// of, and a failure with its type and severity.
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

// A change of the repository is a note, or a warning with the command that shows it.
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

// A limit says until when, as far as the API told, and when the task goes on; a
// time on another day has its date.
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

// BenchmarkScreen measures how long an event takes to the screen while 50 tasks
// speak at once: the 99th percentile must be below 100 ms. Its floor is a call of
// the writer itself.
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
