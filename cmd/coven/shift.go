package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
	"github.com/coven-run/coven/worktree"
)

// shift runs tasks, several at once, until none is left that could run. One
// goroutine (run) decides what starts; each task has one of its own; questions
// to a person are asked one at a time while the others go on.
type shift struct {
	desk  *desk
	pool  pool
	width int  // tasks at once
	max   int  // tasks in all; 0: no limit
	watch bool // wait for more tasks instead of ending
	// ask asks a person about a change that is ready; nil: nobody is asked.
	ask      func(context.Context, session.View) (decision, error)
	observer shiftObserver
	onto     string
	choices  choices

	running map[string]bool
	started int
	asking  []session.View // changes that wait for the person at this terminal
	open    bool           // a question is open
	idle    bool           // it was said that nothing is at work
	poor    bool           // the budget of all tasks is spent, and there are more of them
	code    int
	counts  map[string]int
	ended   chan ended
	answers chan answered
}

// shiftObserver is told how a shift goes. All funcs are there.
type shiftObserver struct {
	idle     func()            // nothing is at work, and more tasks may come
	stopping func()            // no task is started any more: a person stops the shift
	spent    func(text string) // no task is started any more: the budget of all is spent
	failed   func(error)       // a task, or the question which tasks there are
	rejected func(session.View, event.Ended)
	over     func(summary)
}

// summary is how a shift went.
type summary struct {
	counts      map[string]int // tasks by how they ended
	left        int            // known, and not started
	interrupted bool
}

func (s summary) total() int {
	total := 0
	for _, n := range s.counts {
		total += n
	}
	return total
}

// text is the counts in words.
func (s summary) text() string {
	var parts []string
	for word, n := range s.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// pool is where a shift's tasks come from.
type pool interface {
	// next returns tasks that could be run now, in order; busy are those that
	// run.
	Next(ctx context.Context, busy map[string]bool) ([]job, error)
	// begun and over say that a task is run, and how far it is.
	Started(j job)
	Done(j job)
	// left is how many tasks are known that were not begun.
	Left() int
}

// ended is how the run of one task ended.
type ended struct {
	job      job
	ending   runner.Outcome
	err      error
	approved bool // it went on because a person approved it
}

// answered is a person's answer about one change.
type answered struct {
	view     session.View
	decision decision
	err      error
}

// pollEvery is how often a shift looks for tasks when nothing of its own has
// changed: a tracker is asked rarely, each question to bd is a process.
const pollEvery = 15 * time.Second

// run runs the shift and returns its exit code.
func (s *shift) run(ctx context.Context) int {
	s.running, s.counts = map[string]bool{}, map[string]int{}
	s.ended, s.answers = make(chan ended), make(chan answered)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if ctx.Err() == nil {
			s.fill(ctx)
			s.question(ctx)
		}
		if len(s.running) == 0 && !s.open && (ctx.Err() != nil || s.complete()) {
			return s.over(ctx)
		}
		if len(s.running) == 0 && !s.open && !s.idle {
			s.observer.idle()
		}
		s.idle = len(s.running) == 0
		select {
		case e := <-s.ended:
			s.finish(e)
		case a := <-s.answers:
			s.answered(ctx, a)
		case <-ticker.C:
		case <-s.interrupted(ctx):
			s.observer.stopping()
		}
	}
}

// complete says whether no task will be started any more, once none could be.
func (s *shift) complete() bool { return !s.watch || s.poor || s.max > 0 && s.started >= s.max }

// interrupted is ready once, when a person stops the shift.
func (s *shift) interrupted(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil {
		return nil
	}
	return ctx.Done()
}

// fill starts what fits.
func (s *shift) fill(ctx context.Context) {
	room := s.width - len(s.running)
	if s.max > 0 {
		room = min(room, s.max-s.started)
	}
	if room <= 0 {
		return
	}
	jobs, err := s.pool.Next(ctx, s.running)
	if err != nil {
		s.fail(err)
	}
	if text := s.desk.purse.Reached(); text != "" && len(jobs) > 0 {
		s.stopPoor(text)
		return
	}
	for _, j := range jobs[:min(room, len(jobs))] {
		if s.running[j.task.ID] {
			continue // it was there twice
		}
		s.started++
		s.pool.Started(j)
		s.start(ctx, j)
	}
}

// stopPoor starts no further task: each would be claimed only to wait.
func (s *shift) stopPoor(text string) {
	if !s.poor {
		s.observer.spent(text)
	}
	s.poor, s.code = true, exit.Worse(s.code, exit.Budget)
}

func (s *shift) start(ctx context.Context, j job) {
	s.running[j.task.ID] = true
	go func() {
		ending, err := s.one(ctx, j)
		s.ended <- ended{job: j, ending: ending, err: err}
	}()
}

// one goes on with the task's session, or begins a new one.
func (s *shift) one(ctx context.Context, j job) (runner.Outcome, error) {
	d := s.desk
	prior, err := d.house.finder.OfTask(j.task.ID)
	switch {
	case errors.Is(err, session.ErrNone):
	case err != nil:
		return runner.Outcome{}, err
	case prior.Status == session.Running:
		return runner.Outcome{}, exit.Personf("coven attach "+shellword.Word(j.task.ID), "task %s: %w", j.task.ID, session.ErrBusy)
	case prior.Status == session.Waiting, prior.Status == session.Interrupted, prior.Status == session.Blocked:
		return d.resume(ctx, prior, budget.Amount{})
	}
	target, err := d.house.repo.Target(ctx, s.onto) // the task before may have moved it
	if err != nil {
		return runner.Outcome{}, err
	}
	c := s.choices
	c.target = target
	return d.begin(ctx, j, prior, c)
}

// finish takes in how a task ended.
func (s *shift) finish(e ended) {
	delete(s.running, e.job.task.ID)
	if e.err != nil {
		s.pool.Done(e.job)
		if s.lost(e) {
			s.started--
			return // somebody else was faster: the task is theirs
		}
		s.fail(e.err)
		s.counts["stopped by an error"]++
		return
	}
	word := string(e.ending.Status)
	switch {
	case e.ending.Commit != "":
		word = "landed"
	case e.ending.Reason != "":
		word += " (" + string(e.ending.Reason) + ")"
	}
	if s.ask != nil && e.ending.Status == engine.Waiting && e.ending.Reason == event.WaitReview {
		if v, err := s.desk.house.find(e.job.task.ID); err == nil {
			s.asking = append(s.asking, v)
			return // counted, and over, when it is answered
		}
	}
	s.pool.Done(e.job)
	s.count(word, exitOf(e.ending))
}

// lost says whether a task that nobody named was taken by somebody else.
func (s *shift) lost(e ended) bool {
	if _, named := s.pool.(*namedPool); named || e.approved {
		return false
	}
	return errors.Is(e.err, worktree.ErrClaimed) || errors.Is(e.err, task.ErrClaimed) || errors.Is(e.err, task.ErrNotClaimable) ||
		errors.Is(e.err, session.ErrBusy) || errors.As(e.err, new(*task.BlockedError))
}

// fail shows an error between the lines of the tasks at work.
func (s *shift) fail(err error) {
	s.code = exit.Worse(s.code, exit.Code(err))
	s.observer.failed(err)
}

// question asks the person at the terminal about the next change that is ready.
func (s *shift) question(ctx context.Context) {
	if s.open || len(s.asking) == 0 {
		return
	}
	v := s.asking[0]
	s.asking, s.open = s.asking[1:], true
	go func() {
		d, err := s.ask(ctx, v)
		s.answers <- answered{v, d, err}
	}()
}

// answered does what a person said about a change.
func (s *shift) answered(ctx context.Context, a answered) {
	s.open = false
	if a.err != nil || a.decision.verdict != approved {
		s.pool.Done(job{task: task.Task{ID: a.view.Task}})
	}
	switch {
	case a.err != nil:
		if !errors.Is(a.err, errInterrupted) {
			s.fail(a.err)
		}
		s.count("waiting (review)", exit.Person)
	case a.decision.verdict == approved:
		s.running[a.view.Task] = true
		go func() {
			ending, err := s.desk.approveNow(ctx, a.view, a.view.Review.Patch)
			s.ended <- ended{job: job{task: task.Task{ID: a.view.Task}}, ending: ending, err: err, approved: true}
		}()
	case a.decision.verdict == elsewhere:
		s.counts["answered elsewhere"]++
	case a.decision.verdict == rejected:
		ended, err := s.desk.reject(ctx, a.view, a.decision.reason, worktree.RemoveRequest{})
		if err != nil {
			s.fail(err)
			return
		}
		s.observer.rejected(a.view, ended)
		s.count("rejected", exit.Failed)
	default:
		s.count("waiting (review)", exit.Person)
	}
}

func (s *shift) count(word string, code int) {
	s.counts[word]++
	s.code = exit.Worse(s.code, code)
}

// over says how the shift went, when it was about several tasks.
func (s *shift) over(ctx context.Context) int {
	if ctx.Err() != nil {
		s.code = exit.Worse(s.code, exit.Interrupted)
	}
	left := len(s.asking)
	for ; left > 0; left-- {
		s.count("waiting (review)", exit.Person)
	}
	s.observer.over(summary{counts: s.counts, left: s.pool.Left(), interrupted: ctx.Err() != nil})
	return s.code
}
