package control

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/worktree"
)

// Retry runs the step that failed again, or everything from a step on.
func (c *Controller) Retry(ctx context.Context, id, from string) (runner.Outcome, error) {
	v, err := c.Project.Find(id)
	if err != nil {
		return runner.Outcome{}, err
	}
	task := shellword.Word(id)
	switch v.Status {
	case session.Running:
		return runner.Outcome{}, exit.Personf("coven cancel "+task, "task %s: another coven is working on it", id)
	case session.Completed, session.Cancelled:
		return runner.Outcome{}, exit.Failedf("coven run "+task, "task %s is %s: its session cannot continue", id, StateOf(v))
	case session.Failed:
		if _, err := c.Project.Repo.Find(ctx, id); errors.Is(err, worktree.ErrNoWorktree) {
			return runner.Outcome{}, exit.Failedf("coven run "+task, "task %s is over, its worktree is gone: %s", id, oneline.Of(v.Detail))
		}
	}
	again := event.Resumed{Retry: v.Failing}
	if from != "" {
		path := stepAt(v, from)
		if path == "" {
			return runner.Outcome{}, exit.Failedf("coven logs "+task, "task %s has run no step %q; it has run: %s", id, from, strings.Join(StepPaths(v), ", "))
		}
		again = event.Resumed{Retry: path, From: true}
		if err := c.landedSince(ctx, v); err != nil {
			return runner.Outcome{}, err
		}
	}
	if again.Retry == "" {
		return runner.Outcome{}, exit.Failedf("coven resume "+task, "no step of task %s has failed: it is %s", id, StateOf(v))
	}
	return c.resumeAt(ctx, v, again)
}

// landedSince is an error when the session's change is on its target: steps
// before that cannot run again in this session.
func (c *Controller) landedSince(ctx context.Context, v session.View) error {
	s, err := c.take(v)
	if err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	landing, err := c.landing(ctx, s, v)
	if err == nil && landing.New != "" {
		err = landedError(v, landing)
	}
	return err
}

// stepAt finds the path of a step that a person names: by its name, its path, or
// as a loop, whose first iteration it is then.
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
