package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/session"
)

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check what coven needs, and what it left",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			code := exitOK
			for _, f := range a.examine(cmd.Context()) {
				mark := "ok  "
				if f.problem {
					mark, code = "FAIL", exitFailed
				}
				if err := a.say("%s  %-10s %s\n", mark, f.name, printable(f.text)); err != nil {
					return err
				}
				if f.next != "" {
					if err := a.say("      next: %s\n", f.next); err != nil {
						return err
					}
				}
			}
			return status(code)
		},
	}
}

// finding is what one check of doctor found.
type finding struct {
	name, text, next string
	problem          bool
}

func (a *app) examine(ctx context.Context) []finding {
	found := []finding{
		toolFound(ctx, "git", "install git 2.38 or newer", "git", "--version"),
		toolFound(ctx, "claude", "npm install -g @anthropic-ai/claude-code", "claude", "--version"),
	}
	h, err := a.open(ctx)
	if err != nil {
		return append(found, finding{name: "repository", text: err.Error(), next: hint(err), problem: true})
	}
	found = append(found, finding{name: "repository", text: h.repo.Root}, h.containment(), h.trackerState(ctx), h.checkState())
	return append(found, h.leftovers(ctx)...)
}

// toolTime bounds how long a program may take to say its version.
const toolTime = 30 * time.Second

func toolFound(ctx context.Context, name, next string, argv ...string) finding {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.WaitDelay = &out, time.Second
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return finding{name: name, text: "not on PATH", next: next, problem: true}
		}
		return finding{name: name, text: err.Error(), next: next, problem: true}
	}
	return finding{name: name, text: strings.TrimSpace(out.String())}
}

func (h *house) containment() finding {
	e, err := h.start()
	if err != nil {
		return finding{name: "processes", text: err.Error(), problem: true}
	}
	defer e.close()
	text := e.launcher.Containment().String()
	if why := e.launcher.Refused(); why != nil {
		text += fmt.Sprintf(" (no PID namespace: %v)", why)
	}
	return finding{name: "processes", text: "children are contained by a " + text + "; shell commands are not fenced yet"}
}

func (h *house) trackerState(ctx context.Context) finding {
	if h.noTasks != nil {
		return finding{name: "tasks", text: h.noTasks.Error(), problem: true}
	}
	ready, err := h.tracker.Ready(ctx)
	if err != nil {
		return finding{name: "tasks", text: err.Error(), problem: true}
	}
	return finding{name: "tasks", text: fmt.Sprintf("%d ready in %s", len(ready), h.tracker.Where())}
}

func (h *house) checkState() finding {
	checks, _ := h.checks()
	if len(checks) == 0 {
		return finding{name: "checks", text: "none: nothing is tested before it lands", next: "list checks in .coven/config.yaml"}
	}
	return finding{name: "checks", text: strings.Join(checks, "; ")}
}

// leftovers are sessions that wait for somebody and worktrees that nobody has.
func (h *house) leftovers(ctx context.Context) []finding {
	var found []finding
	views, err := session.List(h.repo.Root)
	if err != nil {
		found = append(found, finding{name: "sessions", text: err.Error(), problem: true})
	}
	owned := map[string]bool{}
	for _, v := range views {
		owned[v.Task] = owned[v.Task] || v.Ended.IsZero() || v.Status == session.Blocked
		if v.Status == session.Interrupted {
			found = append(found, finding{name: "session", text: v.Task + " was interrupted", next: nextOf(v)})
		}
	}
	trees, err := h.repo.Worktrees(ctx)
	if err != nil {
		return append(found, finding{name: "worktrees", text: err.Error(), problem: true})
	}
	for _, t := range trees {
		if !owned[t.TaskID] {
			found = append(found, finding{name: "worktree", text: t.Path + " belongs to no session that is under way", problem: true})
		}
	}
	return found
}
