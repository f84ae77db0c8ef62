package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// RetryRequest asks to run steps of a task's session again.
type RetryRequest struct {
	Task string
	From string // step to start from, by name or path; empty for the failed step only
	// Fresh begins new conversations of agents, which are told about the earlier work.
	Fresh  bool
	Switch Switch
	// NewSettings takes the present settings instead of those with which the session began.
	NewSettings bool
}

// Retry runs the failed step again, or all steps from a given one, and continues the session. With new conversations or
// another provider, it also continues a session that was interrupted or waits.
func (c *Controller) Retry(ctx context.Context, r RetryRequest) (Outcome, error) {
	if err := c.CheckSwitch(ctx, r.Switch); err != nil {
		return Outcome{}, err
	}
	v, err := c.sessionOf(ctx, r.Task, session.View{})
	if err == nil {
		err = c.retryRefusal(ctx, v)
	}
	if err != nil {
		return Outcome{}, err
	}
	again := event.Resumed{Retry: v.Failing}
	if r.From != "" {
		path := stepAt(v, r.From)
		if path == "" {
			known := strings.Join(StepPaths(v), ", ")
			return Outcome{}, exit.Failedf("coven logs "+shellword.Word(v.Task), "task %s has run no step %q; it has run: %s", v.Task, r.From, known)
		}
		again = event.Resumed{Retry: path, From: true}
		if err := c.landedSince(ctx, v); err != nil {
			return Outcome{}, err
		}
	}
	to := r.Switch.in(v, c.Project.Config)
	again.Fresh, again.Provider, again.Model = r.Fresh, to.Provider, to.Model
	if r.Fresh && v.Info.Chat {
		return Outcome{}, exit.Usagef(ChatCommand(v.ID), "session %s is a chat: its conversation cannot be replaced", v.ID)
	}
	if r.NewSettings {
		if again.Settings = planning.Changed(ctx, c.Project, v); len(again.Settings) == 0 {
			return Outcome{}, exit.Failedf(NextOf(v), "the settings have not changed since the session of task %s began, except for the steps of its grimoire, which apply to new sessions", v.Task)
		}
	}
	if again.Retry == "" {
		if err := withoutFailure(v, r); err != nil {
			return Outcome{}, err
		}
	}
	return c.resumeAt(ctx, v, again)
}

// withoutFailure returns why a session in which no step has failed cannot be retried.
func withoutFailure(v session.View, r RetryRequest) error {
	switch {
	case !r.Fresh && !r.NewSettings && r.Switch == (Switch{}):
		return exit.Failedf(NextOf(v), "no step of task %s has failed: it is %s", v.Task, StateOf(v))
	case r.NewSettings && WaitsForReview(v):
		return nil
	}
	return Refusal(OpResume, v)
}

// retryRefusal returns why a session cannot be retried. A session that has failed can be
// retried as long as its worktree exists.
func (c *Controller) retryRefusal(ctx context.Context, v session.View) error {
	if err := Refusal(OpRetry, v); err != nil || v.Status != session.Failed {
		return err
	}
	if _, err := c.Project.Repo.Find(ctx, v.Task); errors.Is(err, worktree.ErrNoWorktree) {
		return &StateError{
			Operation: OpRetry, Task: v.Task, State: StateOf(v), Detail: "its worktree is gone: " + DetailOf(v),
			Code: exit.Failed, Next: "coven run " + shellword.Word(v.Task),
		}
	}
	return nil
}

// landedSince returns an ErrLanded if the session's change is on its target: the steps
// before the landing cannot run again in this session.
func (c *Controller) landedSince(ctx context.Context, v session.View) error {
	s, err := c.openForWriting(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	landing, err := c.landing(ctx, s, v)
	if err == nil && landing.New != "" {
		err = landed(v, landing.New)
	}
	return err
}

// stepAt returns the path of a step, given by its name or path, or "". The name of a loop means its first
// iteration.
func stepAt(v session.View, name string) string {
	for _, s := range v.Steps {
		last := s.Path[strings.LastIndexByte(s.Path, '/')+1:]
		bare, _, _ := strings.Cut(last, "#")
		if s.Path == name || terminal.StepName(s.Path) == name || bare == name {
			return s.Path
		}
		if strings.HasPrefix(s.Path, name+"[1]/") {
			return name + "[1]/"
		}
	}
	return ""
}

// StepPaths returns the steps that a session has run.
func StepPaths(v session.View) []string {
	var paths []string
	for _, s := range v.Steps {
		paths = append(paths, terminal.StepName(s.Path))
	}
	return paths
}
