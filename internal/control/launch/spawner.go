package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/channel"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/workclock"
)

// Spawns is the state that all agents of a session share.
type Spawns struct {
	Queue spawn.Queue

	mu       sync.Mutex
	taken    map[string]bool   // IDs
	channels *channel.Channels // nil until an agent uses one
	rounds   map[string]int    // delegations of the orchestrator of a tree, by the path of its step

	writers int // that work
	began   int // of them, so far
}

// Settle records that subagents ended with the process that ran them. A session calls it before
// it continues.
func Settle(s *session.Session) error {
	if len(s.Journal.Of(event.SpawnQueued)) == 0 {
		return nil
	}
	view, err := s.View()
	if err != nil {
		return err
	}
	for _, sub := range view.Subagents {
		if sub.Ended.IsZero() {
			end := event.SpawnEnd{ID: sub.ID, Agent: sub.Agent, Status: event.StatusInterrupted, Error: &event.SpawnError{Type: event.ErrorCancelled, Message: "coven ended while it worked"}}
			if err := s.Append(event.Event{Type: event.SpawnEnded, TraceID: sub.TraceID}, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// spawner starts the subagents of one agent.
type spawner struct {
	*Launcher
	ctx    context.Context // of the step; its clocks stand still while a subagent works
	caller spawn.Caller
	charge func() runner.Charge
	work   sync.WaitGroup
}

func (l *Launcher) admission() spawn.Admission { return agents.Admission(l.Plan) }

// tool returns spawn_agent for the agent.
func (s *spawner) tool() tool.Tool {
	return tool.Tool{
		Kind: tool.SpawnAgent, Category: "utility", Description: s.describe(), Schema: json.RawMessage(spawn.Schema),
		ReadOnly: true, // several calls of one turn may wait in the queue at once
		Call:     tool.Decoded(s.report),
	}
}

// report runs a subagent and returns its record, for the agent that asked.
func (s *spawner) report(ctx context.Context, r spawn.Request) (string, error) {
	s.work.Add(1)
	defer s.work.Done()
	record, err := s.spawn(ctx, r)
	if err != nil {
		return "", err
	}
	return record.Document(s.Session.ID)
}

// subtask is report with the default agent.
func (s *spawner) subtask(ctx context.Context, r spawn.Request) (string, error) {
	r.Agent = cmp.Or(r.Agent, tool.SubtaskAgent)
	return s.report(ctx, r)
}

// describe lists the agents that can be started, for the model.
func (s *spawner) describe() string {
	if err := s.admission().Descend(s.caller.Depth); err != nil {
		return "Not available to you: " + err.Error()
	}
	var b strings.Builder
	b.WriteString("Start a subagent for a separate task and wait for its report. It works in the same worktree, knows only its task, and may do no more than you. Several run one after another. Agents:\n")
	for _, name := range slices.Sorted(maps.Keys(s.Plan.Agents)) {
		if d := s.Plan.Agents[name]; s.offers(name, d) {
			fmt.Fprintf(&b, "- %s: %s\n", name, oneline.Of(d.Description))
		}
	}
	return b.String()
}

// offers reports whether the description of spawn_agent lists an agent.
func (s *spawner) offers(name string, d grimoires.AgentDefinition) bool {
	if s.isRoot(s.caller.Agent) {
		return s.Plan.Tree.Has(name)
	}
	return d.Mode != agent.ModePrimary && name != grimoires.DefaultAgent
}

// spawn runs a subagent and returns its record. call ends when the caller no longer waits.
func (s *spawner) spawn(call context.Context, r spawn.Request) (session.Subagent, error) {
	run := &subagent{spawner: s, request: r, trace: uuid.NewString()}
	if err := run.admit(); err != nil {
		return session.Subagent{}, run.reject(err)
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	defer context.AfterFunc(call, func() { cancel(errNobodyWaits) })()
	ctx = tool.WithProgress(ctx, func(text string) { tool.Progress(call, text) })
	defer workclock.Pause(s.ctx)()
	err := s.Spawns.Queue.Do(ctx, spawn.Item{
		Account: run.account, Label: r.Agent, Queued: func(q spawn.State) error {
			defer tool.Begun(call) // the next request comes after this one
			return run.queued(q)
		}, Started: run.started, Work: func(ctx context.Context) error {
			// The end is on record before the next one starts.
			return run.end(ctx, spawn.Safely(func() error { return run.work(ctx) }))
		},
	})
	if !run.over { // it never started
		err = run.end(ctx, err)
	}
	if err != nil {
		return session.Subagent{}, err
	}
	view, err := s.Session.View()
	if err != nil {
		return session.Subagent{}, err
	}
	record, _ := view.Subagent(run.id)
	if record.Status != session.Completed && record.Status != event.StatusPartial {
		return record, run.failure(record)
	}
	return record, nil
}

// errNobodyWaits is why a subagent is stopped whose caller is gone.
var errNobodyWaits = errors.New("the agent that started it no longer waits")

// newID returns an ID that no subagent of the session has.
func (s *spawner) newID(r spawn.Request) (string, error) {
	view, err := s.Session.View()
	if err != nil {
		return "", err
	}
	s.Spawns.mu.Lock()
	defer s.Spawns.mu.Unlock()
	if s.Spawns.taken == nil {
		s.Spawns.taken = map[string]bool{}
	}
	id := spawn.ID(r, func(id string) bool {
		_, exists := view.Subagent(id)
		return exists || s.Spawns.taken[id]
	})
	s.Spawns.taken[id] = true
	return id, nil
}

// words returns the words for permissions.
func words(names []permission.Name) []string {
	all := []string{}
	for _, n := range names {
		all = append(all, n.Word())
	}
	return all
}

// direct runs the subagent that a person asked for, as the agent of a step.
func (l *Launcher) direct(ctx context.Context, run runner.AgentRun) (driver.Report, error) {
	root, err := l.worktreeRoot()
	if err != nil {
		return driver.Report{}, err
	}
	caller := agents.Person(l.Plan, root)
	caller.Path, caller.Model, caller.Trace = run.Path, run.Model, l.Session.TraceID()
	s := &spawner{Launcher: l, ctx: ctx, caller: caller, charge: run.Subagent}
	var report driver.Report
	work := func() error {
		record, err := s.spawn(ctx, agents.RequestOf(l.Plan))
		if failed := (*spawnFailure)(nil); errors.As(err, &failed) {
			report = driver.Report{Kind: cmp.Or(failed.kind, driver.Failed), Error: failed.message, Started: true}
			return nil
		}
		report.Text, report.Started = record.Report, true
		return err
	}
	if err := l.Workspace.Isolated(ctx, work); err != nil {
		return driver.Report{}, err
	}
	return report, context.Cause(ctx)
}
