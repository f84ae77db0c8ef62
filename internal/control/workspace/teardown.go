package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/worktree"
)

// Teardown describes the commands that run in a worktree before it is removed.
type Teardown struct {
	Commands []string      // for sh -c; all run, even after one has failed
	Timeout  time.Duration // of all together
}

// errTeardownTime is the cause with which the context of a teardown ends.
var errTeardownTime = errors.New("it took too long")

// TearDown runs t in the worktree of the task, if there is one. Failing commands cause only warnings. If it
// returns an error, the worktree must not be removed: its state could not be restored, or a command changed
// files that no program of a task may change.
func (s *Workspace) TearDown(ctx context.Context, t Teardown) error {
	if len(t.Commands) == 0 {
		return nil
	}
	tree, err := s.Repo.Find(ctx, s.Task)
	if err != nil {
		return nil //nolint:nilerr // it is gone or was never complete: there is nothing to tear down
	}
	s.use(tree)
	ctx = context.WithoutCancel(ctx)
	if err := s.collect(ctx); err != nil {
		return fmt.Errorf("worktree.teardown: %w", err)
	}
	begun, err := worktree.BeginTeardown(ctx, tree, s.Session.ID)
	if err != nil {
		return fmt.Errorf("worktree.teardown: %w", err)
	}
	if err := s.watched(ctx, "worktree.teardown", func() { s.tearDown(ctx, t) }); err != nil {
		return err
	}
	changed, rescue, err := begun.End(ctx)
	if err != nil {
		return fmt.Errorf("worktree.teardown: %w", err)
	}
	if len(changed) > 0 {
		s.warn("worktree.teardown changed files of the task, which were restored: " + strings.Join(changed, ", "))
	}
	if rescue != "" {
		s.warn("worktree.teardown moved the branch; it was restored, and its commits are saved as " + rescue)
	}
	return nil
}

// watched calls work, which runs programs of the task for a purpose such as worktree.teardown. It returns an error if they changed state that no
// program of a task may change.
func (s *Workspace) watched(ctx context.Context, purpose string, work func()) error {
	if err := s.Watch(ctx); err != nil {
		return err
	}
	work()
	change, err := s.Compare(ctx)
	if err != nil || change == nil {
		return errors.Join(err, s.EndWatch())
	}
	s.warn(change.Summary() + change.Undo())
	if err := s.EndWatch(); err != nil {
		return err
	}
	if change.Severity == event.SeverityStops {
		return fmt.Errorf("%s: %s", purpose, change.Summary())
	}
	return nil
}

// tearDown runs the commands until their time is up.
func (s *Workspace) tearDown(ctx context.Context, t Teardown) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Timeout, errTeardownTime)
	defer cancel()
	log, done := s.teardownLog()
	defer done()
	for _, command := range t.Commands {
		output, err := s.teardownCommand(ctx, command, log)
		switch {
		case ctx.Err() != nil:
			s.warn(fmt.Sprintf("worktree.teardown: %s was stopped: the teardown took longer than %s%s", command, t.Timeout, lastLine(output)))
			return
		case err != nil:
			s.warn(fmt.Sprintf("worktree.teardown: %s: %v%s", command, err, lastLine(output)))
		}
	}
}

func (s *Workspace) teardownCommand(ctx context.Context, command string, log io.Writer) (output string, err error) {
	dir, err := s.Dir("")
	if err != nil {
		return "", err
	}
	err = s.Isolated(ctx, func() error {
		exit, printed, err := s.Run(ctx, process.Spec{Argv: []string{"sh", "-c", command}, Dir: dir, Transcript: log})
		output = s.Secrets.Text(string(printed))
		if err == nil && !exit.OK() {
			err = errors.New(exit.String())
		}
		return err
	})
	return output, err
}

// teardownLog opens the log of the teardown. A session that is over has none.
func (s *Workspace) teardownLog() (log io.Writer, done func()) {
	if s.Warn != nil {
		return io.Discard, func() {}
	}
	file, _, err := s.Session.OpenLog(fmt.Sprintf("worktree@%d/teardown#1", s.Worktree.Number))
	if err != nil {
		return io.Discard, func() {}
	}
	return file, func() { _ = file.Close() } // the log is for people
}

// lastLine returns the last line of an output, as the suffix of a reason.
func lastLine(output string) string {
	output = strings.TrimSpace(output)
	if output == "" {
		return ""
	}
	return ": " + strings.TrimSpace(output[strings.LastIndexByte(output, '\n')+1:])
}

// warn records a warning of the session, or passes it to Warn.
func (s *Workspace) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
		return
	}
	_ = s.Session.Append(event.Event{Type: event.Warning}, event.Text{Text: text}) // if the journal is broken, the next event fails
}
