// Package scheduler decides which task runs next and how many run at once, and asks about
// changes that are ready while the others go on.
//
// One goroutine (Run) decides what starts; each task has one of its own; questions are
// asked one at a time.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// Scheduler runs tasks, several at once, until none is left that could run. One
// goroutine (run) decides what starts; each task has one of its own; questions
// to a person are asked one at a time while the others go on.
type Scheduler struct {
	Controller *control.Controller
	Queue      Queue
	Width      int  // tasks at once
	Max        int  // tasks in all; 0: no limit
	Watch      bool // wait for more tasks instead of returning
	// Ask asks a person about a change that is ready; nil: no one is asked.
	Ask      func(context.Context, session.View) (Decision, error)
	Observer Observer
	Options  control.Options

	running     map[string]bool
	started     int
	asking      []session.View // changes that wait for the person at this terminal
	open        bool           // a question is open
	idle        bool           // it was said that nothing is at work
	budgetSpent bool           // the budget of all tasks is spent, and there are more of them
	code        int
	counts      map[string]int
	ended       chan ended
	answers     chan answered
}

// Observer is told how a shift goes. All funcs are there.
type Observer struct {
	Idle     func()            // nothing is at work, and more tasks may come
	Stopping func()            // no more tasks start: a person stops the shift
	Spent    func(text string) // no more tasks start: the budget of all is spent
	Failed   func(error)       // a task, or the question which tasks there are
	Rejected func(control.Dismissal)
	Over     func(Summary)
}

// Summary is how a shift went.
type Summary struct {
	counts      map[string]int // tasks by how they ended
	Left        int            // known, and not started
	Interrupted bool
}

// Total returns how many tasks ended.
func (s Summary) Total() int {
	total := 0
	for _, n := range s.counts {
		total += n
	}
	return total
}

// Text is the counts in words.
func (s Summary) Text() string {
	var parts []string
	for word, n := range s.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Queue is where a shift's tasks come from.
type Queue interface {
	// next returns tasks that could be run now, in order; busy are those that
	// run.
	Next(ctx context.Context, busy map[string]bool) ([]project.Item, error)
	// begun and over say that a task is run, and how far it is.
	Started(item project.Item)
	Done(item project.Item)
	// left is how many tasks are known that were not begun.
	Left() int
}

// ended is how the run of one task ended.
type ended struct {
	item     project.Item
	outcome  control.Outcome
	err      error
	approved bool // it went on because a person approved it
}

// answered is a person's answer about one change.
type answered struct {
	view     session.View
	decision Decision
	err      error
}

// pollEvery is how often a shift looks for tasks when nothing of its own has
// changed: a tracker is asked rarely, each question to bd is a process.
const pollEvery = 15 * time.Second

// Run runs the shift and returns its exit code.
func (s *Scheduler) Run(ctx context.Context) int {
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
			s.Observer.Idle()
		}
		s.idle = len(s.running) == 0
		select {
		case e := <-s.ended:
			s.finish(e)
		case a := <-s.answers:
			s.answered(ctx, a)
		case <-ticker.C:
		case <-s.interrupted(ctx):
			s.Observer.Stopping()
		}
	}
}

// complete reports whether no more tasks will start.
func (s *Scheduler) complete() bool {
	return !s.Watch || s.budgetSpent || s.Max > 0 && s.started >= s.Max
}

// interrupted is ready once, when a person stops the shift.
func (s *Scheduler) interrupted(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil {
		return nil
	}
	return ctx.Done()
}

// fill starts what fits.
func (s *Scheduler) fill(ctx context.Context) {
	room := s.Width - len(s.running)
	if s.Max > 0 {
		room = min(room, s.Max-s.started)
	}
	if room <= 0 {
		return
	}
	jobs, err := s.Queue.Next(ctx, s.running)
	if err != nil {
		s.fail(err)
	}
	if text := s.Controller.Budget.Reached(); text != "" && len(jobs) > 0 {
		s.stopSpent(text)
		return
	}
	for _, item := range jobs[:min(room, len(jobs))] {
		if s.running[item.Task.ID] {
			continue // it was there twice
		}
		s.started++
		s.Queue.Started(item)
		s.start(ctx, item)
	}
}

// stopSpent starts no further task: each would be claimed only to wait.
func (s *Scheduler) stopSpent(text string) {
	if !s.budgetSpent {
		s.Observer.Spent(text)
	}
	s.budgetSpent, s.code = true, exit.Worse(s.code, exit.Budget)
}

func (s *Scheduler) start(ctx context.Context, item project.Item) {
	s.running[item.Task.ID] = true
	go func() {
		outcome, err := s.Controller.Run(ctx, item, s.Options)
		s.ended <- ended{item: item, outcome: outcome, err: err}
	}()
}

// finish takes in how a task ended.
func (s *Scheduler) finish(e ended) {
	delete(s.running, e.item.Task.ID)
	if e.err != nil {
		s.Queue.Done(e.item)
		if s.takenByOthers(e) {
			s.started--
			return // another coven claimed the task first
		}
		s.fail(e.err)
		s.counts["stopped by an error"]++
		return
	}
	word := string(e.outcome.Status)
	switch {
	case e.outcome.Commit != "":
		word = "landed"
	case e.outcome.Reason != "":
		word += " (" + string(e.outcome.Reason) + ")"
	}
	if s.Ask != nil && e.outcome.WaitsForReview() {
		if v, err := s.Controller.Project.Find(e.item.Task.ID); err == nil {
			s.asking = append(s.asking, v)
			return // counted, and over, when it is answered
		}
	}
	s.Queue.Done(e.item)
	s.count(word, e.outcome.ExitCode())
}

// takenByOthers reports whether another coven took a task that the user did not name.
func (s *Scheduler) takenByOthers(e ended) bool {
	if _, named := s.Queue.(*NamedQueue); named || e.approved {
		return false
	}
	return control.IsTaken(e.err)
}

// fail shows an error between the lines of the tasks at work.
func (s *Scheduler) fail(err error) {
	s.code = exit.Worse(s.code, exit.Code(err))
	s.Observer.Failed(err)
}

// question asks the person at the terminal about the next change that is ready.
func (s *Scheduler) question(ctx context.Context) {
	if s.open || len(s.asking) == 0 {
		return
	}
	v := s.asking[0]
	s.asking, s.open = s.asking[1:], true
	go func() {
		d, err := s.Ask(ctx, v)
		s.answers <- answered{v, d, err}
	}()
}

// answered does what a person said about a change.
func (s *Scheduler) answered(ctx context.Context, a answered) {
	s.open = false
	if a.err != nil || a.decision.Verdict != Approved {
		s.Queue.Done(project.Item{Task: task.Task{ID: a.view.Task}})
	}
	switch {
	case a.err != nil:
		if !errors.Is(a.err, control.ErrInterrupted) {
			s.fail(a.err)
		}
		s.count("waiting (review)", exit.Person)
	case a.decision.Verdict == Approved:
		s.running[a.view.Task] = true
		go func() {
			outcome, err := s.Controller.Approve(ctx, control.ApproveRequest{Task: a.view.Task, Seen: a.view, AcceptFindings: true})
			s.ended <- ended{item: project.Item{Task: task.Task{ID: a.view.Task}}, outcome: outcome, err: err, approved: true}
		}()
	case a.decision.Verdict == Elsewhere:
		s.counts["answered elsewhere"]++
	case a.decision.Verdict == Rejected:
		done, err := s.Controller.Reject(ctx, control.RejectRequest{Task: a.view.Task, Seen: a.view, Reason: a.decision.Reason})
		if err != nil {
			s.fail(err)
			return
		}
		s.Observer.Rejected(done)
		s.count("rejected", exit.Failed)
	default:
		s.count("waiting (review)", exit.Person)
	}
}

func (s *Scheduler) count(word string, code int) {
	s.counts[word]++
	s.code = exit.Worse(s.code, code)
}

// over says how the shift went, when it was about several tasks.
func (s *Scheduler) over(ctx context.Context) int {
	if ctx.Err() != nil {
		s.code = exit.Worse(s.code, exit.Interrupted)
	}
	left := len(s.asking)
	for ; left > 0; left-- {
		s.count("waiting (review)", exit.Person)
	}
	s.Observer.Over(Summary{counts: s.counts, Left: s.Queue.Left(), Interrupted: ctx.Err() != nil})
	return s.code
}
