package terminal

import (
	"strings"

	"github.com/coven-run/coven/internal/event"
)

// SGR codes of colors.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// Colored returns draw with colors: green for success and landings, red for failures, yellow for warnings.
func Colored(draw func(event.Event) string) func(event.Event) string {
	return func(e event.Event) string { return Color(draw(e), colorOf(e)) }
}

// Color adds an SGR code to each line of a text, unless the code is empty.
func Color(text, code string) string {
	if text == "" || code == "" {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "\x1b[" + code + "m" + line + "\x1b[m"
		}
	}
	return strings.Join(lines, "\n") + text[len(strings.TrimSuffix(text, "\n")):]
}

func colorOf(e event.Event) string {
	switch e.Type {
	case event.CheckEnded:
		if event.As[event.Receipt](e).ExitCode == 0 {
			return Green
		}
		return Red
	case event.StepCompleted:
		if r := event.As[event.Result](e); !r.OK && r.ErrorType != event.ErrorRevise {
			return Red
		}
	case event.LandDone:
		return Green
	case event.AgentToolFailed, event.AgentStuck:
		return Red
	case event.GateDecided:
		if !event.As[event.Decision](e).Allowed {
			return Red
		}
	case event.Warning:
		return Yellow
	}
	return ""
}

// DiffColor returns the SGR code that git uses for a line of a diff. It is empty for a line without a color.
func DiffColor(line string) string {
	switch {
	case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "index "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return "1"
	case strings.HasPrefix(line, "@@"):
		return Cyan
	case strings.HasPrefix(line, "+"):
		return Green
	case strings.HasPrefix(line, "-"):
		return Red
	}
	return ""
}
