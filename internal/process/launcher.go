package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Launcher starts children through the hidden launcher command of our own
// binary. It is safe for concurrent use and holds nothing open.
type Launcher struct {
	self []string
	want Containment
	mode func() mode // probes at its first call
	// network returns why programs cannot have a network of their own. It probes at its first call.
	network func() error
	// leftover limits the time between TERM and KILL for processes that a program leaves
	// behind.
	leftover time.Duration
}

// NewLauncher returns a launcher. self is the argv prefix of the launcher command,
// such as {"/proc/self/exe", "exec"}, which calls Main when run without further
// arguments. The environment variable ContainmentEnv forces a containment.
func NewLauncher(self ...string) (*Launcher, error) {
	if len(self) == 0 {
		return nil, errors.New("no launcher command given")
	}
	want, err := forcedContainment()
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
	l.mode, l.network = sync.OnceValue(l.probe), sync.OnceValue(l.probeNetwork)
	return l, nil
}

// Containment returns the containment of children. The first call, or the first Start,
// tests whether PID namespaces are available, which takes some milliseconds.
func (l *Launcher) Containment() Containment { return l.mode().containment }

// Refused returns the reason why PID namespaces are not available, or nil if they are
// or if a containment was forced.
func (l *Launcher) Refused() error { return l.mode().refused }

// Compare returns the command line of a program that reads the inputs of another one (see package reads) and prints the first one
// that is different now, in the same Dir and Boundary.
func (l *Launcher) Compare() []string {
	return append([]string{"/proc/self/exe"}, append(slices.Clone(l.self[1:]), compareStage)...)
}

// ready returns the mode for new children.
func (l *Launcher) ready() (mode, error) {
	m := l.mode()
	if m.containment == PIDNamespace && m.refused != nil {
		return m, fmt.Errorf("%s forces %s: %w", ContainmentEnv, PIDNamespace, m.refused)
	}
	return m, nil
}

// order adds the settings of the launcher to o.
func (l *Launcher) order(m mode, o order) order {
	o.Containment, o.UserNamespace = m.containment, m.userNamespace
	o.Self = texts(l.self)
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	o.Leftover = min(o.Grace, l.leftover)
	return o
}

// shim returns the command of a shim on a link, with an empty environment.
func (l *Launcher) shim(ctx context.Context, m mode, link *link) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.self[0], l.self[1:]...)
	cmd.Env = []string{}
	cmd.ExtraFiles = link.files()
	cmd.SysProcAttr = m.attributes(link.network)
	return cmd
}
