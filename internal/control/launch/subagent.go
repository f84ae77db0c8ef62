package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner/workclock"
)

// subagent is one request for a subagent, from the request to its end.
type subagent struct {
	*spawner
	request spawn.Request
	trace   string

	child    spawn.Child
	provider string
	account  string
	id       string
	over     bool // its end is on record, or cannot be recorded
	report   driver.Report
	used     spent
	abort    context.CancelCauseFunc
	alone    func() bool // no other subagent has changed the worktree since it started

	attempt int    // of report; 0 without evaluation
	partial bool   // no attempt passed
	kept    string // why the worktree is not as attempt left it
}

// spent is the usage of all runs of a subagent.
type spent struct {
	input, output int64 // tokens
	usd           float64
	turns         int
}

// readOnly reports whether the subagent cannot change the worktree.
func (r *subagent) readOnly() bool {
	return !slices.Contains(r.child.Permissions, permission.FileWrite)
}

// worker returns the role that does the work.
func (r *subagent) worker() role {
	own := r.Plan.Agents[r.child.Agent]
	return role{
		Caller: spawn.Caller{
			Agent: r.child.Agent, Depth: r.child.Depth, Chain: r.child.Chain, Policy: r.child.Policy, Path: r.path(), Model: r.child.Model, Trace: r.trace,
		},
		definition: own, provider: r.provider, readOnly: r.readOnly(), tools: true, subagent: true,
		system:   systemOf{own: own.Prompt, skills: r.skillText(own), readOnly: r.readOnly(), contract: spawn.Contract},
		stateDir: filepath.Join(r.Workspace.Worktree.StateDir(), "spawn", r.id, r.provider), // it learns nothing of its caller's conversation
		expired:  r.abort,                                                                   // its caller continues
	}
}

// admit decides about the request.
func (r *subagent) admit() (err error) {
	if err := r.delegates(r.request.Agent); err != nil {
		return err
	}
	if r.child, err = r.admission().Admit(r.caller, r.request); err != nil {
		return err
	}
	r.provider, r.child.Model = r.driven(r.Plan.Agents[r.request.Agent].Provider, r.child.Model)
	traits, err := r.Providers.Traits(r.ctx, r.provider)
	if err != nil {
		return err
	}
	if !traits.Gated {
		return fmt.Errorf("provider %s cannot hold agent '%s' to its permissions: its tool calls do not pass the gate", r.provider, r.request.Agent)
	}
	if err := r.round(); err != nil {
		return err
	}
	r.account = traits.Account
	r.id, err = r.newID(r.request)
	return err
}

// maxRefused limits each text of a request in the record of its refusal, in characters.
const maxRefused = 1000

// reject records a refused request, and returns the error for the caller.
func (r *subagent) reject(why error) error {
	clip := func(text string) string { return oneline.Clip(text, maxRefused) }
	refusal := event.SpawnRefusal{Agent: clip(r.request.Agent), Task: clip(r.request.Task), Reason: clip(why.Error()), ParentChain: r.caller.Chain}
	if lacks := (*spawn.EscalationError)(nil); errors.As(why, &lacks) {
		refusal.Permission = lacks.Word
	}
	return errors.Join(why, r.emit(event.SpawnRejected, event.LeafOf(r.caller.Path), refusal))
}

func (r *subagent) emit(t event.Type, path string, data any) error {
	return r.Session.Append(event.Event{Type: t, Path: path, TraceID: r.trace}, data)
}

func (r *subagent) path() string { return event.SpawnPath(r.caller.Path, r.id) }

func (r *subagent) queued(q spawn.State) error {
	var asked []string
	if r.request.Permissions != nil {
		asked = *r.request.Permissions
	}
	return r.emit(event.SpawnQueued, r.path(), event.Spawn{
		ID: r.id, Agent: r.child.Agent, Task: r.child.Task, TaskID: r.request.TaskID, Provider: r.provider,
		Model: r.child.Model, ModelSource: r.child.ModelSource, Depth: r.child.Depth, ParentChain: r.child.Chain, ParentTraceID: r.caller.Trace,
		Permissions: words(r.child.Permissions), Inherited: r.child.Inherited, Requested: asked, Queue: event.Queue(q),
	})
}

func (r *subagent) started(q spawn.State) error {
	failpoint.Point("spawn.queued")
	return r.emit(event.SpawnStarted, r.path(), event.SpawnStart{ID: r.id, Agent: r.child.Agent, Queue: event.Queue(q)})
}

// work runs the subagent, and has its work evaluated if its definition says so.
func (r *subagent) work(outer context.Context) error {
	failpoint.Point("spawn.started")
	ctx, abort := context.WithCancelCause(outer)
	defer abort(nil)
	r.abort = abort
	own := r.Plan.Agents[r.child.Agent]
	if own.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = workclock.Limit(ctx, own.Timeout, &timeoutError{own.Timeout})
		defer cancel()
	}
	var leave func()
	r.alone, leave = r.Spawns.writes(!r.readOnly())
	defer leave()
	var err error
	if own.Reflection != nil {
		err = r.reflect(ctx, outer, *own.Reflection)
	} else {
		r.report, err = r.converse(ctx, r.worker(), r.child.Task)
	}
	failpoint.Point("spawn.ended")
	return err
}

// converse has a conversation. After a rate limit it continues.
func (r *subagent) converse(ctx context.Context, who role, prompt string) (report driver.Report, err error) {
	start := event.AgentStart{Agent: r.child.Agent, Conversation: uuid.NewString(), Prompt: prompt}
	turns := 0
	for {
		if err := r.awaitAccount(ctx, who.Path, r.provider); err != nil {
			return driver.Report{}, err
		}
		if report, err = r.run(ctx, who, start, turns); err != nil || report.Kind != driver.Limit || !report.Started {
			return report, err
		}
		turns += report.Used.Turns
		start.Resumed, start.Prompt = true, "You were interrupted by a rate limit. Continue."
	}
}

// timeoutError is why a subagent is stopped that worked for too long.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("it worked for more than %s", e.limit) }

// run runs the agent once, in a conversation that had turns before.
func (r *subagent) run(ctx context.Context, who role, start event.AgentStart, turns int) (driver.Report, error) {
	transcript, at, err := r.Session.OpenLog(who.Path)
	if err != nil {
		return driver.Report{}, err
	}
	defer transcript.Close() //nolint:errcheck // the events are the record, the log is for people
	start.Log = at
	if err := r.emit(event.AgentStarted, who.Path, start); err != nil {
		return driver.Report{}, err
	}
	charge := r.charge()
	work := assignment{
		id: start.Conversation, resume: start.Resumed, prompt: start.Prompt, transcript: transcript, spend: charge.Spend, charge: r.charge,
	}
	if most := who.definition.MaxTurns; most > 0 {
		work.maxTurns = max(most-turns, 1)
	}
	a, err := r.launch(ctx, who, work)
	if err != nil {
		return driver.Report{}, err
	}
	report, err := a.run(ctx)
	charge.Ended(report)
	r.spend(report.Used)
	return report, errors.Join(err, a.close())
}

// spend adds the usage of a run.
func (r *subagent) spend(used event.Usage) {
	r.used.input += used.Input + used.CacheRead + used.CacheWrite
	r.used.output += used.Output
	r.used.usd += r.cost(used)
	r.used.turns += used.Turns
}

// end records how the subagent ended. err is why it could not run, or was stopped.
func (r *subagent) end(ctx context.Context, err error) error {
	r.over = true
	end := event.SpawnEnd{ID: r.id, Agent: r.child.Agent, Status: event.StatusFailed, Report: r.report.Text, Model: r.child.Model}
	end.Input, end.Output, end.CostUSD, end.Turns = r.used.input, r.used.output, r.used.usd, r.used.turns
	end.Status, end.Error = r.outcome(ctx, r.report, err)
	end.Attempt = r.attempt
	if end.Status == event.StatusCompleted {
		end.Summary = oneline.Of(spawn.Summary(end.Report))
		if r.partial {
			end.Status, end.ReflectionFailed, end.Kept = event.StatusPartial, true, r.kept
		}
	}
	return r.emit(event.SpawnEnded, r.path(), end)
}

// outcome returns the status of the subagent after a conversation, and why it failed.
func (r *subagent) outcome(ctx context.Context, report driver.Report, err error) (event.Status, *event.SpawnError) {
	failed := &event.SpawnError{Type: event.ErrorInternal}
	timeout, panicked := (*timeoutError)(nil), (*spawn.PanicError)(nil)
	switch {
	case errors.As(err, new(*expiredError)):
		failed.Type = event.ErrorApproval
	case errors.As(err, &timeout):
		failed.Type = event.ErrorTimeout
	case errors.Is(err, errNobodyWaits):
		failed.Type, failed.Message = event.ErrorCancelled, err.Error()
		return event.StatusCancelled, failed
	case ctx.Err() != nil:
		failed.Type, failed.Message = event.ErrorCancelled, oneline.Of(context.Cause(ctx).Error())
		return event.StatusInterrupted, failed
	case errors.As(err, &panicked):
		failed.Stack = panicked.Stack
	case err == nil && report.Kind == driver.None && strings.TrimSpace(report.Text) == "":
		failed.Type, err = event.ErrorOutput, errors.New("it ended without a message")
	case err == nil && report.Kind == driver.None:
		return event.StatusCompleted, nil
	case err == nil:
		failed.Type, err = report.Kind, errors.New(report.Error)
	}
	failed.Message = oneline.Of(r.Workspace.Secrets.Text(err.Error()))
	return event.StatusFailed, failed
}

// spawnFailure tells a caller that its subagent failed.
type spawnFailure struct {
	kind    event.ErrorType
	message string
}

func (e *spawnFailure) Error() string { return e.message }

func (r *subagent) failure(record session.Subagent) error {
	text := fmt.Sprintf("%s failed: %s: %s\n%s", r.child.Agent, record.Error.Type, record.Error.Message, spawn.Attribution(r.trace, r.child.Chain, r.child.Task))
	if report := strings.TrimSpace(record.Report); report != "" {
		text += "\n\nIts last message:\n\n" + report
	}
	return &spawnFailure{kind: record.Error.Type, message: text}
}

// excuse returns the reason why a process may not use the tools of an agent at a depth.
func (l *Launcher) excuse(depth int) string {
	if err := l.admission().Descend(depth); err != nil {
		return err.Error()
	}
	return "the token is not that of the agent that this process belongs to"
}
