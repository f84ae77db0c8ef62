// Package session is the workflow of a session that workers run: it decides when a machine runs the session, and when it waits.
//
// The unit of work is a stretch: from the moment a machine takes the session over until it waits, blocks, fails or is over. The record of the
// session is on a git remote, which is also the fence: see the package live of coven. The server only learns names and hashes. If it loses
// its state, sessions are started again from the remote, and nothing is lost.
package session

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names of the workflow, its messages and its activity.
const (
	Name    = "Session"
	Wake    = "wake"   // signal: the record on the remote has changed
	Settle  = "settle" // update: returns the Stop when no machine runs the session and only a person can continue it
	Stretch = "Stretch"
)

// Task is a task whose session a git remote keeps.
type Task struct {
	Repository string        `json:"repository"` // HOST/PATH.git: all clones of a repository have the same
	Task       string        `json:"task"`
	Ref        string        `json:"ref"`               // of the session on the remote
	Plan       int           `json:"plan"`              // version of plans
	Needs      string        `json:"needs,omitempty"`   // label of the machines that may run it; empty for all
	Prefers    string        `json:"prefers,omitempty"` // label of the machines that may take it first, for a minute
	Cost       int           `json:"cost,omitempty"`    // number of places that it needs on a machine; 0 means 1
	Heartbeat  time.Duration `json:"heartbeat"`         // a machine that is silent for so long is lost
}

// ID returns the ID of the workflow of a task.
func (t Task) ID() string { return Plain(t.Repository) + "/" + Plain(t.Task) }

// maxPlain limits the length of a Plain name. The server refuses IDs and queues, which have two of them, of more than 1000 characters.
const maxPlain = 400

// Plain returns a name in ASCII: others cannot be in the headers of requests, which the IDs of workflows and the names of queues are. A long one is cut, and its hash added.
func Plain(name string) string {
	var plain strings.Builder
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&plain, "%%%02X", c)
		} else {
			plain.WriteByte(c)
		}
	}
	if plain.Len() > maxPlain {
		return fmt.Sprintf("%.*s~%.8x", maxPlain/2, plain.String(), sha256.Sum256([]byte(name)))
	}
	return plain.String()
}

// Readable returns the name of a Plain one, for people.
func Readable(plain string) string {
	name, err := url.PathUnescape(plain)
	if err != nil || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return plain
	}
	return name
}

// Queue returns the task queue of the machines that can run sessions of a repository whose plans have a version. Those with a label have a
// queue of their own.
func Queue(repository string, plan int, label string) string {
	name := "coven/" + Plain(repository) + "/plan-" + strconv.Itoa(plan)
	if label != "" {
		name += "/" + Plain(label)
	}
	return name
}

// OwnQueue returns the task queue of one machine.
func OwnQueue(repository string, plan int, machine string) string {
	return Queue(repository, plan, "") + "@" + Plain(machine)
}

// Interrupted is the status of a session that another machine continues: this one is being drained, or has no place.
const Interrupted = "interrupted"

// NoPlace is the reason of an interrupted session whose machine had no place for it: two queues had one for the last place.
const NoPlace = "no place"

// checkout is the reason of a session that waits for its machine, such as for room on the disk.
const checkout = "checkout"

// Stop says how a stretch ended, as coven resume --worker prints it.
type Stop struct {
	Status  string    `json:"status,omitempty"`
	Reason  string    `json:"reason,omitempty"` // of status waiting
	Until   time.Time `json:"until,omitzero"`   // before which resuming is useless, by the clock of the machine
	Over    bool      `json:"over,omitempty"`   // whether the remote no longer keeps the session
	Machine string    `json:"machine,omitempty"`

	Left time.Duration `json:"left,omitempty"` // from the report to Until, which does not depend on clocks; 0 from machines of earlier versions
}

// Pauses.
const (
	firstTime  = time.Minute      // preferred machines may take the session first
	firstPause = time.Second      // after a machine could not run coven; it doubles
	lastPause  = 5 * time.Minute  // the longest of these, and the pause between looks at what changes by itself
	awayPause  = 15 * time.Second // while the remote does not answer
	longest    = 30 * 24 * time.Hour
)

// Times after which the next machine decides about a session, if the one that was asked is lost. A machine that has decided is asked first. Without
// them, these are 10 s and 5 s.
const (
	DecisionTime = 5 * time.Second
	StickyTime   = time.Second
)

// Run is the workflow.
func Run(ctx workflow.Context, t Task) (Stop, error) {
	r := &run{Task: t, wake: workflow.GetSignalChannel(ctx, Wake)}
	if err := workflow.SetUpdateHandler(ctx, Settle, r.settle); err != nil {
		return Stop{}, err
	}
	for !r.stop.Over {
		if err := r.stretch(ctx); err != nil {
			return r.stop, r.end(ctx, err)
		}
		if r.stop.Over {
			break
		}
		if err := r.rest(ctx); err != nil {
			return r.stop, r.end(ctx, err)
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx) {
			return r.stop, workflow.NewContinueAsNewError(ctx, Name, t)
		}
	}
	return r.stop, r.end(ctx, nil)
}

// run is one execution of the workflow.
type run struct {
	Task
	wake    workflow.ReceiveChannel
	stop    Stop // of the last stretch
	begun   bool // a machine has run the session
	resting bool // only a person can continue it
	ended   bool
}

// settle implements the update.
func (r *run) settle(ctx workflow.Context) (Stop, error) {
	err := workflow.Await(ctx, func() bool { return r.ended || r.resting && r.wake.Len() == 0 })
	return r.stop, err
}

// end lets the updates return.
func (r *run) end(ctx workflow.Context, err error) error {
	r.ended = true
	ctx, cancel := workflow.NewDisconnectedContext(ctx) // after a recall
	defer cancel()
	return errors.Join(err, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }))
}

// stretch lets machines run the session until one of them reports how it stopped. The server does not repeat an activity, since a repetition
// would queue behind new sessions.
func (r *run) stretch(ctx workflow.Context) error {
	pause := firstPause
	for first := r.preferred(); ; first = "" {
		for r.wake.ReceiveAsync(nil) { // this stretch sees all changes so far
		}
		r.show(ctx, "running", "", r.stop.Machine)
		var stop Stop
		err := workflow.ExecuteActivity(r.on(ctx, first), Stretch, r.Task).Get(ctx, &stop)
		if err == nil && stop.Status != Interrupted {
			r.stop, r.begun = stop, true
			return nil
		}
		late := (*temporal.TimeoutError)(nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err() // recalled
		case first != "" && errors.As(err, &late): // these machines are busy or gone
			continue
		}
		r.begun, r.stop.Machine = true, ""
		if errors.As(err, &late) || err == nil && stop.Reason == NoPlace { // another machine continues at once
			continue
		}
		failed := (*temporal.ActivityError)(nil)
		switch {
		case err == nil: // that machine is being drained
			pause = firstPause
		case errors.As(err, &failed):
			if workflow.GetVersion(ctx, "show machines", workflow.DefaultVersion, 1) == 1 {
				r.show(ctx, "waiting", "machine", failed.Identity())
			}
		}
		if err := workflow.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// preferred returns the queue of the machines that may take the session first: that which ran it last and has its worktree, unless its disk was full, or those with a
// label. It is empty if there are none.
func (r *run) preferred() string {
	switch {
	case r.stop.Reason == checkout:
	case r.stop.Machine != "":
		return OwnQueue(r.Repository, r.Plan, r.stop.Machine)
	case r.Prefers != "":
		return Queue(r.Repository, r.Plan, r.Prefers)
	}
	return ""
}

// on returns a context for a stretch on the machines of a queue, or on any that may run the session. Sessions that have begun go before new ones.
func (r *run) on(ctx workflow.Context, first string) workflow.Context {
	options := workflow.ActivityOptions{
		TaskQueue: Queue(r.Repository, r.Plan, r.Needs), StartToCloseTimeout: longest, HeartbeatTimeout: r.Heartbeat, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}
	if first != "" {
		options.TaskQueue, options.ScheduleToStartTimeout = first, min(firstTime, 2*r.Heartbeat)
	}
	if r.begun {
		options.Priority = temporal.Priority{PriorityKey: 1}
	}
	return workflow.WithActivityOptions(ctx, options)
}

// rest waits until the session can continue: for a person, or for the time that its limit, its remote or the host of its pull request needs.
func (r *run) rest(ctx workflow.Context) error {
	r.show(ctx, r.stop.Status, r.stop.Reason, r.stop.Machine)
	pause := time.Duration(0)
	switch {
	case r.stop.Status != "waiting":
	case r.stop.Reason == "remote":
		pause = awayPause
	case r.stop.Reason == "limit" && !r.stop.Until.IsZero():
		pause = max(firstPause, r.left(ctx))
	case slices.Contains([]string{"limit", "ci", "merge", "dependency", checkout}, r.stop.Reason):
		pause = max(lastPause, r.left(ctx))
	}
	r.resting = pause == 0
	// Without a receiver, a signal stays in the channel until the next stretch, where settle sees it: both can arrive together, and settle first.
	woken := func() bool { return r.wake.Len() > 0 }
	var err error
	if pause > 0 {
		_, err = workflow.AwaitWithTimeout(ctx, pause, woken)
	} else {
		err = workflow.Await(ctx, woken)
	}
	r.resting = false
	return err
}

// left returns the time until a session can continue.
func (r *run) left(ctx workflow.Context) time.Duration {
	return cmp.Or(r.stop.Left, r.stop.Until.Sub(workflow.Now(ctx)))
}

// show sets the memo, which lists of sessions show. machine runs the session, ran it last, or could not run coven.
func (r *run) show(ctx workflow.Context, status, reason, machine string) {
	_ = workflow.UpsertMemo(ctx, map[string]any{"status": status, "reason": reason, "machine": machine}) // lists only
}
