package notice

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coven-run/coven/internal/config"
)

// machine is a fake environment.
type machine struct {
	env      map[string]string
	programs map[string]string // outputs by command line
	ran      []string
}

func (m *machine) sender(set func(*config.Notices)) *Sender {
	settings := config.Default().Notices
	if set != nil {
		set(&settings)
	}
	return New(settings, Environment{
		Getenv: func(name string) string { return m.env[name] },
		Hidden: func(text string) string { return strings.ReplaceAll(text, "s3cret", "***") },
		Find: func(program string) error {
			for line := range m.programs {
				if strings.HasPrefix(line, program+" ") {
					return nil
				}
			}
			return errors.New("not found")
		},
		Output: func(_ context.Context, program string, args ...string) (string, error) {
			line := program + " " + strings.Join(args, " ")
			m.ran = append(m.ran, line)
			for prefix, out := range m.programs {
				if strings.HasPrefix(line, prefix) && out != "fails" {
					return out, nil
				}
			}
			return "", errors.New("failed")
		},
	})
}

var one = []Notice{{Task: "bd-1", Title: "Fix it", Status: "waiting", State: "waiting (review)", Text: "ready"}}

const (
	ring     = "\a"
	osc9     = "\x1b]9;coven: bd-1 waiting (review): Fix it: ready\a"
	osc777   = "\x1b]777;notify;coven: bd-1 waiting (review);Fix it: ready\a"
	osc99    = "\x1b]99;i=coven:d=0:o=unfocused;coven: bd-1 waiting (review)\x1b\\\x1b]99;i=coven:d=1:p=body;Fix it: ready\x1b\\"
	passed   = "\x1bPtmux;\x1b\x1b]777;notify;coven: bd-1 waiting (review);Fix it: ready\a\x1b\\"
	passed99 = "\x1bPtmux;\x1b\x1b]99;i=coven:d=0:o=unfocused;coven: bd-1 waiting (review)\x1b\x1b\\\x1b\x1b]99;i=coven:d=1:p=body;Fix it: ready\x1b\x1b\\\x1b\\"
)

// Each terminal gets the notification that it is known to have, through tmux only if tmux allows it. Others get a bell.
func TestTerminals(t *testing.T) {
	tmux := func(terminal, allowed string) *machine {
		return &machine{
			env: map[string]string{"TMUX": "/tmp/x,1,0", "TMUX_PANE": "%3", "TERM": "tmux-256color", "TERM_PROGRAM": "tmux"},
			programs: map[string]string{
				"tmux display-message -t %3 -p #{client_termtype}": terminal + "\n", "tmux show-options -t %3 -Apv allow-passthrough": allowed + "\n",
			},
		}
	}
	env := func(pairs ...string) *machine {
		m := &machine{env: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			m.env[pairs[i]] = pairs[i+1]
		}
		return m
	}
	for name, c := range map[string]struct {
		*machine
		want string
	}{
		"kitty": {env("TERM", "xterm-kitty"), osc99}, "foot": {env("TERM", "foot-extra"), osc777},
		"iTerm2": {env("TERM", "xterm-256color", "TERM_PROGRAM", "iTerm.app"), osc9}, "WezTerm": {env("TERM_PROGRAM", "WezTerm"), osc777},
		"Ghostty over SSH": {env("TERM", "xterm-ghostty"), osc777}, "xterm": {env("TERM", "xterm-256color"), ring}, "GNU screen": {env("STY", "1", "TERM", "foot"), ring},
		"VS Code": {env("TERM", "xterm-256color", "TERM_PROGRAM", "vscode"), ring}, "nothing": {env(), ring},
		"foot in tmux": {tmux("foot(1.16.2) foot", "on"), passed}, "kitty in tmux": {tmux("kitty(0.36) xterm-kitty", "all"), passed99},
		"tmux forbids it": {tmux("foot(1.16.2) foot", "off"), ring}, "old tmux": {tmux("foot", "fails"), ring},
		"xterm in tmux": {tmux("XTerm(379) xterm-256color", "on"), ring}, "tmux fails": {env("TMUX", "x"), ring},
	} {
		if got := c.sender(nil).Deliver(t.Context(), one); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The settings choose the kind, and switch each way off.
func TestSettings(t *testing.T) {
	for terminal, want := range map[string]string{"osc9": osc9, "osc777": osc777, "osc99": osc99, "bell": ring, "off": ""} {
		m := &machine{env: map[string]string{"TERM": "foot"}}
		if got := m.sender(func(c *config.Notices) { c.Terminal = terminal }).Deliver(t.Context(), one); got != want {
			t.Errorf("%s: %q, want %q", terminal, got, want)
		}
	}
	off := (&machine{}).sender(func(c *config.Notices) { c.Terminal, c.Desktop = "off", "off" })
	if off.Enabled() || off.Wants("failed") || (*Sender)(nil).Enabled() {
		t.Error("notices are switched off")
	}
	s := (&machine{}).sender(nil)
	for status, want := range map[string]bool{"waiting": true, "blocked": true, "failed": true, "completed": false, "interrupted": false} {
		if s.Wants(status) != want {
			t.Errorf("%s: %v", status, !want)
		}
	}
	now := time.Now()
	if !s.Attentive(now.Add(-14*time.Second), now) || s.Attentive(now.Add(-16*time.Second), now) {
		t.Error("a person looks for 15 s after a key")
	}
}

// The desktop shows a notice if the terminal has only a bell. If that fails, the bell rings.
func TestDesktop(t *testing.T) {
	const command = "notify-send --app-name=coven -- coven: bd-1 waiting (review) Fix it: ready"
	for name, c := range map[string]struct {
		env     map[string]string
		desktop string
		sent    string
		want    string
	}{
		"a bell":         {map[string]string{"DISPLAY": ":0"}, "auto", "", ""},
		"Wayland":        {map[string]string{"WAYLAND_DISPLAY": "w"}, "auto", "", ""},
		"it fails":       {map[string]string{"DISPLAY": ":0"}, "auto", "fails", ring},
		"a notification": {map[string]string{"DISPLAY": ":0", "TERM": "foot"}, "auto", "", osc777},
		"both":           {map[string]string{"TERM": "foot"}, "on", "", ""},
		"over SSH":       {map[string]string{"DISPLAY": ":0", "SSH_CONNECTION": "x"}, "auto", "", ring},
		"off":            {map[string]string{"DISPLAY": ":0"}, "off", "", ring},
	} {
		m := &machine{env: c.env, programs: map[string]string{"notify-send --app": c.sent}}
		got := m.sender(func(n *config.Notices) { n.Desktop = c.desktop }).Deliver(t.Context(), one)
		if shown := len(m.ran) > 0; got != c.want || shown != (c.want == "" || c.sent != "") || shown && m.ran[0] != command {
			t.Errorf("%s: %q, %q", name, got, m.ran)
		}
	}
	m := &machine{env: map[string]string{"DISPLAY": ":0"}}
	if got := m.sender(nil).Deliver(t.Context(), one); got != ring || len(m.ran) > 0 {
		t.Errorf("without a program: %q, %q", got, m.ran)
	}
}

// A text can neither end a sequence nor begin another one, and has no secrets. Several tasks are one notice.
func TestTexts(t *testing.T) {
	hostile := "a\x1b\\\x1b]0;t\a\u009d;b\u202e\nc s3cret " + strings.Repeat("x", 300)
	for _, kind := range []Kind{OSC9, OSC777, OSC99} {
		s := (&machine{}).sender(func(c *config.Notices) { c.Terminal = string(kind) })
		got := s.Deliver(t.Context(), []Notice{{Task: hostile, Title: hostile, State: hostile, Text: hostile}})
		clean := (&machine{}).sender(func(c *config.Notices) { c.Terminal = string(kind) }).Deliver(t.Context(), one)
		if strings.Count(got, "\x1b") != strings.Count(clean, "\x1b") || strings.Count(got, "\a") != strings.Count(clean, "\a") || strings.ContainsAny(got, "\u009d\u202e\n") || strings.Contains(got, "s3cret") || len(got) > 700 {
			t.Errorf("%s: %q", kind, got)
		}
	}
	s := (&machine{}).sender(func(c *config.Notices) { c.Terminal = "osc777" })
	if got := s.Deliver(t.Context(), []Notice{{Task: "a"}, {Task: "b"}}); got != "\x1b]777;notify;coven: 2 tasks need you;a, b\a" {
		t.Errorf("%q", got)
	}
	if got := s.Deliver(t.Context(), []Notice{{Task: "a;b", State: "failed", Text: "why"}}); got != "\x1b]777;notify;coven: a,b failed;why\a" {
		t.Errorf("%q", got)
	}
	if got := s.Deliver(t.Context(), nil); got != "" {
		t.Errorf("nothing: %q", got)
	}
}

// Notices within the window are one, the last of each task. One that is dropped is not delivered.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delivered [][]string
		b := &Batch{Window: 2 * time.Second, Deliver: func(all []Notice) {
			var texts []string
			for _, n := range all {
				texts = append(texts, n.Task+" "+n.Text)
			}
			delivered = append(delivered, texts)
		}}
		b.Add(Notice{Task: "a", Text: "1"})
		<-time.After(time.Second)
		b.Add(Notice{Task: "b", Text: "1"})
		b.Add(Notice{Task: "a", Text: "2"})
		b.Add(Notice{Task: "c", Text: "1"})
		b.Drop("c")
		<-time.After(2 * time.Second)
		b.Add(Notice{Task: "d", Text: "1"})
		b.Clear()
		<-time.After(3 * time.Second)
		b.Add(Notice{Task: "a", Text: "3"})
		b.Flush()
		b.Flush()
		<-time.After(3 * time.Second)
		if want := [][]string{{"b 1", "a 2"}, {"a 3"}}; !reflect.DeepEqual(delivered, want) {
			t.Errorf("%q, want %q", delivered, want)
		}
	})
}

// Of two terminals, one tells of an edge, and none if the person has seen it.
func TestFirst(t *testing.T) {
	known := map[string]bool{}
	sender := func() *Sender {
		s := (&machine{}).sender(func(c *config.Notices) { c.Terminal = "osc777" })
		s.env.First = func(edge string) bool {
			defer func() { known[edge] = true }()
			return !known[edge]
		}
		return s
	}
	one, two := sender(), sender()
	both := []Notice{{Task: "a", Edge: "1"}, {Task: "b", Edge: "2"}, {Task: "c"}}
	one.Seen(both[0])
	if got := one.Deliver(t.Context(), both); !strings.HasSuffix(got, ";b, c\a") {
		t.Errorf("%q", got)
	}
	if got := two.Deliver(t.Context(), both); !strings.Contains(got, "coven: c;") {
		t.Errorf("%q", got)
	}
	if got := two.Deliver(t.Context(), both[:2]); got != "" || both[0].Task != "a" {
		t.Errorf("%q", got)
	}
}
