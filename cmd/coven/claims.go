package main

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
	"github.com/coven-run/coven/worktree"
)

// dead says why nobody will work on a task under this claim; empty when somebody
// may. at says of a session that is gone what may still work for it.
func (h *house) dead(ctx context.Context, held worktree.Held) (why, at string) {
	root, id := h.repo.Root, held.Session
	switch {
	case id == "" || !session.Exists(root, id):
		if at := h.atLarge(held); at != "" {
			return "", at
		}
		return fmt.Sprintf("its session %q is gone", id), ""
	case session.NeverBegan(root, id):
		return fmt.Sprintf("its session %s never began", id), ""
	case session.IsOver(root, id) && !h.retryable(ctx, held.Task):
		return fmt.Sprintf("its session %s is over", id), ""
	}
	return "", ""
}

// retryable says whether a task's last session has failed and left its worktree
// for coven retry.
func (h *house) retryable(ctx context.Context, id string) bool {
	v, err := session.OfTask(h.repo.Root, id)
	if err != nil || v.Status != session.Failed {
		return false
	}
	_, err = h.repo.Find(ctx, id)
	return err == nil
}

// atLarge says what may still work under a claim whose session is gone: the
// coven that made it, or one on another machine.
func (h *house) atLarge(held worktree.Held) string {
	host, pid := hostOf(held.Holder), pidOf(held.Holder)
	if host != machine() {
		if h.env.now().Before(held.Expires) {
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
		return "" // the number belongs to another program now
	}
	return "its coven (pid " + pid + ") still runs"
}

// abandoned says whether a task's owner is a session of this repository that
// will not work on it.
func (h *house) abandoned(owner string) bool {
	if !strings.HasPrefix(owner, actorPrefix) {
		return false
	}
	id := owner[strings.LastIndexByte(owner, '/')+1:]
	if !session.Exists(h.repo.Root, id) {
		return false
	}
	if session.NeverBegan(h.repo.Root, id) {
		return owner == actorOf(id)
	}
	v, err := session.Load(filepath.Join(h.repo.Root, session.Dir, id))
	return err == nil && owner == actorIn(v) && session.IsOver(h.repo.Root, id)
}

// halfDismissed says whether a session was rejected or cancelled, and still has
// the task: coven was killed in the middle.
func (h *house) halfDismissed(ctx context.Context, v session.View) bool {
	if v.Status != session.Cancelled && !v.Rejected {
		return false
	}
	held, err := h.repo.ClaimOf(ctx, v.Task)
	return err == nil && held.Session == v.ID
}
