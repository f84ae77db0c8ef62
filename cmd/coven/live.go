package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
)

// liveLine is the last line of a terminal: what goes on, and for how long.
type liveLine struct {
	out   io.Writer
	width func() int
	now   func() time.Time

	mu    sync.Mutex
	task  string
	step  string
	doing string
	since time.Time
	shown string
	stop  chan struct{}
	once  sync.Once
}

// clearLine goes to the start of the line and empties it.
const clearLine = "\r\x1b[K"

func newLiveLine(out io.Writer, width func() int, now func() time.Time) *liveLine {
	l := &liveLine{out: out, width: width, now: now, since: now(), stop: make(chan struct{})}
	go l.tick()
	return l
}

// print writes lines above the live line and takes the event into it.
func (l *liveLine) print(text string, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(e)
	l.draw(text)
}

// draw writes lines, and the live line below them when either changed.
func (l *liveLine) draw(above string) {
	line := l.line()
	if above == "" && line == l.shown {
		return
	}
	l.shown = line
	_, _ = io.WriteString(l.out, clearLine+above+line) // a closed terminal stops no run
}

func (l *liveLine) take(e event.Event) {
	l.task = e.Task
	switch e.Type {
	case event.StepStarted:
		l.step, l.doing, l.since = stepName(e.Path), "", e.Time
	case event.AgentTool:
		l.doing = decoded[event.Tool](e).Summary
	case event.CheckStarted:
		l.doing = decoded[event.Text](e).Text
	case event.StepCompleted:
		l.step, l.doing = "", ""
	}
}

func (l *liveLine) line() string {
	if l.step == "" {
		return ""
	}
	elapsed := max(l.now().Sub(l.since), 0).Round(time.Second)
	text := fmt.Sprintf("%s  %s  %s  %s", l.task, l.step, elapsed, l.doing)
	runes := []rune(printable(strings.TrimSpace(text)))
	if width := l.width() - 1; len(runes) > width {
		runes = runes[:max(width, 0)]
	}
	return string(runes)
}

func (l *liveLine) tick() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.mu.Lock()
			l.draw("")
			l.mu.Unlock()
		}
	}
}

// end removes the line.
func (l *liveLine) end() {
	l.once.Do(func() { close(l.stop) })
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, clearLine)
}
