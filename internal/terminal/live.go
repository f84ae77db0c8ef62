package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// Live is the last lines of a terminal: one for each running task, with its step,
// time, usage and current action.
type Live struct {
	out  io.Writer
	size func() (width, height int)
	now  func() time.Time

	mu     sync.Mutex
	tasks  []*liveTask // in the order in which they started
	drawn  []string    // the lines on the terminal
	hidden bool
	stop   chan struct{}
	once   sync.Once
}

// liveTask is a running task.
type liveTask struct {
	id, step, doing string
	since           time.Time
	spent           provider.Usage // by completed steps
	current         provider.Usage // by the running step, so far
}

// NewLive returns live lines on out. size returns the size of the terminal.
func NewLive(out io.Writer, size func() (int, int), now func() time.Time) *Live {
	l := &Live{out: out, size: size, now: now, stop: make(chan struct{})}
	go l.tick()
	return l
}

// print writes lines above the live lines and updates them with the event.
func (l *Live) print(text string, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(e)
	l.draw(text)
}

// hide removes the live lines until unhide, while another program uses the terminal.
func (l *Live) hide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, l.erase()) // a closed terminal stops no run
	l.drawn, l.hidden = nil, true
}

func (l *Live) unhide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden = false
}

// end removes the lines.
func (l *Live) end() {
	l.once.Do(func() { close(l.stop) })
	l.hide()
}

func (l *Live) tick() {
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

// draw writes lines, and redraws the live lines below them if either changed.
func (l *Live) draw(above string) {
	if l.hidden {
		_, _ = io.WriteString(l.out, above)
		return
	}
	lines := l.lines()
	if above == "" && slices.Equal(lines, l.drawn) {
		return
	}
	text := l.erase() + above + strings.Join(lines, "\n")
	l.drawn = lines
	_, _ = io.WriteString(l.out, text) // a closed terminal stops no run
}

// erase moves to the first live line and clears the terminal from there.
func (l *Live) erase() string {
	if len(l.drawn) == 0 {
		return ""
	}
	up := ""
	if n := len(l.drawn) - 1; n > 0 {
		up = fmt.Sprintf("\x1b[%dA", n)
	}
	return up + "\r\x1b[J"
}

// lines returns the live lines that fit the terminal.
func (l *Live) lines() []string {
	width, height := l.size()
	var lines []string
	for _, t := range l.tasks {
		if t.step != "" {
			lines = append(lines, runewidth.Truncate(t.line(l.now()), max(width-1, 1), "…"))
		}
	}
	if room := max(height/2, 1); len(lines) > room {
		more := len(lines) - room + 1
		lines = append(lines[:room-1], runewidth.Truncate(fmt.Sprintf("… and %d more", more), max(width-1, 1), "…"))
	}
	return lines
}

func (t *liveTask) line(now time.Time) string {
	used := t.spent.Add(t.current)
	parts := []string{t.id, t.step, max(now.Sub(t.since), 0).Round(time.Second).String()}
	if tokens := used.Tokens(); tokens > 0 {
		parts = append(parts, Tokens(tokens))
	}
	if used.CostUSD >= 0.005 {
		parts = append(parts, fmt.Sprintf("$%.2f", used.CostUSD))
	}
	return Printable(strings.TrimSpace(strings.Join(append(parts, oneline.Of(t.doing)), "  ")))
}

// Tokens formats a number of tokens for people: 950 tok, 12.3k tok.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d tok", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk tok", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM tok", float64(n)/1_000_000)
}

func (l *Live) take(e event.Event) {
	if e.Task == "" {
		return
	}
	if e.Type.Stops() {
		l.tasks = slices.DeleteFunc(l.tasks, func(t *liveTask) bool { return t.id == e.Task })
		return
	}
	l.task(e.Task).take(e)
}

func (l *Live) task(id string) *liveTask {
	for _, t := range l.tasks {
		if t.id == id {
			return t
		}
	}
	t := &liveTask{id: id}
	l.tasks = append(l.tasks, t)
	return t
}

func (t *liveTask) take(e event.Event) {
	if t.step == "" && (e.Type == event.AgentStarted || e.Type == event.CheckStarted || e.Type == event.LimitMet) {
		t.step, t.since = StepName(e.Path), e.Time // an interrupted step continues
	}
	switch e.Type {
	case event.StepStarted:
		t.step, t.doing, t.since, t.current = StepName(e.Path), "", e.Time, provider.Usage{}
	case event.AgentUsage:
		u := event.As[event.Usage](e)
		t.current = provider.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite, CostUSD: u.Cost,
		}
	case event.LimitMet:
		t.doing = "waiting (limit) until " + Clock(event.As[event.Limit](e).At, e.Time)
	case event.LimitOver:
		t.doing = ""
	case event.AgentTool:
		t.doing = event.As[event.Tool](e).Summary
	case event.CheckStarted:
		t.doing = event.As[event.Check](e).Text
	case event.StepCompleted:
		t.spent = t.spent.Add(event.As[event.Result](e).Usage)
		t.step, t.doing, t.current = "", "", provider.Usage{}
	}
}
