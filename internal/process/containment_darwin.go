package process

import (
	"errors"
	"os/exec"
	"syscall"
)

// errNoNamespaces is the reason why there is no better containment than ProcessGroup.
var errNoNamespaces = errors.New("macOS has none")

// containments returns the containments of this platform.
func containments() []Containment { return []Containment{ProcessGroup} }

// attributes returns the attributes of a shim.
func (mode) attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// probe returns the only mode of this platform.
func (*Launcher) probe() mode { return mode{containment: ProcessGroup, refused: errNoNamespaces} }

func (*Launcher) try(mode, *Loopback) error { return errNoNamespaces }

// bind does nothing: a shim notices coven's death only through its control pipe.
func (mode) bind(*exec.Cmd) {}
