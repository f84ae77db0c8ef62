package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/runner"
)

// jsonLine is an event as --json prints it.
func jsonLine(e event.Event) string {
	line, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return string(line) + "\n"
}

// plainLines is an event as people read it; empty for what they need not see.
func plainLines(e event.Event) string { return lines(e, "") }

// taskLines is plainLines where several tasks speak: each line says of which.
func taskLines(e event.Event) string { return lines(e, printable(e.Task)+"  ") }

func lines(e event.Event, prefix string) string {
	text := story(e)
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(prefix + printable(line) + "\n")
	}
	return b.String()
}

// story says what happened in words, where it matters to a person.
func story(e event.Event) string {
	switch e.Type {
	case event.StepStarted:
		return stepName(e.Path) + ": started"
	case event.AgentStarted:
		return "→ Running build agent..."
	case event.AgentText:
		if text := runner.WithoutClaim(decoded[event.Text](e).Text); text != "" {
			return indent(text, "  │ ")
		}
	case event.AgentTool:
		return "  → " + decoded[event.Tool](e).Summary
	case event.AgentMessage:
		m := decoded[event.Message](e)
		return indent(m.By+": "+m.Text, "  » ")
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
	switch {
	case r.Agent != "" && r.OK:
		return stepName(e.Path) + ": done\n  " + firstRunes(r.Summary)
	case r.Agent != "":
		severity := "error"
		if r.Tolerated {
			severity = "warning"
		}
		return fmt.Sprintf("  ✗ %s failed: %s: %s (%s)", r.Agent, r.ErrorType, oneLine(r.Error), severity)
	case r.OK:
		return stepName(e.Path) + ": done"
	}
	text := stepName(e.Path) + ": failed: " + r.Error
	if e.Path != "" && r.Output != "" && len(r.Receipts) > 0 {
		text = indent(lastLines(r.Output), "    | ") + "\n" + text
	}
	return text
}

// summaryRunes is how much of an agent's summary is shown.
const summaryRunes = 100

// firstRunes is the beginning of a text, as one line.
func firstRunes(text string) string {
	runes := []rune(oneLine(text))
	return string(runes[:min(summaryRunes, len(runes))])
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
