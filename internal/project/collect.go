package project

import (
	"os/exec"
	"syscall"

	"github.com/coven-run/coven/worktree/snapshot"
)

// background is the niceness of a background process.
const background = 10

// CollectLater starts a background process that collects the repository's garbage, if that is due. The
// process outlives this one, and checks again whether it should collect.
func (p *Project) CollectLater() {
	if !p.Config.GC.Auto || !snapshot.CollectionDue(p.Repo, p.Env.Now()) {
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
