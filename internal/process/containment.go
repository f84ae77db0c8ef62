package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ContainmentEnv is the environment variable that forces a containment, by the
// name its String gives, on coven's launchers.
const ContainmentEnv = "COVEN_CONTAINMENT"

// probeLimit is how long setting up a namespace may take before it counts as
// impossible. It takes milliseconds.
const probeLimit = 20 * time.Second

// Containment is the means by which a child's whole tree is held.
type Containment int

const (
	// PIDNamespace makes the shim the init of a namespace; the kernel ends the tree.
	PIDNamespace Containment = iota + 1
	// Subreaper makes the shim adopt every orphan and hunt until none is left.
	// A program that kills both the shim and its guard at once escapes.
	Subreaper
)

// String returns "pid-namespace" or "subreaper".
func (c Containment) String() string {
	switch c {
	case PIDNamespace:
		return "pid-namespace"
	case Subreaper:
		return "subreaper"
	}
	return "unknown"
}

// wanted reads what the user forces; 0 is no wish.
func wanted() (Containment, error) {
	name := os.Getenv(ContainmentEnv)
	for _, c := range []Containment{PIDNamespace, Subreaper} {
		if name == c.String() {
			return c, nil
		}
	}
	if name != "" {
		return 0, fmt.Errorf("%s is %q: must be %s or %s", ContainmentEnv, name, PIDNamespace, Subreaper)
	}
	return 0, nil
}

// mode is how this machine lets us contain.
type mode struct {
	containment   Containment
	userNamespace bool  // the PID namespace needs a user namespace around it
	refused       error // why a PID namespace cannot be had
}

// attributes are what a shim is started with.
func (m mode) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if m.containment != PIDNamespace {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS
	if m.userNamespace {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // for mounting /proc
	}
	return attr
}

// probe finds out how this machine lets us contain.
func (l *Launcher) probe() mode {
	if l.want == Subreaper {
		return mode{containment: Subreaper}
	}
	candidates := []mode{{containment: PIDNamespace, userNamespace: true}}
	if os.Geteuid() == 0 {
		candidates = append([]mode{{containment: PIDNamespace}}, candidates...)
	}
	var refused []error
	for _, m := range candidates {
		err := l.try(m)
		if err == nil {
			return m
		}
		refused = append(refused, err)
	}
	if l.want == PIDNamespace {
		return mode{containment: PIDNamespace, refused: errors.Join(refused...)}
	}
	return mode{containment: Subreaper, refused: errors.Join(refused...)}
}

// try starts a shim that sets its namespace up and ends.
func (l *Launcher) try(m mode) (err error) {
	link, err := newLink(l.order(m, order{Probe: true, Inherit: true}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, link.close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), probeLimit)
	defer cancel()
	cmd := l.shim(ctx, m, link)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("make PID namespace: %w", err)
	}
	if err := link.handOver(); err != nil {
		return err
	}
	var r report
	heard := json.NewDecoder(link.status).Decode(&r)
	ended := cmd.Wait()
	switch {
	case r.Failed != nil:
		return fmt.Errorf("set PID namespace up: %w", r.Failed.err())
	case !r.Ready:
		return fmt.Errorf("set PID namespace up: %w", errors.Join(heard, ended))
	}
	return nil
}
