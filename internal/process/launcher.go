package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Launcher starts children through the hidden launcher command of our own
// binary. It is safe for concurrent use and holds nothing open.
type Launcher struct {
	self []string
	want Containment
	mode func() mode // probes at its first call
	// leftover is the longest that what a program left behind gets between TERM
	// and KILL.
	leftover time.Duration
}

// NewLauncher takes the argv prefix of the launcher command, such as
// {"/proc/self/exe", "exec"}: what, run without further arguments, calls Main.
// The environment variable ContainmentEnv forces a containment.
func NewLauncher(self ...string) (*Launcher, error) {
	if len(self) == 0 {
		return nil, errors.New("no launcher command given")
	}
	want, err := wanted()
	if err != nil {
		return nil, err
	}
	return newLauncher(want, self)
}

func newLauncher(want Containment, self []string) (*Launcher, error) {
	path, err := exec.LookPath(self[0])
	if err != nil {
		return nil, fmt.Errorf("find launcher: %w", err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("find launcher: %w", err)
	}
	l := &Launcher{self: append([]string{path}, self[1:]...), want: want, leftover: leftoverGrace}
	l.mode = sync.OnceValue(l.probe)
	return l, nil
}

// Containment says how children are held. Its first call, or the first Start,
// tries out whether a PID namespace can be had, which takes some milliseconds.
func (l *Launcher) Containment() Containment { return l.mode().containment }

// Refused says why a PID namespace cannot be had; nil when it can or when the
// subreaper was asked for.
func (l *Launcher) Refused() error { return l.mode().refused }

// ready returns the mode to start a child in.
func (l *Launcher) ready() (mode, error) {
	m := l.mode()
	if m.containment == PIDNamespace && m.refused != nil {
		return m, fmt.Errorf("%s forces %s: %w", ContainmentEnv, PIDNamespace, m.refused)
	}
	return m, nil
}

// order completes o with what every shim must know.
func (l *Launcher) order(m mode, o order) order {
	o.Containment, o.UserNamespace = m.containment, m.userNamespace
	o.Self = texts(l.self)
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	o.Leftover = min(o.Grace, l.leftover)
	return o
}

// shim is the command of a shim on that link, with an empty environment.
func (l *Launcher) shim(ctx context.Context, m mode, link *link) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.self[0], l.self[1:]...)
	cmd.Env = []string{}
	cmd.ExtraFiles = link.theirs
	cmd.SysProcAttr = m.attributes()
	return cmd
}
