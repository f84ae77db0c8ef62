package project

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/worktree/claim"
)

// Dead returns why no process can be working under a claim any longer, or "" if one may. If its session is
// gone, at describes the process that may still be working.
func (p *Project) Dead(ctx context.Context, held claim.Held) (why, at string) {
	root, id := p.Repo.Root, held.Session
	switch {
	case id == "" || !session.Exists(root, id):
		if at := p.AtLarge(held); at != "" {
			return "", at
		}
		return fmt.Sprintf("its session %q is gone", id), ""
	case session.NeverStarted(root, id):
		return fmt.Sprintf("its session %s never started", id), ""
	case session.IsOver(root, id) && !p.Retryable(ctx, held.Task):
		return fmt.Sprintf("its session %s is over", id), ""
	}
	return "", ""
}

// Retryable reports whether a task's last session failed and its worktree still exists.
func (p *Project) Retryable(ctx context.Context, id string) bool {
	v, err := p.Finder.OfTask(id)
	if err != nil || v.Status != session.Failed {
		return false
	}
	_, err = p.Repo.Find(ctx, id)
	return err == nil
}

// AtLarge describes the process that may still be working under a claim whose session is gone: the
// coven that made the claim, or a coven on another machine. It returns "" if there is none.
func (p *Project) AtLarge(held claim.Held) string {
	host, pid := holder.HostOf(held.Holder), holder.PidOf(held.Holder)
	if host != holder.Machine() {
		if p.Env.Now().Before(held.Expires) {
			return fmt.Sprintf("%s may still work on it until %s", cmp.Or(host, "another machine"), held.Expires.Local().Format(time.DateTime))
		}
		return ""
	}
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 || errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
		return ""
	}
	line, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
	program, _, _ := bytes.Cut(line, []byte{0})
	if err == nil && filepath.Base(string(program)) != "coven" {
		return "" // the PID has been reused by another program
	}
	return "its coven (pid " + pid + ") is still running"
}

// Abandoned reports whether a task's owner is a session of this repository that
// will not continue.
func (p *Project) Abandoned(owner string) bool {
	if !strings.HasPrefix(owner, holder.ActorPrefix) {
		return false
	}
	id := owner[strings.LastIndexByte(owner, '/')+1:]
	if !session.Exists(p.Repo.Root, id) {
		return false
	}
	if session.NeverStarted(p.Repo.Root, id) {
		return owner == holder.ActorOf(id)
	}
	v, err := session.Load(filepath.Join(p.Repo.Root, session.Dir, id))
	return err == nil && owner == holder.ActorIn(v) && session.IsOver(p.Repo.Root, id)
}

// HalfDismissed reports whether a session was rejected or cancelled but still holds the claim,
// because coven was killed in between.
func (p *Project) HalfDismissed(ctx context.Context, v session.View) bool {
	if v.Status != session.Cancelled && !v.Rejected {
		return false
	}
	held, err := claim.Of(ctx, p.Repo, v.Task)
	return err == nil && held.Session == v.ID
}
