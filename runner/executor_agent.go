package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner/agentresult"
	"github.com/coven-run/coven/runner/continuation"
	"github.com/coven-run/coven/runner/engine"
)

// AgentResultContract is the instruction to report a result. It is part of every agent's system text.
const AgentResultContract = agentresult.Contract

// agent runs an agent leaf.
func (x *Executor) agent(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if c.Agent.Resolve {
		return x.resolve(ctx, c, b)
	}
	if c.Agent.Chat {
		return x.answer(ctx, c, b)
	}
	report, err := x.report(ctx, c, b)
	if err != nil {
		return event.Result{}, err
	}
	result, err := x.outcome(c, report)
	if err != nil {
		return event.Result{}, err
	}
	if result.Error != "" {
		return x.commitUnfinished(ctx, result)
	}
	result, refused, err := x.tryCommit(ctx, c, b, result, "")
	if err != nil || refused == nil || x.wasToldOfRefusal(c.Path, b) {
		return result, err
	}
	return x.fixRefusal(ctx, c, b, result, refused)
}

// refusedPrompt begins the message to an agent whose work was not committed.
const refusedPrompt = "Your work cannot be committed: "

// wasToldOfRefusal reports whether the agent of a leaf knows already that its work was not committed.
func (x *Executor) wasToldOfRefusal(path string, b leafStart) bool {
	return slices.ContainsFunc(x.Journal.At(path, event.AgentStarted), func(e event.Event) bool {
		return e.Seq > b.since && strings.HasPrefix(event.As[event.AgentStart](e).Prompt, refusedPrompt)
	})
}

// fixRefusal tells the agent, in the same conversation, why its work was not committed, and commits it again. first is the
// result so far. It remains the result if the agent cannot be told, or fails.
func (x *Executor) fixRefusal(ctx context.Context, c engine.Call, b leafStart, first event.Result, refused *RefusedError) (event.Result, error) {
	started, ok := x.Journal.lastAt(c.Path, event.AgentStarted)
	if !ok {
		return first, nil
	}
	last := event.As[event.AgentStart](started)
	before, _, err := x.recall(ctx, c, last.Log)
	if err != nil {
		return event.Result{}, err
	}
	prompt := refusedPrompt + refused.Reason
	if refused.Output != "" {
		prompt += "\n\n" + refused.Output
	}
	report, err := x.runPrompt(ctx, c, b, event.AgentStart{
		Conversation: conversation(before, last), Resumed: true, Prompt: prompt + "\n\nChange the files so that they can be committed, then end with your report as before.",
	})
	if errors.Is(err, pluginerr.ErrUnsupported) || err == nil && !report.Started && report.Kind != driver.Limit {
		return first, nil
	}
	if report, err = x.ended(ctx, c, b, report, err); err != nil {
		return event.Result{}, err
	}
	result, err := x.outcome(c, report)
	if err != nil {
		return event.Result{}, err
	}
	if result.Error != "" {
		return first, nil
	}
	return x.commit(ctx, c, b, result, "")
}

// report runs the agent until it has finished or failed, and returns its report. A timeout is also a
// report. After a rate limit the agent continues (agents.Await).
func (x *Executor) report(ctx context.Context, c engine.Call, b leafStart) (driver.Report, error) {
	report, err := x.converse(ctx, c, b)
	report, err = x.ended(ctx, c, b, report, err)
	if err != nil || !isRefused(report) {
		return report, err
	}
	report, err = x.renew(ctx, c, b, report)
	return x.ended(ctx, c, b, report, err)
}

// ended continues an agent after rate limits, and converts the end of its time to a report.
func (x *Executor) ended(ctx context.Context, c engine.Call, b leafStart, report driver.Report, err error) (driver.Report, error) {
	for err == nil && report.Kind == driver.Limit {
		var now leafStart
		if now, _, err = x.started(c.Path); err == nil {
			b.cutOff, b.since = true, now.since
			report, err = x.converse(ctx, c, b)
		}
	}
	failpoint.Point("agent.ended")
	if isChanged(err) {
		return report, err
	}
	if over := (*engine.OverTimeError)(nil); errors.As(err, &over) {
		report, err = driver.Report{Kind: driver.Timeout, Error: over.Error()}, nil
	}
	if wait := b.usage.exceeded(); wait != nil && (err != nil || report.Kind != driver.None) {
		return report, wait // a complete run keeps its result; the next agent does not start
	}
	return report, err
}

// outcome converts a report to a result, before anything is committed.
func (x *Executor) outcome(c engine.Call, report driver.Report) (event.Result, error) {
	result := event.Result{Agent: cmp.Or(c.Agent.Agent, grimoires.DefaultAgent), Output: report.Text, Usage: report.Result.Usage}
	if report.Kind != driver.None {
		result.Error, result.ErrorType = report.Error, report.Kind
		return result, nil
	}
	return result, x.readResult(c.Path, finalMessage(report), &result)
}

// finalMessage returns the agent's last message with a result block, so that later answers to a person do
// not change the result. If there is none, it returns the last message.
func finalMessage(report driver.Report) string {
	for _, said := range slices.Backward(report.Said) {
		if _, found, err := agentresult.Parse(said); found || err != nil {
			return said
		}
	}
	return report.Text
}

// readResult adds the agent's report about its work to a result.
func (x *Executor) readResult(path, text string, result *event.Result) error {
	claim, found, err := agentresult.Parse(text)
	if err != nil {
		result.Summary = agentresult.SummaryOf(text)
		return x.warn(path, "the agent's result block is not valid JSON and is treated as text: "+err.Error())
	}
	if !found {
		result.Summary = agentresult.SummaryOf(text)
		return nil
	}
	result.Summary, result.Outputs = claim.Summary, claim.Outputs
	if !claim.Success {
		result.Error, result.ErrorType = "the agent reported failure: "+claim.Reason(), event.ErrorAgent
	}
	return nil
}

// commitUnfinished commits the changes of a failed step, so that later steps and the next attempt can use
// them. Changes that must not be committed stay uncommitted. The step's time limit does not apply to the
// commit.
func (x *Executor) commitUnfinished(ctx context.Context, result event.Result) (event.Result, error) {
	commit, err := x.Workspace.Commit(context.WithoutCancel(ctx), message(x.Title, "Unfinished: "+result.Error), "")
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return result, nil
	}
	if err != nil {
		return event.Result{}, err
	}
	result.Commit, result.Tree, result.Files = commit.Oid, commit.Tree, commit.Files
	return result, nil
}

// commit commits the changes of a step and completes its result. merges is the commit of the target that
// the step merged. It may be empty.
func (x *Executor) commit(ctx context.Context, c engine.Call, b leafStart, result event.Result, merges string) (event.Result, error) {
	result, _, err := x.tryCommit(ctx, c, b, result, merges)
	return result, err
}

// tryCommit is commit. If the work must not be committed, it also returns the reason.
func (x *Executor) tryCommit(ctx context.Context, c engine.Call, b leafStart, result event.Result, merges string) (event.Result, *RefusedError, error) {
	commit, err := x.Workspace.Commit(ctx, message(x.Title, result.Summary), merges)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		result.Error, result.ErrorType = refused.Reason, event.ErrorCommit
		if refused.Output != "" {
			result.Output = refused.Output
		}
		return result, refused, nil
	}
	if err != nil {
		return event.Result{}, nil, err
	}
	result.Commit, result.Tree, result.Files = commit.Oid, commit.Tree, commit.Files
	if c.Agent != nil && c.Agent.ExpectChanges && commit.Tree == b.origin {
		return engine.Unchanged(result), nil, nil
	}
	result.OK = true
	return result, nil, nil
}

// converse runs the agent once. It resumes an interrupted conversation, if there is one.
func (x *Executor) converse(ctx context.Context, c engine.Call, b leafStart) (driver.Report, error) {
	if why := x.workOf(c, b).Superseded(); why != "" {
		b.since = 0 // all attempts
		return x.replace(ctx, c, b, why)
	}
	starts := x.starts(c.Path, b)
	if len(starts) == 0 {
		return x.firstRun(ctx, c, b)
	}
	last := starts[len(starts)-1]
	report, complete, err := x.recall(ctx, c, last.Log)
	if err != nil {
		return driver.Report{}, err
	}
	before, _, err := x.recall(ctx, c, starts[0].Log)
	if err != nil {
		return driver.Report{}, err
	}
	work := x.workOf(c, b)
	said := work.Undelivered(before.Acknowledged)
	if complete && report.Kind != driver.Limit && report.Kind != driver.Login && len(said) == 0 {
		return report, nil
	}
	if !before.Started {
		return x.unstarted(ctx, c, b, starts[0], work.HasCalls())
	}
	request := ""
	if work.Continued {
		request = c.Agent.Prompt
	}
	report, err = x.runPrompt(ctx, c, b, event.AgentStart{Conversation: conversation(before, last), Resumed: true, Prompt: work.Resumed(request, said)})
	switch {
	case errors.Is(err, pluginerr.ErrUnsupported): // the provider's CLI cannot resume
		return x.runPrompt(ctx, c, b, event.AgentStart{Conversation: uuid.NewString(), Prompt: work.Restarted(c.Agent.Prompt, said)})
	case err == nil && !report.Started:
		return x.replace(ctx, c, b, lostText)
	}
	return report, err
}

// unstarted runs an agent whose log does not show a conversation. worked reports whether the journal has calls of it.
func (x *Executor) unstarted(ctx context.Context, c engine.Call, b leafStart, first event.AgentStart, worked bool) (driver.Report, error) {
	switch {
	case continuation.IsReplacement(first.Prompt): // the work of the replaced conversation stays
		return x.runPrompt(ctx, c, b, event.AgentStart{Conversation: uuid.NewString(), Prompt: first.Prompt})
	case worked && !x.hasLog(c.Path): // log and conversation have stayed on another machine
		return x.replace(ctx, c, b, lostText)
	}
	return x.firstRun(ctx, c, b)
}

// conversationRE matches conversation IDs that no CLI can mistake for anything else.
var conversationRE = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// conversation returns the ID of the conversation to resume: the CLI's ID if it is a plain word, otherwise
// the ID that coven chose.
func conversation(before driver.Report, last event.AgentStart) string {
	if !conversationRE.MatchString(before.Conversation) {
		return last.Conversation
	}
	return before.Conversation
}

// firstRun starts the agent of a leaf. If the leaf continues an earlier conversation that the CLI still
// knows, the agent runs in that.
func (x *Executor) firstRun(ctx context.Context, c engine.Call, b leafStart) (driver.Report, error) {
	earlier, err := x.conversationAt(ctx, c)
	if err != nil {
		return driver.Report{}, err
	}
	if earlier == "" {
		return x.startOver(ctx, c, b)
	}
	if err := x.restoreCutOff(ctx, b); err != nil {
		return driver.Report{}, err
	}
	report, err := x.runPrompt(ctx, c, b, event.AgentStart{Conversation: earlier, Resumed: true, Prompt: c.Agent.Prompt})
	if !errors.Is(err, pluginerr.ErrUnsupported) && (err != nil || report.Started) {
		return report, err
	}
	if earlier == c.Agent.Conversation {
		if err := x.warn(c.Path, "the messages of the forked conversation are gone: the agent does not know them"); err != nil {
			return report, err
		}
	}
	if c.Agent.Continues != "" && err == nil {
		return x.replace(ctx, c, b, lostText)
	}
	return x.startOver(ctx, c, b)
}

// conversationAt returns the ID of the conversation that an agent leaf continues, or "".
func (x *Executor) conversationAt(ctx context.Context, c engine.Call) (string, error) {
	starts := x.Journal.At(c.Agent.Continues, event.AgentStarted)
	if c.Agent.Continues == "" || len(starts) == 0 {
		return c.Agent.Conversation, nil
	}
	c.Path = c.Agent.Continues
	var last event.AgentStart
	if err := starts[len(starts)-1].Decode(&last); err != nil {
		return "", err
	}
	report, _, err := x.recall(ctx, c, last.Log)
	return conversation(report, last), err
}

// startOver starts a new conversation. It first restores the worktree to the state at the start of the
// step.
func (x *Executor) startOver(ctx context.Context, c engine.Call, b leafStart) (driver.Report, error) {
	if err := x.restoreCutOff(ctx, b); err != nil {
		return driver.Report{}, err
	}
	prompt := x.workOf(c, b).Repeated()
	if c.Agent.Chat {
		prompt = x.earlierMessages(c) + c.Agent.Prompt
	}
	return x.runPrompt(ctx, c, b, event.AgentStart{Conversation: uuid.NewString(), Prompt: prompt})
}

// restoreCutOff restores the worktree of an interrupted leaf to the state at the start of the step.
func (x *Executor) restoreCutOff(ctx context.Context, b leafStart) error {
	if !b.cutOff {
		return nil
	}
	return x.Workspace.Restore(ctx, b.Snapshot)
}

// runPrompt runs the agent of a leaf with a prompt.
func (x *Executor) runPrompt(ctx context.Context, c engine.Call, b leafStart, start event.AgentStart) (driver.Report, error) {
	return x.runAgent(ctx, b.usage, start, agentRun(c))
}

// agentRun returns the run of the agent of a leaf.
func agentRun(c engine.Call) AgentRun {
	return AgentRun{
		Path: c.Path, Agent: c.Agent.Agent, Model: c.Agent.Model, Provider: c.Agent.Provider, Env: c.Agent.Env, Workdir: c.Agent.Workdir, Chat: c.Agent.Chat,
	}
}

// runAgent runs an agent once and charges its usage. It first waits for rate limits of the account to end.
func (x *Executor) runAgent(ctx context.Context, usage *leafUsage, start event.AgentStart, run AgentRun) (driver.Report, error) {
	if err := x.Agents.Await(ctx, run.Path, run.Provider); err != nil {
		return driver.Report{}, err
	}
	transcript, at, err := x.Journal.OpenLog(run.Path)
	if err != nil {
		return driver.Report{}, err
	}
	start.Log, start.Agent = at, cmp.Or(run.Agent, grimoires.DefaultAgent)
	defer transcript.Close() //nolint:errcheck // the events are the record; the log is for people
	if err := x.emit(event.AgentStarted, run.Path, start); err != nil {
		return driver.Report{}, err
	}
	used := usage.agent()
	run.Key, run.Conversation, run.Resume, run.Prompt = x.key(run.Path), start.Conversation, start.Resumed, start.Prompt
	run.Transcript, run.Spend = transcript, used.charge
	run.Subagent = func() Charge {
		sub := usage.agent()
		return Charge{Spend: sub.charge, Ended: sub.ended}
	}
	var report driver.Report
	work := func() (err error) {
		report, err = x.Agents.Run(ctx, run)
		return err
	}
	if run.ReadOnly { // all agents of a review are watched together
		err = work()
	} else {
		err = x.watched(ctx, run.Path, work)
	}
	used.ended(report)
	return report, err
}

// starts returns the runs of an interrupted leaf's agent in its last conversation.
func (x *Executor) starts(path string, b leafStart) []event.AgentStart {
	if !b.cutOff {
		return nil
	}
	var starts []event.AgentStart
	for _, e := range x.Journal.At(path, event.AgentStarted) {
		var start event.AgentStart
		if e.Seq < b.since || e.Decode(&start) != nil {
			continue
		}
		if !start.Resumed {
			starts = nil
		}
		starts = append(starts, start)
	}
	return starts
}

// recall reads the report of an interrupted run from its transcript.
func (x *Executor) recall(ctx context.Context, c engine.Call, from int64) (driver.Report, bool, error) {
	transcript, err := x.Journal.ReadLog(c.Path, from)
	if errors.Is(err, fs.ErrNotExist) {
		return driver.Report{}, false, nil
	}
	if err != nil {
		return driver.Report{}, false, fmt.Errorf("read the transcript of %s: %w", c.Path, err)
	}
	defer transcript.Close() //nolint:errcheck // read only
	return x.Agents.Recall(ctx, c.Agent.Provider, transcript)
}

// hasLog reports whether the log of a leaf is on this machine.
func (x *Executor) hasLog(path string) bool {
	log, err := x.Journal.ReadLog(path, 0)
	if err == nil {
		_ = log.Close() // read only
	}
	return !errors.Is(err, fs.ErrNotExist)
}
