// Package notice tells a person who looks elsewhere that tasks need them: by a notification of the terminal, by its bell, or
// on the desktop.
package notice

import (
	"context"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Notice is a task that has begun to need a person.
type Notice struct {
	Task   string // ID
	Title  string
	Status string // waiting, blocked or failed
	State  string // the same with its reason, such as "waiting (review)"
	Text   string // the question, or the reason
	Edge   string // identifies the state that the task has entered; empty if no other process tells of it
}

// Environment is the environment of the process whose terminal shows notices.
type Environment struct {
	Getenv func(string) string
	Hidden func(string) string // returns a text without secrets
	Find   func(program string) error
	Output func(ctx context.Context, program string, args ...string) (string, error)
	// First reports whether this process is the first to tell of an edge. It may be nil.
	First func(edge string) bool
}

// Of returns the environment of this process.
func Of(getenv, hidden func(string) string) Environment {
	return Environment{
		Getenv: getenv, Hidden: hidden,
		Find: func(program string) error {
			_, err := exec.LookPath(program)
			return err
		},
		Output: func(ctx context.Context, program string, args ...string) (string, error) {
			out, err := exec.CommandContext(ctx, program, args...).Output()
			return string(out), err
		},
	}
}

// programTime limits the running time of other programs.
const programTime = 5 * time.Second

// Sender delivers notices as the user's settings say.
type Sender struct {
	settings config.Notices
	env      Environment
	way      func() way // finds it once, when it is needed
}

// way is how notices reach the person.
type way struct {
	kind    Kind
	tmux    bool // the sequence goes through tmux
	desktop []string
}

// New returns a sender. It starts no program before the first notice.
func New(settings config.Notices, env Environment) *Sender {
	s := &Sender{settings: settings, env: env}
	s.way = sync.OnceValue(s.find)
	return s
}

// Enabled reports whether there can be notices.
func (s *Sender) Enabled() bool {
	return s != nil && (s.settings.Terminal != config.NoticesOff || s.settings.Desktop != config.NoticesOff)
}

// Window is the time in which notices are collected.
func (s *Sender) Window() time.Duration { return s.settings.Window }

// Wants reports whether notices of a status are configured.
func (s *Sender) Wants(status string) bool {
	return s.Enabled() && slices.Contains(s.settings.On, status)
}

// Attentive reports whether a person who acted at a time still looks at the result.
func (s *Sender) Attentive(acted, now time.Time) bool { return now.Sub(acted) < s.settings.Quiet }

// Seen records that the person knows of a notice, so that no other process tells of it.
func (s *Sender) Seen(n Notice) { s.isFirst(n) }

func (s *Sender) isFirst(n Notice) bool {
	return n.Edge == "" || s.env.First == nil || s.env.First(n.Edge)
}

// Deliver shows notices on the desktop, or returns the sequence that shows them in the terminal. It may take a while. It omits those
// of which another process has told.
func (s *Sender) Deliver(ctx context.Context, all []Notice) (sequence string) {
	if s.Enabled() {
		all = slices.DeleteFunc(slices.Clone(all), func(n Notice) bool { return !s.isFirst(n) })
	}
	if len(all) == 0 || !s.Enabled() {
		return ""
	}
	title, body := s.texts(all)
	w := s.way()
	if len(w.desktop) > 0 {
		ctx, cancel := context.WithTimeout(ctx, programTime)
		defer cancel()
		_, err := s.env.Output(ctx, w.desktop[0], slices.Concat(w.desktop[1:], []string{title, body})...)
		if err == nil {
			return ""
		}
	}
	return sequenceOf(w.kind, w.tmux, title, body)
}

// Limits of the texts of a notice, in characters.
const (
	maxTitle = 60
	maxBody  = 200
)

// texts returns the title and the body of a notification.
func (s *Sender) texts(all []Notice) (title, body string) {
	if n := all[0]; len(all) == 1 {
		title, body = n.Task+" "+n.State, n.Title+terminal.Colon(n.Text)
	} else {
		var tasks []string
		for _, n := range all {
			tasks = append(tasks, n.Task)
		}
		title, body = oneline.Count(len(all), "task")+" need you", oneline.List(tasks)
	}
	clean := func(text string, most int) string { return terminal.Clip(s.env.Hidden(text), most) }
	return clean("coven: "+title, maxTitle), clean(strings.TrimPrefix(body, ": "), maxBody)
}

// find finds the way.
func (s *Sender) find() way {
	w := way{kind: Kind(s.settings.Terminal)}
	inTmux := s.env.Getenv("TMUX") != ""
	if w.kind == Auto {
		w.kind = s.detect(inTmux)
	}
	if inTmux && w.kind.isSequence() {
		if w.tmux = s.passes(); !w.tmux {
			w.kind = Bell
		}
	}
	if s.settings.Desktop == config.NoticesOn || s.settings.Desktop == config.NoticesAuto && !w.kind.isSequence() && s.hasDesktop() {
		w.desktop = s.desktop()
	}
	return w
}

// hasDesktop reports whether the person probably sits at the desktop of this machine.
func (s *Sender) hasDesktop() bool {
	if s.env.Getenv("SSH_CONNECTION") != "" || s.env.Getenv("CI") != "" {
		return false
	}
	return runtime.GOOS == "darwin" || s.env.Getenv("DISPLAY") != "" || s.env.Getenv("WAYLAND_DISPLAY") != ""
}

// desktop returns the command that shows a notification with a title and a body on the desktop, or nil if there is none.
func (s *Sender) desktop() []string {
	for _, command := range [][]string{
		{"notify-send", "--app-name=coven", "--"},
		{"osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run"},
	} {
		if s.env.Find(command[0]) == nil {
			return command
		}
	}
	return nil
}
