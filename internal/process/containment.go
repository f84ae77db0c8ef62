package process

import (
	"fmt"
	"os"
	"strings"
)

// ContainmentEnv is the environment variable that forces a containment, given by its
// String, on coven's launchers.
const ContainmentEnv = "COVEN_CONTAINMENT"

// Containment is the way in which a child's whole tree is contained.
type Containment int

const (
	// PIDNamespace makes the shim the init of a PID namespace; the kernel ends the tree.
	PIDNamespace Containment = iota + 1
	// Subreaper makes the shim adopt all orphans and kill processes until none is left. A
	// program that kills both the shim and its guard at once escapes.
	Subreaper
	// ProcessGroup makes the shim find the tree in the kernel's list of all processes: its
	// descendants, and the processes in their sessions. A process that starts its own
	// session and loses its parent escapes.
	ProcessGroup
)

// String returns "pid-namespace", "subreaper" or "process-group".
func (c Containment) String() string {
	switch c {
	case PIDNamespace:
		return "pid-namespace"
	case Subreaper:
		return "subreaper"
	case ProcessGroup:
		return "process-group"
	}
	return "unknown"
}

// forcedContainment returns the containment that the user forces, or 0.
func forcedContainment() (Containment, error) {
	name := os.Getenv(ContainmentEnv)
	var names []string
	for _, c := range containments() {
		if name == c.String() {
			return c, nil
		}
		names = append(names, c.String())
	}
	if name != "" {
		return 0, fmt.Errorf("%s is %q: must be %s", ContainmentEnv, name, strings.Join(names, " or "))
	}
	return 0, nil
}

// mode describes the containment that this machine supports.
type mode struct {
	containment   Containment
	userNamespace bool  // the PID namespace needs a user namespace around it
	refused       error // why PID namespaces are not available
}
