package project

import (
	"os/exec"
	"syscall"

	"github.com/coven-run/coven/worktree/snapshot"
)

// background is the niceness of a background process.
const background = 10

// NeedsCollection reports whether an automatic collection of the repository's garbage is due, or its objects should be packed.
func (p *Project) NeedsCollection() bool {
	return p.Config.GC.Auto && (snapshot.CollectionDue(p.Repo, p.Env.Now()) || snapshot.PackDue(p.Repo, p.Env.Now()))
}

// CollectLater starts a background process that collects the repository's garbage, if that is necessary. The
// process outlives this one, and checks again.
func (p *Project) CollectLater() {
	if !p.NeedsCollection() {
		return
	}
	self, err := p.Env.Self()
	if err != nil {
		return // the next run tries again
	}
	cmd := exec.Command(self, "gc", "--auto") //nolint:noctx // it outlives this process
	cmd.Dir, cmd.Env = p.Repo.Root, p.Env.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() == nil {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, background) // includes its git processes
		go func() { _ = cmd.Wait() }()                                          // avoids a zombie while coven runs
	}
}
