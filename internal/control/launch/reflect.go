package launch

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/reflection"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/tool"
)

// attempt is one try of a subagent whose work is evaluated.
type attempt struct {
	report   driver.Report
	snapshot *event.Snapshot // of the worktree after it, or nil if the subagent cannot write
}

// reflect runs the subagent, has its work evaluated, and runs it again with the critique until an attempt
// passes or none is left. Then the attempt with the best score counts. outer is without the limits of the
// subagent.
func (r *subagent) reflect(ctx, outer context.Context, by grimoires.Reflection) error {
	var all []attempt
	var scores []float64
	for n, task := 1, r.child.Task; ; n++ {
		report, err := r.converse(ctx, r.worker(), task)
		status, failed := r.outcome(outer, report, err)
		r.report = report
		if failed != nil && (len(all) == 0 || status != event.StatusFailed) {
			return err
		}
		done, err := r.attempted(outer, n, report, failed)
		if err != nil {
			return err
		}
		if failed != nil {
			return r.best(outer, all, scores, n)
		}
		all = append(all, done)
		verdict, judged, err := r.evaluate(ctx, outer, n, by.Criteria)
		if err != nil {
			return err
		}
		scores = append(scores, verdict.Score)
		if verdict.Passed {
			r.attempt = n
			return nil
		}
		if !judged || n > by.MaxRetries {
			return r.best(outer, all, scores, n)
		}
		task = reflection.Refine(r.child.Task, n, verdict.Critique)
	}
}

// attempted records the end of an attempt.
func (r *subagent) attempted(ctx context.Context, n int, report driver.Report, failed *event.SpawnError) (attempt, error) {
	done := attempt{report: report}
	if !r.readOnly() {
		snapshot, err := r.Workspace.Snapshot(ctx, fmt.Sprintf("after attempt %d of %s", n, r.id))
		if err != nil {
			return done, err
		}
		done.snapshot = &snapshot
	}
	failpoint.Point("reflection.attempted")
	return done, r.emit(event.SpawnAttempted, r.path(), event.Attempt{ID: r.id, Attempt: n, Report: report.Text, Error: failed, Snapshot: done.snapshot})
}

// evaluate asks an evaluator about the last report. judged is false if the evaluator could not answer, so that there is
// no critique for another attempt. An unreadable answer counts as an answer.
func (r *subagent) evaluate(ctx, outer context.Context, n int, criteria string) (verdict reflection.Verdict, judged bool, err error) {
	tool.Progress(ctx, fmt.Sprintf("%s: evaluates attempt %d", r.child.Agent, n))
	answer, err := r.converse(ctx, r.evaluator(), reflection.Question(r.child.Task, r.report.Text, criteria))
	status, failed := r.outcome(outer, answer, err)
	if failed != nil && status != event.StatusFailed {
		return verdict, false, cmp.Or(err, context.Cause(outer))
	}
	result := event.Evaluation{ID: r.id, Attempt: n}
	switch {
	case failed != nil && failed.Type == event.ErrorOutput:
		verdict, judged = reflection.Verdict{Critique: reflection.Unreadable}, true
		result.Error = "the evaluator ended without an answer"
	case failed != nil:
		result.Error = fmt.Sprintf("the evaluator failed: %s: %s", failed.Type, failed.Message)
	default:
		judged = true
		if verdict, err = reflection.Parse(answer.Text); err != nil {
			result.Error = err.Error()
		}
	}
	result.Passed, result.Score, result.Critique = verdict.Passed, verdict.Score, verdict.Critique
	failpoint.Point("reflection.judged")
	return verdict, judged, r.emit(event.SpawnEvaluated, r.path(), result)
}

// best makes the attempt with the best score that of the subagent: its report, and the worktree as it left
// it. last is the number of the attempt that changed the worktree last.
func (r *subagent) best(ctx context.Context, all []attempt, scores []float64, last int) error {
	i := reflection.Best(scores)
	chosen := all[i]
	r.report, r.attempt, r.partial = chosen.report, i+1, true
	if chosen.snapshot == nil || r.attempt == last {
		return nil
	}
	if !r.alone() {
		r.kept = fmt.Sprintf("another subagent changed the worktree meanwhile, so it is as attempt %d left it; attempt %d is snapshot %d", last, r.attempt, chosen.snapshot.N)
		return nil
	}
	failpoint.Point("reflection.restore")
	if err := r.Workspace.Restore(ctx, chosen.snapshot.Commit); err != nil {
		return err
	}
	failpoint.Point("reflection.restored")
	return nil
}

// evaluator returns the role that judges a report, in a conversation of its own and with the read permissions of the
// subagent.
func (r *subagent) evaluator() role {
	who := r.worker()
	who.Path += "/evaluator"
	who.Policy = permission.OfSubagent(r.child.Policy, r.child.Agent, nil, nil, nil, []permission.Name{})
	who.system = systemOf{contract: reflection.Contract, readOnly: true, reviews: true}
	who.stateDir = filepath.Join(r.Workspace.Worktree.StateDir(), "evaluator", r.id, r.provider)
	who.readOnly, who.silent, who.tools = true, true, false
	return who
}

// writes registers a subagent until leave is called. may says whether it can change the worktree. alone reports whether
// no other subagent that can has worked since.
func (s *Spawns) writes(may bool) (alone func() bool, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	others := s.writers > 0
	if may {
		s.writers++
		s.began++
	}
	mine := s.began
	alone = func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !others && s.began == mine
	}
	return alone, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if may {
			s.writers--
		}
	}
}
