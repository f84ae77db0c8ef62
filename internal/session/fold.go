package session

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/session/usage"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Fold computes the view of a session from its events.
func Fold(events []event.Event) (View, error) { return newFolder().fold(events) }

// folder computes the view of a growing session incrementally, reading each event once.
type folder struct {
	view  View
	since time.Time // start of the current active period; zero if inactive
	last  time.Time // time of the last event
	seen  int       // number of processed events
	book  *usage.Usage
	found findings.Log
}

func newFolder() *folder {
	return &folder{view: View{State: State{Status: Running}}, book: usage.New(budget.DefaultPrices())}
}

// fold processes new events and returns the view. events must begin with those of the previous
// call. The view is valid until the next call. After an error, later calls ignore new events.
func (f *folder) fold(events []event.Event) (View, error) {
	for _, e := range events[f.seen:] {
		if err := f.take(e); err != nil {
			return f.view, err
		}
	}
	return f.now(), nil
}

// take processes the next event.
func (f *folder) take(e event.Event) error {
	if err := errors.Join(f.view.apply(e), f.view.traced(e), f.found.Take(e)); err != nil {
		return err
	}
	f.clock(e)
	f.book.Take(e)
	f.seen++
	return nil
}

// now returns the view after the events so far. It is valid until the next event.
func (f *folder) now() View {
	v := f.view
	v.Open = f.found.Open()
	if !f.since.IsZero() {
		v.Active += v.Updated.Sub(f.since)
	}
	v.Used, v.Limit = f.book.Within(""), v.Info.Budget.Raised(v.added)
	return v
}

// clock updates the active time.
func (f *folder) clock(e event.Event) {
	before := f.last
	f.last = e.Time
	switch {
	case e.Seq == 1 || e.Type == event.SessionResumed || e.Type == event.LimitOver:
		if !f.since.IsZero() { // the previous period was interrupted
			f.view.Active += before.Sub(f.since)
		}
		f.since = e.Time
	case f.since.IsZero():
		return
	}
	if e.Type.Stops() || e.Type == event.LimitMet {
		f.view.Active += e.Time.Sub(f.since)
		f.since = time.Time{}
	}
}

func (v *View) apply(e event.Event) error {
	v.Task, v.Updated = e.Task, e.Time
	switch e.Type {
	case event.SessionStarted:
		v.Started, v.Since, v.TraceID = e.Time, e.Time, e.TraceID
		err := e.Decode(&v.Info)
		v.Holder, v.Sandbox = v.Info.Holder, v.Info.Sandbox
		return err
	case event.SessionResumed:
		var r event.Resumed
		if err := e.Decode(&r); err != nil {
			return err
		}
		v.Holder, v.Sandbox, v.Since = r.Holder, r.Sandbox, e.Time
		v.added = v.added.Add(r.Budget)
		v.Info = v.Info.Switched(r)
		v.Status, v.Reason, v.Detail, v.Next, v.Failing, v.WaitsAt, v.More = Running, "", "", "", "", "", ""
		v.Ended, v.Until, v.Parked = time.Time{}, time.Time{}, nil
		v.FailedAt, v.FailedWhy, v.Rejected = "", "", false
	case event.SessionWaiting:
		var w event.Waiting
		err := e.Decode(&w)
		v.Status, v.Reason, v.Detail, v.Next, v.Until, v.Parked = Waiting, w.Reason, w.Detail, w.Next, w.Until, nil
		v.WaitsAt, v.More = w.Step, w.More
		return err
	case event.SessionCompleted, event.SessionFailed, event.SessionBlocked, event.SessionCancelled, event.SessionStopped:
		return v.end(e)
	default:
		return v.work(e)
	}
	return nil
}

func (v *View) end(e event.Event) error {
	var d event.Ended
	if err := e.Decode(&d); err != nil {
		return err
	}
	v.Status, v.Reason = event.Status(strings.TrimPrefix(string(e.Type), "session.")), ""
	v.Rejected = d.Rejected
	v.Detail, v.Next, v.Failing, v.Rescue = d.Reason, d.Next, d.Step, d.Rescue
	v.Until, v.Parked = time.Time{}, nil
	if failed := v.Status == Blocked || v.Status == Failed; failed && d.Step != "" {
		v.FailedAt, v.FailedWhy = d.Step, d.Reason
	}
	if d.Summary != "" {
		v.Summary = d.Summary
	}
	if d.Commit != "" {
		v.Commit = d.Commit
	}
	if v.Status != Interrupted {
		v.Ended = e.Time
		v.closeApprovals(e.Time)
	}
	return nil
}

func (v *View) work(e event.Event) error {
	switch e.Type {
	case event.StepStarted:
		return v.stepStarted(e)
	case event.StepCompleted:
		return v.stepCompleted(e)
	case event.AgentTool, event.CheckWaiting, event.CheckStarted, event.BatchEnded:
		return v.doing(e)
	case event.LimitMet:
		v.Parked = &event.Limit{}
		return e.Decode(v.Parked)
	case event.LimitOver:
		v.Parked = nil
	case event.CheckEnded:
		return appendTo(&v.Receipts, e)
	case event.GateDecided:
		return appendTo(&v.Calls, e)
	case event.ReviewAsked, event.ReviewAnswered:
		return v.reviewed(e)
	case event.PullPublished, event.PullMoved:
		return v.published(e)
	case event.LandIntended:
		return e.Decode(&v.Landing)
	case event.LandDone:
		v.Landing = event.Landing{}
		return e.Decode(&v.Landed)
	case event.TaskClaimed:
		var c event.Claim
		err := e.Decode(&c)
		v.ClaimOid = c.Oid
		return err
	case event.RepositoryChanged, event.Warning:
		return v.warned(e)
	case event.AgentText, event.MessageCreated:
		return v.said(e)
	default:
		return errors.Join(v.approval(e), v.spawned(e))
	}
	return nil
}

// Limits for the texts of agents in a view.
const (
	maxReasoning      = 100 // entries
	maxReasoningRunes = 500 // of each
)

// wrote adds a text of a step's agent. It ignores the texts of subagents and reviewers.
func (v *View) wrote(e event.Event) {
	if event.LeafOf(e.Path) != e.Path {
		return
	}
	text := []rune(unlinked(strings.TrimSpace(event.As[event.Text](e).Text)))
	if len(text) > maxReasoningRunes {
		text = append(text[:maxReasoningRunes], '…')
	}
	if len(text) > 0 {
		v.Reasoning = append(v.Reasoning, string(text))
	}
	if i := slices.IndexFunc(v.Reasoning, func(t string) bool { return !strings.Contains(t, "[[") }); i >= 0 && len(v.Reasoning) > maxReasoning {
		v.Reasoning = slices.Delete(v.Reasoning, i, i+1)
	}
}

// reviewed adds a review question, or the answer to the last one.
func (v *View) reviewed(e event.Event) error {
	r := &Review{Path: e.Path}
	err := e.Decode(&r.MergeDecision)
	if v.Review != nil && v.Review.Patch == r.Patch && r.Message == "" {
		r.Message = v.Review.Message
	}
	v.Review = r
	if len(r.Changes) > 0 {
		v.Revisions = append(v.Revisions, Revision{By: r.By, Changes: r.Changes})
	}
	if v.Status == Waiting && v.Reason == event.WaitReview {
		v.answered(r.MergeDecision)
	}
	return err
}

// answered handles an answer to a waiting session. The state persists only if the process ends before it
// continues.
func (v *View) answered(r event.MergeDecision) {
	switch {
	case r.Approved:
		v.Detail = "approved by " + r.By + " and not landed yet"
	case len(r.Changes) > 0:
		v.Detail = r.By + " asked for changes, which are not made yet"
	default:
		return
	}
	v.Status, v.Reason, v.Next, v.WaitsAt = Interrupted, "", "coven resume "+shellword.Word(v.Task), ""
}

// said adds a chat message or an agent's text. An unanswered message of a waiting session persists only if the
// process ends before it continues.
func (v *View) said(e event.Event) error {
	if e.Type == event.AgentText {
		v.wrote(e)
		return nil
	}
	var m event.ChatMessage
	if err := e.Decode(&m); err != nil {
		return err
	}
	if m.Role != event.RoleUser {
		v.Answer = m.Text
		return nil
	}
	v.Said, v.Answer = m.Text, ""
	if v.Status == Waiting {
		v.Status, v.Reason, v.WaitsAt = Interrupted, "", ""
		v.Detail, v.Next = "your message is not answered yet", "coven resume "+shellword.Word(v.Task)
	}
	return nil
}

func (v *View) stepStarted(e event.Event) error {
	var start event.StepStart
	if err := e.Decode(&start); err != nil {
		return err
	}
	v.Steps = append(v.Steps, Step{Path: e.Path, Kind: start.Kind, Status: Running, StartedAt: e.Time})
	return nil
}

func (v *View) stepCompleted(e event.Event) error {
	var r event.Result
	if err := e.Decode(&r); err != nil {
		return err
	}
	v.Usage = v.Usage.Add(r.Usage)
	for _, receipt := range r.Receipts { // receipts of checks are already included
		if !slices.Contains(v.Receipts, receipt) {
			v.Receipts = append(v.Receipts, receipt)
		}
	}
	if v.Summary == "" || event.IsRevise(e.Path) && r.Summary != "" {
		v.Summary = r.Summary
	}
	step := v.step(e.Path)
	v.judged(e.Path, step != nil && step.Kind == "review", r)
	if step == nil {
		return nil
	}
	step.Status, step.EndedAt, step.Summary, step.Error, step.Doing = Completed, e.Time, r.Summary, r.Error, ""
	if !r.OK {
		step.Status = Failed
	}
	return nil
}

// judged adds a review round, or an arbiter's decision about the last round.
func (v *View) judged(path string, isReview bool, r event.Result) {
	switch n := len(v.Rounds); {
	case isReview && (len(r.Opinions) > 0 || r.Error != ""):
		round := Round{Path: path, Patch: r.Patch, Opinions: r.Opinions}
		if r.Patch == "" {
			round.Error = r.Error
		}
		v.Rounds = append(v.Rounds, round)
	case r.Decided && n > 0:
		last := &v.Rounds[n-1]
		last.Decided, last.Continue, last.LastRound, last.Reason = true, r.Continue, r.LastRound, r.Output
	}
}

func (v *View) doing(e event.Event) error {
	var doing string
	var err error
	switch e.Type {
	case event.AgentTool:
		var call event.Tool
		err = e.Decode(&call)
		doing = call.Summary
	case event.CheckWaiting:
		var wait event.Text
		err = e.Decode(&wait)
		doing = wait.Text
	case event.CheckStarted:
		var check event.Check
		err = e.Decode(&check)
		doing = check.Text
	}
	if step := v.step(event.LeafOf(e.Path)); step != nil {
		step.Doing = doing
	}
	return err
}

// step returns the latest run of the leaf at path.
func (v *View) step(path string) *Step {
	for i := range slices.Backward(v.Steps) {
		if v.Steps[i].Path == path {
			return &v.Steps[i]
		}
	}
	return nil
}

func appendTo[T any](list *[]T, e event.Event) error {
	var item T
	if err := e.Decode(&item); err != nil {
		return err
	}
	*list = append(*list, item)
	return nil
}

// warned adds a warning, or a change of the repository that is more than noted.
func (v *View) warned(e event.Event) error {
	if e.Type == event.Warning {
		var t event.Text
		err := e.Decode(&t)
		v.Warnings = append(v.Warnings, t.Text)
		return err
	}
	var c event.RepositoryChange
	err := e.Decode(&c)
	if c.Severity != event.SeverityNoted {
		v.Warnings = append(v.Warnings, c.Summary()+c.Undo())
	}
	return err
}

// published applies an event about the pull request of the session.
func (v *View) published(e event.Event) error {
	if e.Type == event.PullPublished {
		v.Pull = &event.PullRequest{}
		return e.Decode(v.Pull)
	}
	var to event.PullTarget
	err := e.Decode(&to)
	v.Info.Target, v.Info.StackedOn = to.Target, ""
	return err
}
