package process

import (
	"errors"
	"os/exec"
	"syscall"
)

// errNoNamespaces is why there is no better containment than ProcessGroup.
var errNoNamespaces = errors.New("macOS has none")

// containments are those of this platform.
func containments() []Containment { return []Containment{ProcessGroup} }

// attributes are what a shim is started with.
func (mode) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// probe has nothing to find out.
func (*Launcher) probe() mode { return mode{containment: ProcessGroup, refused: errNoNamespaces} }

// bind does nothing: coven's death reaches a shim through its control pipe only.
func (mode) bind(*exec.Cmd) {}
