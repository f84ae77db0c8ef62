package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
)

// progress shows a session's events as they come. It never holds up the run:
// events queue until the screen takes them.
type progress struct {
	out  io.Writer
	draw func(event.Event) string // the lines of an event, or ""
	live *liveLine                // nil where there is no terminal

	mu     sync.Mutex
	queue  []event.Event
	closed bool
	wake   *sync.Cond
	done   chan struct{}
}

// newProgress shows events with draw on out. On a terminal the last line is
// live: it says what goes on and for how long.
func newProgress(out io.Writer, draw func(event.Event) string, live *liveLine) *progress {
	p := &progress{out: out, draw: draw, live: live, done: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	go p.show()
	return p
}

// see takes an event. It does not block.
func (p *progress) see(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, e)
	p.wake.Signal()
}

// flushTime bounds how long coven waits at its end for a screen that does not
// take what it is given.
const flushTime = 5 * time.Second

// close returns when everything is shown, or the screen does not take it.
func (p *progress) close() {
	p.mu.Lock()
	p.closed = true
	p.wake.Signal()
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-time.After(flushTime):
	}
}

func (p *progress) show() {
	defer close(p.done)
	for {
		events, more := p.next()
		for _, e := range events {
			text := p.draw(e)
			if p.live != nil {
				p.live.print(text, e)
			} else {
				_, _ = io.WriteString(p.out, text) // a closed pipe stops no run
			}
		}
		if !more {
			if p.live != nil {
				p.live.end()
			}
			return
		}
	}
}

func (p *progress) next() (events []event.Event, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 && !p.closed {
		p.wake.Wait()
	}
	events, p.queue = p.queue, nil
	return events, len(events) > 0 || !p.closed
}

// jsonLine is an event as --json prints it.
func jsonLine(e event.Event) string {
	line, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return string(line) + "\n"
}

// plainLines is an event as people read it; empty for what they need not see.
func plainLines(e event.Event) string {
	text := story(e)
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(&b, "%s  %s\n", printable(e.Task), printable(line))
	}
	return b.String()
}

// story says what happened in words, where it matters to a person.
func story(e event.Event) string {
	switch e.Type {
	case event.StepStarted:
		return stepName(e.Path) + ": started"
	case event.AgentText:
		if text := runner.WithoutClaim(decoded[event.Text](e).Text); text != "" {
			return indent(text, "  │ ")
		}
	case event.AgentTool:
		return "  → " + decoded[event.Tool](e).Summary
	case event.AgentRetry:
		return "  … " + decoded[event.Text](e).Text
	case event.GateDecided:
		if d := decoded[event.Decision](e); !d.Allowed {
			return "  ✗ refused " + d.Tool + ": " + d.Reason
		}
	case event.CheckStarted:
		return "  $ " + decoded[event.Check](e).Text
	case event.CheckEnded:
		return "    " + receiptText(decoded[event.Receipt](e))
	case event.StepCompleted:
		return stepEnd(e)
	case event.LandDone:
		l := decoded[event.Landing](e)
		return fmt.Sprintf("landed %.10s on %s", l.New, strings.TrimPrefix(l.Target, "refs/heads/"))
	case event.Warning:
		return "warning: " + decoded[event.Text](e).Text
	}
	return ""
}

func receiptText(r event.Receipt) string {
	took := r.Duration.Round(time.Millisecond)
	if r.ExitCode == 0 {
		return fmt.Sprintf("ok (%s)", took)
	}
	return fmt.Sprintf("failed with exit code %d (%s)", r.ExitCode, took)
}

func stepEnd(e event.Event) string {
	r := decoded[runner.Result](e)
	if r.OK {
		return stepName(e.Path) + ": done"
	}
	text := stepName(e.Path) + ": failed: " + r.Error
	if e.Path != "" && r.Output != "" && len(r.Receipts) > 0 {
		text = indent(lastLines(r.Output), "    | ") + "\n" + text
	}
	return text
}

// fewLines is how much of a failed check's output is shown.
const fewLines = 10

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-fewLines):], "\n")
}

// stepName is a step's path without the number of a first attempt.
func stepName(path string) string { return strings.TrimSuffix(path, "#1") }

func decoded[T any](e event.Event) T {
	var data T
	_ = e.Decode(&data) // a line that cannot be read shows its zero value
	return data
}

func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+prefix)
}

// printable makes a text safe for a terminal: what an agent says cannot move
// the cursor, set titles or colors.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return '�'
		}
		return r
	}, text)
}
