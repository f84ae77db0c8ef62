package notice

import (
	"context"
	"strings"
)

// Kind is how a terminal shows a notice. The values are those of the setting notices.terminal.
type Kind string

// Kinds of notices in terminals.
const (
	Auto   Kind = "auto"   // the best one that the terminal is known to have
	OSC9   Kind = "osc9"   // a notification with one text: iTerm2, Warp and others
	OSC777 Kind = "osc777" // a notification with a title: foot, Ghostty, WezTerm, urxvt
	OSC99  Kind = "osc99"  // kitty's notifications
	Bell   Kind = "bell"
	Off    Kind = "off"
)

func (k Kind) isSequence() bool { return k == OSC9 || k == OSC777 || k == OSC99 }

const (
	escape     = "\x1b"
	bell       = "\a"
	terminator = escape + `\`
)

// sequenceOf returns the control sequence of a notification. Its texts must have no control characters.
func sequenceOf(kind Kind, tmux bool, title, body string) string {
	var sequence string
	switch kind {
	case Bell:
		return bell
	case OSC9: // ConEmu and others read a number at the beginning as a command, and a title has none there
		sequence = escape + "]9;" + strings.TrimSuffix(title+": "+body, ": ") + bell
	case OSC777:
		sequence = escape + "]777;notify;" + strings.ReplaceAll(title, ";", ",") + ";" + body + bell
	case OSC99: // kitty shows it only while its window is not focused
		sequence = escape + "]99;i=coven:d=0:o=unfocused;" + title + terminator + escape + "]99;i=coven:d=1:p=body;" + body + terminator
	default:
		return ""
	}
	if tmux {
		return escape + "Ptmux;" + strings.ReplaceAll(sequence, escape, escape+escape) + terminator
	}
	return sequence
}

// detect returns the best kind that the terminal is known to have.
func (s *Sender) detect(inTmux bool) Kind {
	switch {
	case inTmux:
		return kindOf(s.tmux("display-message", "-p", "#{client_termtype} #{client_termname}"))
	case s.env.Getenv("STY") != "": // GNU screen
		return Bell
	}
	return kindOf(s.env.Getenv("TERM_PROGRAM") + " " + s.env.Getenv("TERM"))
}

// kindOf returns the kind of a terminal with one of these names, which spaces separate.
func kindOf(names string) Kind {
	for name := range strings.FieldsSeq(strings.ToLower(names)) {
		for prefix, kind := range map[string]Kind{
			"kitty": OSC99, "xterm-kitty": OSC99, "iterm": OSC9, "warp": OSC9,
			"ghostty": OSC777, "xterm-ghostty": OSC777, "foot": OSC777, "wezterm": OSC777,
		} {
			if strings.HasPrefix(name, prefix) {
				return kind
			}
		}
	}
	return Bell
}

// passes reports whether tmux passes sequences of this pane on to its terminal.
func (s *Sender) passes() bool {
	allowed := s.tmux("show-options", "-Apv", "allow-passthrough")
	return allowed == "on" || allowed == "all"
}

// tmux returns the output of a command of tmux about this pane. It is empty after an error.
func (s *Sender) tmux(command string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), programTime)
	defer cancel()
	out, err := s.env.Output(ctx, "tmux", append([]string{command, "-t", s.env.Getenv("TMUX_PANE")}, args...)...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
