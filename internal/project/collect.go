package project

import (
	"os/exec"
	"syscall"

	"github.com/coven-run/coven/worktree/snapshot"
)

// background is the niceness of a process that nobody waits for.
const background = 10

// CollectLater starts a coven that collects the repository's garbage, if that is due. Nothing waits
// for the process, and it outlives this one. It decides itself whether it may collect.
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
		_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, background) // with the processes of git
		go func() { _ = cmd.Wait() }()                                          // a coven that goes on has no zombie
	}
}
