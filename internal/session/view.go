package session

import (
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/findings"
	"github.com/coven-run/coven/internal/usage"
	"github.com/coven-run/coven/plugins/provider"
)

// The states of a session.
const (
	Running     = event.StatusRunning
	Waiting     = event.StatusWaiting
	Completed   = event.StatusCompleted
	Failed      = event.StatusFailed
	Blocked     = event.StatusBlocked
	Cancelled   = event.StatusCancelled
	Interrupted = event.StatusInterrupted
)

// View is what a person or a program sees of a session, computed from its
// events.
type View struct {
	ID       string           `json:"session_id"`
	Dir      string           `json:"-"`
	Task     string           `json:"task"`
	Info     event.Session    `json:"info"`
	Status   event.Status     `json:"status"`
	Reason   event.WaitReason `json:"reason,omitempty"` // of waiting
	Detail   string           `json:"detail,omitempty"`
	Next     string           `json:"next,omitempty"`
	WaitsAt  string           `json:"waits_at,omitempty"` // path of the step that waits
	More     string           `json:"more,omitempty"`     // what a person adds to the budget that it waits for: usd=+5
	Until    time.Time        `json:"until,omitzero"`     // of waiting: the earliest time to resume
	Summary  string           `json:"summary,omitempty"`
	Commit   string           `json:"commit,omitempty"`
	Rescue   string           `json:"rescue,omitempty"`
	Failing  string           `json:"failing_step,omitempty"`
	Started  time.Time        `json:"started_at"`
	Updated  time.Time        `json:"updated_at"`
	Ended    time.Time        `json:"completed_at,omitzero"`
	Active   time.Duration    `json:"active_ns"` // without the time it waited
	Steps    []Step           `json:"steps"`
	Usage    provider.Usage   `json:"usage"`
	Used     budget.Amount    `json:"used,omitzero"` // in the terms of a budget, what was cut off among it
	Receipts []event.Receipt  `json:"receipts"`
	Calls    []event.Decision `json:"calls"` // what the gate decided
	Review   *Review          `json:"review,omitempty"`
	Rounds   []Round          `json:"rounds,omitempty"`        // of review by plugins
	Open     []event.Finding  `json:"open_findings,omitempty"` // error findings: not fixed, not accepted by a person
	ClaimOid string           `json:"-"`
	Landed   event.Landing    `json:"landed,omitzero"`
	Landing  event.Landing    `json:"-"` // a landing that is on record and not settled
	Warnings []string         `json:"warnings,omitempty"`

	// FailedAt is the step that ended the session, and FailedWhy why it did, also after
	// the session was cancelled or rejected. Empty: no step has failed since it was
	// resumed last.
	FailedAt  string `json:"-"`
	FailedWhy string `json:"-"`

	// Rejected reports whether a person rejected the change.
	Rejected bool `json:"-"`

	// Damage is why an unfinished session cannot continue although its events can be
	// read: its plan is missing.
	Damage string `json:"damage,omitempty"`
	// Crashed reports whether the process that ran the session is gone, although nobody
	// had stopped it.
	Crashed bool `json:"crashed,omitempty"`
	// Parked is the limit that a session at work waits out, in its own process; nil:
	// it waits for none. Shown makes a state of it.
	Parked *event.Limit `json:"limit,omitempty"`
	// Holder is the coven that ran the session last: coven/<host>/<pid>. Since is
	// when it began to.
	Holder string    `json:"holder,omitempty"`
	Since  time.Time `json:"since,omitzero"`
}

// Step is one leaf of a session.
type Step struct {
	Path      string       `json:"path"`
	Kind      string       `json:"kind"`
	Status    event.Status `json:"status"` // running, completed, failed
	StartedAt time.Time    `json:"started_at"`
	EndedAt   time.Time    `json:"completed_at,omitzero"`
	Summary   string       `json:"summary,omitempty"`
	Error     string       `json:"error,omitempty"`
	Doing     string       `json:"doing,omitempty"` // the last tool call or check of a running step
}

// Round is a review by plugins, and what became of it.
type Round struct {
	Path     string          `json:"path"`
	Patch    string          `json:"patch,omitempty"` // patch id of what was reviewed
	Opinions []event.Opinion `json:"opinions"`
	Error    string          `json:"error,omitempty"`    // why it came to no end
	Decided  bool            `json:"decided,omitempty"`  // an arbiter was asked
	Continue bool            `json:"continue,omitempty"` // the arbiter's decision: the findings are actionable
	Reason   string          `json:"reason,omitempty"`   // why
}

// Review is the question that a session asked last, with its answer.
type Review struct {
	Path string `json:"path"` // of the step that asked
	event.MergeDecision
}

// Live reports whether the session runs or can be resumed: then its worktree and claim
// belong to it.
func (v View) Live() bool {
	return v.Status == Running || v.Status == Waiting || v.Status == Blocked || v.Status == Interrupted
}

// Shown is the view as people and programs are shown it: a session at work that
// waits for the end of a limit is waiting, one without a plan is damaged.
func (v View) Shown() View {
	if v.Damage != "" && v.Status != Running {
		v.Status, v.Reason, v.Detail = Damaged, "", v.Damage
	}
	if v.Status == Running && v.Parked != nil {
		v.Status, v.Reason, v.Until = Waiting, event.WaitLimit, v.Parked.At
	}
	return v
}

// clone returns a view that the events to come do not change.
func (v View) clone() View {
	v.Steps, v.Receipts = slices.Clone(v.Steps), slices.Clone(v.Receipts)
	v.Calls, v.Warnings, v.Rounds = slices.Clone(v.Calls), slices.Clone(v.Warnings), slices.Clone(v.Rounds)
	return v
}

// Same reports whether two views show a session in the same state, with the same
// question.
func (v View) Same(other View) bool {
	question := func(v View) Review {
		if v.Review == nil {
			return Review{}
		}
		return *v.Review
	}
	status := func(v View) event.Status {
		if v.Status == Running {
			return Interrupted // the caller holds the lock, so no process runs it
		}
		return v.Status
	}
	a, b := question(v), question(other)
	return status(v) == status(other) && v.Reason == other.Reason && a.Patch == b.Patch
}

// Fold computes a view from events.
func Fold(events []event.Event) (View, error) { return newFolder().fold(events) }

// folder computes the views of a growing session: it reads each event once.
type folder struct {
	view  View
	since time.Time // when the present stretch of work began; zero: there is none
	last  time.Time // of the events that are taken in
	seen  int       // how many those are
	book  *usage.Usage
	found findings.Log
}

func newFolder() *folder {
	return &folder{view: View{Status: Running}, book: usage.New(budget.DefaultPrices())}
}

// fold returns the view after events, which begin with those of the call before.
// The view is good until the next call. After an error nothing more is taken in.
func (f *folder) fold(events []event.Event) (View, error) {
	for _, e := range events[f.seen:] {
		if err := f.view.take(e); err != nil {
			return f.view, err
		}
		if err := f.found.Take(e); err != nil {
			return f.view, err
		}
		f.clock(e)
		f.seen++
	}
	v := f.view
	v.Open = f.found.Open()
	if !f.since.IsZero() {
		v.Active += v.Updated.Sub(f.since)
	}
	f.book.Read(events)
	v.Used = f.book.Within("")
	return v, nil
}

// clock adds up the active time.
func (f *folder) clock(e event.Event) {
	before := f.last
	f.last = e.Time
	switch {
	case e.Seq == 1 || e.Type == event.SessionResumed || e.Type == event.LimitOver:
		if !f.since.IsZero() { // the stretch before was cut off
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

func (v *View) take(e event.Event) error {
	v.Task, v.Updated = e.Task, e.Time
	switch e.Type {
	case event.SessionStarted:
		v.Started, v.Since = e.Time, e.Time
		err := e.Decode(&v.Info)
		v.Holder = v.Info.Holder
		return err
	case event.SessionResumed:
		var r event.Resumed
		if err := e.Decode(&r); err != nil {
			return err
		}
		v.Holder, v.Since = r.Holder, e.Time
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
	v.Rejected = d.Rejected || v.Status == Failed && d.Step == "" && strings.HasPrefix(d.Reason, "rejected: ") // so older sessions record it
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
	}
	return nil
}

func (v *View) work(e event.Event) error {
	switch e.Type {
	case event.StepStarted:
		return v.stepStarted(e)
	case event.StepCompleted:
		return v.stepCompleted(e)
	case event.AgentTool, event.CheckStarted:
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
	case event.Warning:
		var t event.Text
		err := e.Decode(&t)
		v.Warnings = append(v.Warnings, t.Text)
		return err
	}
	return nil
}

// reviewed adds a question, or the answer to the last one.
func (v *View) reviewed(e event.Event) error {
	r := &Review{Path: e.Path}
	err := e.Decode(&r.MergeDecision)
	if v.Review != nil && v.Review.Patch == r.Patch && r.Message == "" {
		r.Message = v.Review.Message
	}
	v.Review = r
	return err
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
	for _, receipt := range r.Receipts { // those of checks are there already
		if !slices.Contains(v.Receipts, receipt) {
			v.Receipts = append(v.Receipts, receipt)
		}
	}
	if v.Summary == "" {
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

// judged adds a review, or an arbiter's decision about the last one.
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
		last.Decided, last.Continue, last.Reason = true, r.Continue, r.Output
	}
}

func (v *View) doing(e event.Event) error {
	var doing string
	var err error
	if e.Type == event.AgentTool {
		var call event.Tool
		err = e.Decode(&call)
		doing = call.Summary
	} else {
		var check event.Check
		err = e.Decode(&check)
		doing = check.Text
	}
	if step := v.step(event.LeafOf(e.Path)); step != nil {
		step.Doing = doing
	}
	return err
}

// step is the latest run of the leaf at path.
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

// At is where a session is: the step at work and what it does, or the step
// that ended last.
func (v View) At() string {
	if len(v.Steps) == 0 {
		return ""
	}
	last := v.Steps[len(v.Steps)-1]
	return strings.TrimSpace(strings.TrimSuffix(last.Path, "#1") + " " + last.Doing)
}
