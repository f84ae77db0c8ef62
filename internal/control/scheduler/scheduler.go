// Package scheduler decides which tasks run next and how many run at once. Package control
// decides how a task runs.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/collisions"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/runner/rehearsal"
)

// Scheduler runs tasks concurrently until no more can run. The goroutine of Run decides
// what to start. Each task runs in its own goroutine. A person is asked one question at a
// time while other tasks run.
type Scheduler struct {
	Controller *control.Controller
	Queue      Queue
	Width      int  // concurrent tasks, not counting closed tasks that only clean up
	Max        int  // total number of tasks; 0 means no limit
	Watch      bool // wait for more tasks instead of returning
	// Ask asks a person about a change that is ready. If it is nil, the change waits.
	Ask      func(context.Context, session.View) (Decision, error)
	Observer Observer
	// Work runs a task until its session stops: Controller.Run or Controller.Resume.
	Work func(context.Context, project.Item) (control.Outcome, error)

	running     map[string]bool
	closed      map[string]bool // running tasks that the tracker has closed and that are cleaning up
	started     int
	asking      []session.View // changes to ask the person at this terminal about
	open        bool           // a question is open
	idle        bool           // the observer knows that no task is running
	budgetSpent bool           // the budget of all tasks is spent, and more tasks are ready
	daySpent    bool           // today's budget of the repository is spent, and more tasks are ready
	halted      bool           // an account cannot be used, or no commit can be made, and more tasks are ready
	code        int
	counts      map[string]int
	ended       chan ended
	answers     chan answered
	closing     chan string // tasks, once they are closed
}

// Observer receives the scheduler's notifications. All funcs must be set.
type Observer struct {
	Idle     func()            // no task is running, but more may become ready
	Stopping func()            // a person has interrupted: no more tasks start
	Spent    func(text string) // a budget is spent, as text says: no more tasks start
	Collided func(text string) // two tasks will conflict
	Failed   func(error)       // a task or listing the tasks has failed
	Rejected func(control.Dismissal)
	Over     func(Summary)
}

// Summary describes the result of Scheduler.Run.
type Summary struct {
	counts      map[string]int // number of tasks by result
	Left        int            // known but not started
	Spent       bool           // a budget is spent, and more tasks are ready
	Interrupted bool
}

// Total returns the number of ended tasks.
func (s Summary) Total() int {
	total := 0
	for _, n := range s.counts {
		total += n
	}
	return total
}

// Text returns the counts as text, such as "1 failed, 2 landed".
func (s Summary) Text() string {
	var parts []string
	for word, n := range s.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// Queue provides the tasks to run.
type Queue interface {
	// Next returns the tasks that could run now, in order. busy are the running
	// tasks.
	Next(ctx context.Context, busy map[string]bool) ([]project.Item, error)
	// Started and Done report that a task has started and that it has ended.
	Started(item project.Item)
	Done(item project.Item)
	// Left returns the number of known tasks that have not started.
	Left() int
}

// ended is the result of one task.
type ended struct {
	item     project.Item
	outcome  control.Outcome
	err      error
	answered bool // resumed after a person's answer
}

// answered is a person's answer about one change.
type answered struct {
	view     session.View
	decision Decision
	err      error
}

// ErrOver is the error of Work for a task that another machine has ended in the meantime, and that no person named.
var ErrOver = errors.New("it is over on another machine")

// pollEvery is how often the scheduler looks for new tasks while nothing changes. It is
// long because each query of bd starts a process.
const pollEvery = 15 * time.Second

// Run runs tasks and returns the exit code.
func (s *Scheduler) Run(ctx context.Context) int {
	s.running, s.closed, s.counts = map[string]bool{}, map[string]bool{}, map[string]int{}
	s.ended, s.answers, s.closing = make(chan ended), make(chan answered), make(chan string, 2*s.Width)
	radar := collisions.New(s.Controller.Project, s.Observer.Collided)
	defer radar.Start(ctx)()
	defer s.observe(radar)()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if ctx.Err() == nil {
			s.fill(ctx)
			s.question(ctx)
		}
		if len(s.running) == 0 && !s.open && (ctx.Err() != nil || s.complete()) {
			return s.finishRun(ctx)
		}
		if len(s.running) == 0 && !s.open && !s.idle {
			s.Observer.Idle()
			s.Controller.CollectLater()
		}
		s.idle = len(s.running) == 0
		select {
		case id := <-s.closing:
			if s.running[id] {
				s.closed[id] = true
			}
		case e := <-s.ended:
			s.finish(e)
		case a := <-s.answers:
			s.answered(ctx, a)
		case <-ticker.C:
			s.Controller.CollectLater()
		case <-s.interrupted(ctx):
			s.Observer.Stopping()
		}
	}
}

// observe notifies the radar of the events of sessions, and the scheduler when a task is closed, until stop is called.
func (s *Scheduler) observe(radar *collisions.Radar) (stop func()) {
	others := s.Controller.Observer.Event
	s.Controller.Observer.Event = func(e event.Event) {
		if others != nil {
			others(e)
		}
		radar.See(e)
		if e.Type != event.TaskClosed {
			return
		}
		select {
		case s.closing <- e.Task:
		default: // then the next task starts when this task has ended
		}
	}
	return func() { s.Controller.Observer.Event = others }
}

// complete reports whether no more tasks will start.
func (s *Scheduler) complete() bool {
	return !s.Watch || s.budgetSpent || s.halted || s.Max > 0 && s.started >= s.Max
}

// interrupted returns a channel that is ready when a person interrupts, or nil after that.
func (s *Scheduler) interrupted(ctx context.Context) <-chan struct{} {
	if ctx.Err() != nil {
		return nil
	}
	return ctx.Done()
}

// fill starts as many tasks as may run now.
func (s *Scheduler) fill(ctx context.Context) {
	// The next task starts while a closed task removes its worktree. At most Width tasks work
	// concurrently, regardless of how many clean up.
	room := s.Width - len(s.running) + min(len(s.closed), s.Width)
	if s.Max > 0 {
		room = min(room, s.Max-s.started)
	}
	if room <= 0 || s.halted {
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
	if len(jobs) > 0 && s.spentToday() {
		return
	}
	for _, item := range jobs[:min(room, len(jobs))] {
		if s.running[item.Task.ID] {
			continue // the queue returned it twice
		}
		s.started++
		s.Queue.Started(item)
		s.start(ctx, item)
	}
}

// stopSpent starts no more tasks, because each would be claimed only to wait.
func (s *Scheduler) stopSpent(text string) {
	if !s.budgetSpent {
		s.Observer.Spent("the budget of this coven run is spent: " + text)
	}
	s.budgetSpent, s.code = true, exit.Worse(s.code, exit.Budget)
}

// spentToday reports whether today's budget of the repository is spent. Then only tasks that a person named start: others would be
// claimed only to wait.
func (s *Scheduler) spentToday() bool {
	if _, named := s.Queue.(*NamedQueue); named {
		return false
	}
	day, err := s.Controller.Project.Ledger.Today()
	if err != nil { // the tasks report it
		return false
	}
	text := day.Spent()
	if text != "" && !s.daySpent {
		s.Observer.Spent(text)
		s.code = exit.Worse(s.code, exit.Budget)
	}
	s.daySpent = text != ""
	return s.daySpent
}

func (s *Scheduler) start(ctx context.Context, item project.Item) {
	s.running[item.Task.ID] = true
	go func() {
		outcome, err := s.Work(ctx, item)
		s.ended <- ended{item: item, outcome: outcome, err: err}
	}()
}

// finish records the result of a task.
func (s *Scheduler) finish(e ended) {
	delete(s.running, e.item.Task.ID)
	delete(s.closed, e.item.Task.ID)
	if e.err != nil {
		s.Queue.Done(e.item)
		if s.takenByOthers(e) || errors.Is(e.err, ErrOver) {
			s.started--
			return // another coven has it, or ended it
		}
		if fault := (*accounts.Fault)(nil); errors.As(e.err, &fault) {
			s.halt(fault)
			return
		}
		s.halted = s.halted || errors.As(e.err, new(*rehearsal.Error)) // those of other tasks would fail, too
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
		if v, err := s.Controller.Project.Finder.OfTask(e.outcome.Task); err == nil {
			s.asking = append(s.asking, v)
			return // it is counted after the person's answer
		}
	}
	s.Queue.Done(e.item)
	s.count(word, e.outcome.ExitCode())
}

// halt starts no more tasks, because none could work. The one that met the fault was not claimed.
func (s *Scheduler) halt(fault *accounts.Fault) {
	s.started--
	if !s.halted {
		s.fail(fmt.Errorf("no more tasks start: %w", fault))
	}
	s.halted = true
}

// takenByOthers reports whether another coven took a task that the user did not name.
func (s *Scheduler) takenByOthers(e ended) bool {
	if _, named := s.Queue.(*NamedQueue); named || e.answered {
		return false
	}
	return control.IsTaken(e.err)
}

// fail reports an error.
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

// answered applies a person's answer about a change.
func (s *Scheduler) answered(ctx context.Context, a answered) {
	s.open = false
	resumes := a.decision.Verdict == Approved || a.decision.Verdict == Revised
	if a.err != nil || !resumes {
		s.Queue.Done(project.Item{Task: task.Task{ID: a.view.Task}})
	}
	switch {
	case a.err != nil:
		if !errors.Is(a.err, control.ErrInterrupted) {
			s.fail(a.err)
		}
		s.count("waiting (review)", exit.Person)
	case resumes:
		s.running[a.view.Task] = true
		go func() {
			outcome, err := s.carryOut(ctx, a)
			s.ended <- ended{item: project.Item{Task: task.Task{ID: a.view.Task}}, outcome: outcome, err: err, answered: true}
		}()
	case a.decision.Verdict == Elsewhere:
		s.counts["answered elsewhere"]++
	case a.decision.Verdict == Rejected:
		done, err := s.Controller.Reject(ctx, control.RejectRequest{Task: a.view.Task, Seen: a.view, Reason: a.decision.Reason})
		if err != nil {
			s.fail(err)
			s.counts["stopped by an error"]++
			return
		}
		s.Observer.Rejected(done)
		s.count("rejected", exit.Failed)
	default:
		s.count("waiting (review)", exit.Person)
	}
}

// carryOut approves a change or requests changes, and resumes its session.
func (s *Scheduler) carryOut(ctx context.Context, a answered) (control.Outcome, error) {
	if a.decision.Verdict == Revised {
		return s.Controller.Revise(ctx, control.ReviseRequest{Task: a.view.Task, Seen: a.view, Comments: []string{a.decision.Reason}})
	}
	return s.Controller.Approve(ctx, control.ApproveRequest{Task: a.view.Task, Seen: a.view, AcceptFindings: true})
}

func (s *Scheduler) count(word string, code int) {
	s.counts[word]++
	s.code = exit.Worse(s.code, code)
}

// finishRun reports the summary and returns the exit code.
func (s *Scheduler) finishRun(ctx context.Context) int {
	if ctx.Err() != nil {
		s.code = exit.Worse(s.code, exit.Interrupted)
	}
	left := len(s.asking)
	for ; left > 0; left-- {
		s.count("waiting (review)", exit.Person)
	}
	s.Observer.Over(Summary{counts: s.counts, Left: s.Queue.Left(), Spent: s.budgetSpent || s.daySpent, Interrupted: ctx.Err() != nil})
	return s.code
}
