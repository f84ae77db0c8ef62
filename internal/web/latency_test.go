package web

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// While 50 tasks run, each with an event every second, an event is soon in the story of an open page, and the board that the page
// loads then has it. A machine that others use gets ten times as long.
func TestLatency(t *testing.T) {
	const floor, tasks = 100 * time.Millisecond, 50
	events, limit := 100, 10*floor
	if os.Getenv("COVEN_LONG") != "" {
		events = 1000
	}
	running, r := runningTasks(t, tasks)
	s := newSite(t, func(o *Options) { o.Source = r }).login()
	stream := s.follow(t, "task=t-0&session="+running[0].ID, "")
	lines := make(chan string, events)
	go func() {
		for stream.Scan() {
			lines <- stream.Text()
		}
	}()
	pace := time.NewTicker(time.Second / tasks)
	defer pace.Stop()
	var story, shown []time.Duration
	for n := range events {
		<-pace.C
		if n%5 > 0 { // other tasks
			must(t, running[1+n%(tasks-1)].Append(event.Event{Type: event.AgentTool, Path: "make#1"}, event.Tool{Summary: fmt.Sprint("other ", n)}))
			continue
		}
		text, at := fmt.Sprintf("event %d.", n), time.Now()
		must(t, running[0].Append(event.Event{Type: event.AgentTool, Path: "make#1"}, event.Tool{Summary: text}))
		for line := range lines {
			if strings.Contains(line, text) {
				break
			}
		}
		story = append(story, time.Since(at))
		if page := s.get("/", http.StatusOK); !strings.Contains(page, text) {
			t.Fatalf("no %s on the board:\n%s", text, page)
		}
		shown = append(shown, time.Since(at))
	}
	for name, took := range map[string][]time.Duration{"story": story, "board": shown} {
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		t.Logf("%s: %d events, p50 %s, p99 %s; floor %s", name, len(took), p50, p99, floor)
		if p99 > limit {
			t.Errorf("%s: p99 is %s, more than %s", name, p99, limit)
		}
	}
}

// runningTasks returns the sessions of running tasks, and their repository.
func runningTasks(t *testing.T, tasks int) (running []*session.Session, r *board.Repository) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	script := "git init -q . && git -c user.name=T -c user.email=t@example.invalid commit -q --allow-empty -m first"
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	if cmd.Dir = dir; cmd.Run() != nil {
		t.Fatal(script)
	}
	t.Chdir(dir)
	for i := range tasks {
		s, err := session.Create(dir, fmt.Sprintf("t-%d", i), fmt.Sprint("task ", i), time.Now)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		must(t, s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: fmt.Sprint("task ", i)}))
		must(t, s.Append(event.Event{Type: event.StepStarted, Path: "make#1"}, event.StepStart{Kind: "agent"}))
		running = append(running, s)
	}
	p, err := project.Open(t.Context(), project.NewEnv("test"))
	must(t, err)
	r = &board.Repository{Context: t.Context(), Project: p, Clock: time.Now}
	must(t, r.Watch())
	t.Cleanup(func() { must(t, r.Close()) })
	return running, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
