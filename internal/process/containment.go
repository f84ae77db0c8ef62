package process

import (
	"fmt"
	"os"
	"strings"
)

// ContainmentEnv is the environment variable that forces a containment, by the
// name its String gives, on coven's launchers.
const ContainmentEnv = "COVEN_CONTAINMENT"

// Containment is the means by which a child's whole tree is held.
type Containment int

const (
	// PIDNamespace makes the shim the init of a namespace; the kernel ends the tree.
	PIDNamespace Containment = iota + 1
	// Subreaper makes the shim adopt every orphan and hunt until none is left.
	// A program that kills both the shim and its guard at once escapes.
	Subreaper
	// ProcessGroup makes the shim look for the tree in the kernel's list of all
	// processes: what descends from the shim, and what shares a session with that.
	// A process that starts a session of its own and loses its parent escapes.
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

// wanted reads what the user forces; 0 is no wish.
func wanted() (Containment, error) {
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

// mode is how this machine lets us contain.
type mode struct {
	containment   Containment
	userNamespace bool  // the PID namespace needs a user namespace around it
	refused       error // why a PID namespace cannot be had
}
