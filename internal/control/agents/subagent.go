package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/spawn"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
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
	inner    *spawner    // starts its own subagents
	alone    func() bool // no other subagent has changed the worktree since it started

	attempt int    // that report is of; 0: its work is not evaluated
	partial bool   // no attempt passed
	kept    string // why the worktree is not as attempt left it
}

// spent is what all runs of a subagent used.
type spent struct {
	input, output int64 // tokens
	usd           float64
	turns         int
}

// part is one of the parts that the model plays for a subagent, each in conversations of its own: it does
// the work, or evaluates it.
type part struct {
	path     string
	policy   *permission.Policy
	system   systemOf
	readOnly bool // it cannot change the worktree
	works    bool // it has the tools of coven, and a person is asked for it
	stateDir string
}

// readOnly reports whether the subagent cannot change the worktree.
func (r *subagent) readOnly() bool {
	return !slices.Contains(r.child.Permissions, permission.FileWrite)
}

// worker returns the part that does the work.
func (r *subagent) worker() part {
	return part{
		path: r.path(), policy: r.child.Policy, readOnly: r.readOnly(), works: true, stateDir: r.subagentDir(r.provider, r.id),
		system: systemOf{own: r.Plan.Agents[r.child.Agent].Prompt, skills: r.skillText(r.Plan.Agents[r.child.Agent]), readOnly: r.readOnly(), contract: spawn.Contract},
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
	r.provider = cmp.Or(r.Plan.Agents[r.request.Agent].Provider, r.Plan.Provider)
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
	r.account = traits.account
	r.id, err = r.newID(r.request)
	return err
}

// maxRefused limits each text of a request in the record of its refusal, in characters.
const maxRefused = 1000

// reject records that a request starts nothing, and returns what the caller is told.
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
		ctx, cancel = runner.Limited(ctx, own.Timeout, &timeoutError{own.Timeout})
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
func (r *subagent) converse(ctx context.Context, as part, prompt string) (report driver.Report, err error) {
	start := event.AgentStart{Agent: r.child.Agent, Conversation: uuid.NewString(), Prompt: prompt}
	turns := 0
	for {
		if err := r.Await(ctx, as.path, r.provider); err != nil {
			return driver.Report{}, err
		}
		if report, err = r.run(ctx, as, start, turns); err != nil || report.Kind != driver.Limit || !report.Started {
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
func (r *subagent) run(ctx context.Context, as part, start event.AgentStart, turns int) (report driver.Report, err error) {
	transcript, at, err := r.Session.OpenLog(as.path)
	if err != nil {
		return driver.Report{}, err
	}
	defer transcript.Close() //nolint:errcheck // the events are the record, the log is for people
	start.Log = at
	if err := r.emit(event.AgentStarted, as.path, start); err != nil {
		return driver.Report{}, err
	}
	where, err := r.setting(ctx, r.provider, as.path)
	if err != nil {
		return driver.Report{}, err
	}
	charge := r.charge()
	keeper, launch, done, err := r.launch(ctx, where, as, start, transcript)
	if err != nil {
		return driver.Report{}, err
	}
	launch.Spend = charge.Spend
	if most := r.Plan.Agents[r.child.Agent].MaxTurns; most > 0 {
		launch.MaxTurns = max(most-turns, 1)
	}
	report, err = r.Agents.run(ctx, where, r.role(as), keeper, launch)
	charge.Ended(report)
	r.spend(report.Used)
	return r.hide(report), errors.Join(err, done())
}

// role returns who the subagent is in one of its parts.
func (r *subagent) role(as part) role {
	who := role{name: r.child.Agent, provider: r.provider, own: r.Plan.Agents[r.child.Agent], policy: as.policy, subagent: r.path()}
	if as.works {
		who.spawns = r.inner
	}
	return who
}

// spend adds what a run used.
func (r *subagent) spend(used event.Usage) {
	r.used.input += used.Input + used.CacheRead + used.CacheWrite
	r.used.output += used.Output
	r.used.usd += r.cost(used)
	r.used.turns += used.Turns
}

// launch returns the run of the agent. done ends what belongs to it.
func (r *subagent) launch(ctx context.Context, s setting, as part, start event.AgentStart, transcript io.Writer) (keeper *gate.Gate, launch driver.Job, done func() error, err error) {
	system, err := r.systemText(ctx, s.root, as.system)
	if err != nil {
		return nil, driver.Job{}, nil, err
	}
	emit := func(t event.Type, data any) error { return r.emit(t, as.path, data) }
	inner := &spawner{Agents: r.Agents, ctx: ctx, charge: r.charge, caller: spawn.Caller{
		Agent: r.child.Agent, Depth: r.child.Depth, Chain: r.child.Chain, Policy: as.policy, Path: r.path(), Model: r.child.Model, Trace: r.trace,
	}}
	r.inner = inner
	keeper = gate.New(as.policy, recorded{r.Agents, as.path}, emit)
	var own []tool.Tool
	if as.works {
		ask := r.asker(ctx, s.root, r.child.Agent, emit)
		if own, err = r.ownTools(inner, ask); err != nil {
			return nil, driver.Job{}, nil, err
		}
		own = append(own, r.skillTools(r.Plan.Agents[r.child.Agent])...)
		ask.expired = r.abort // its caller goes on
		keeper.Asks(ask)
	}
	keeper.Descend(func() error { return r.admission().Descend(r.child.Depth) })
	tracker := &limitTracker{agents: r.Agents, account: r.account}
	launch = driver.Job{
		Agent: r.child.Agent, Provider: s.plugin, Conversation: start.Conversation, Resume: start.Resumed, Prompt: start.Prompt, System: system, Model: r.child.Model,
		Tools: r.listed(r.child.Agent, r.Plan.Agents[r.child.Agent], as.policy), Own: own, Depth: r.child.Depth, Excuse: r.excuse,
		Room: s.room, Network: s.network, StateDir: as.stateDir, ReadOnly: as.readOnly,
		Dir: s.root, Pass: r.Workspace.Pass, Env: []string{workspace.TraceVariable + "=" + r.trace}, Idle: r.Idle,
		Gate: keeper, Transcript: transcript, Emit: emit,
		Say: func(part provider.Event) error {
			tracker.observe(part)
			if call, ok := part.(provider.ToolCall); ok {
				tool.Progress(ctx, r.child.Agent+": "+gate.Summary(gate.Call{ID: call.ID, Tool: call.Name, Input: call.Input}, s.root))
			}
			return r.say(s, as.path, part)
		},
		Forward: r.forwarder(emit), Limit: tracker.limited, SameCall: r.Limits.SameCall,
	}
	end := func() {}
	if as.works {
		end = r.serves(ctx, r.role(as), keeper, as.path, &launch)
	}
	return keeper, launch, func() error { end(); keeper.Close(); inner.work.Wait(); return tracker.broken }, nil
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

// spawnFailure is what the caller of a subagent that failed is told.
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

// excuse returns what a process of an agent is told that may not use the tools of another.
func (c *Agents) excuse(depth int) string {
	if err := c.admission().Descend(depth); err != nil {
		return err.Error()
	}
	return "the token is not that of the agent that this process belongs to"
}
