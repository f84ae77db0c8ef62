package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeLimit limits how long setting up a namespace may take, which normally takes
// milliseconds.
const probeLimit = 20 * time.Second

// containments returns the containments of this platform, the best first.
func containments() []Containment { return []Containment{PIDNamespace, Subreaper, ProcessGroup} }

// attributes returns the attributes of a shim.
func (m mode) attributes(ownNetwork bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if m.containment != PIDNamespace {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC // IPC: shared memory of System V has no paths
	if ownNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	if m.userNamespace {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE} // for mounting /proc, and overlays, whose work directories have no permissions
		if ownNetwork {
			attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE)
		}
	}
	return attr
}

// probe determines the containment that this machine supports.
func (l *Launcher) probe() mode {
	if l.want == Subreaper || l.want == ProcessGroup {
		return mode{containment: l.want}
	}
	candidates := []mode{{containment: PIDNamespace, userNamespace: true}}
	if os.Geteuid() == 0 {
		candidates = append([]mode{{containment: PIDNamespace}}, candidates...)
	}
	var refused []error
	for _, m := range candidates {
		err := l.try(m, nil)
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

// try starts a shim that sets up its namespace, as for a program with a Boundary, and exits.
func (l *Launcher) try(m mode, network *Loopback) (err error) {
	link, err := connect(l.order(m, order{Probe: true, Inherit: true, Limits: &limits{}}), network)
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

// bind makes the kernel end a namespace together with coven, in addition to the
// control pipe.
func (m mode) bind(cmd *exec.Cmd) {
	if m.containment == PIDNamespace {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
}
