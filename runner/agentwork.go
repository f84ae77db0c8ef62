package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/event"
)

// goOn is what an agent is told whose conversation was cut off.
const goOn = "You were interrupted while you worked on this task. Nothing was undone. Go on from where you stopped."

// fewCalls is how many of its calls the agent is reminded of.
const fewCalls = 10

// reminder is goOn with the agent's last calls. The CLI writes its conversation
// down a little later than it goes on: the agent may not know what it just did.
func (w *Workshop) reminder(path string, b beginning) string {
	var calls []string
	for _, e := range w.Journal.Events() {
		var call event.Tool
		if e.Type == event.AgentTool && e.Path == path && e.Seq > b.since && e.Decode(&call) == nil {
			calls = append(calls, "- "+call.Summary)
		}
	}
	if len(calls) == 0 {
		return goOn
	}
	calls = calls[max(0, len(calls)-fewCalls):]
	return goOn + " Your last tool calls before the interruption, which may have run even if you do not remember them; look before you repeat one:\n\n" + strings.Join(calls, "\n")
}

// agent does an agent leaf.
func (w *Workshop) agent(ctx context.Context, c Call, b beginning) (Result, error) {
	report, err := w.converse(ctx, c, b)
	if over := (*OverTimeError)(nil); errors.As(err, &over) {
		report, err = agent.Report{Kind: agent.Timeout, Error: over.Error()}, nil
	}
	if err != nil {
		return Result{}, err
	}
	ctx = context.WithoutCancel(ctx) // the work is done: it is not lost to a Ctrl-C now
	if report.Kind == agent.Limit {
		return Result{}, &Wait{
			Reason: "limit", Detail: report.Error, Next: "resume",
		}
	}
	result := Result{Output: report.Text, Usage: report.Result.Usage}
	if report.Kind != agent.None {
		result.Error, result.ErrorType = report.Error, string(report.Kind)
		_, err := w.Stage.Snapshot(ctx, "end of "+c.Path)
		return result, err
	}
	if err := w.claimed(c.Path, report.Text, &result); err != nil {
		return Result{}, err
	}
	if result.Error != "" {
		_, err := w.Stage.Snapshot(ctx, "end of "+c.Path)
		return result, err
	}
	return w.committed(ctx, c, b, result)
}

// claimed reads what the agent claims to have done.
func (w *Workshop) claimed(path, text string, result *Result) error {
	claim, found, err := ParseClaim(text)
	if err != nil {
		result.Summary = firstParagraph(text)
		return w.warn(path, "the agent's result block is not valid JSON and counts as text: "+err.Error())
	}
	if !found {
		result.Summary = firstParagraph(text)
		return nil
	}
	result.Summary, result.Outputs = claim.Summary, claim.Outputs
	if !claim.Success {
		result.Error, result.ErrorType = "the agent says that it did not succeed: "+claim.reason(), "agent"
	}
	return nil
}

// committed commits what the step left and says whether that is enough.
func (w *Workshop) committed(ctx context.Context, c Call, b beginning, result Result) (Result, error) {
	commit, err := w.Branch.Commit(ctx, message(w.Title, result.Summary))
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		result.Error, result.ErrorType = refused.Reason, "commit"
		if refused.Output != "" {
			result.Output = refused.Output
		}
		return result, nil
	}
	if err != nil {
		return Result{}, err
	}
	result.Commit, result.Tree, result.Files = commit.Oid, commit.Tree, commit.Files
	if c.Agent != nil && c.Agent.ExpectChanges && commit.Tree == b.Tree {
		result.Error, result.ErrorType = "no_changes: the agent says it is done and changed nothing", "no_changes"
		return result, nil
	}
	result.OK = true
	return result, nil
}

// converse runs the agent to its end, going on with a conversation that was
// cut off where there is one.
func (w *Workshop) converse(ctx context.Context, c Call, b beginning) (agent.Report, error) {
	conversation := w.conversation(c.Path, b)
	if conversation == "" {
		return w.begunAnew(ctx, c, b)
	}
	report, complete, err := w.recall(ctx, c.Path)
	if err != nil {
		return agent.Report{}, err
	}
	switch {
	case complete && report.Kind != agent.Limit:
		return report, nil
	case !report.Started:
		return w.begunAnew(ctx, c, b)
	}
	report, err = w.speak(ctx, c, event.AgentStart{
		Conversation: conversation, Resumed: true, Prompt: w.reminder(c.Path, b),
	})
	if err == nil && !report.Started {
		return w.begunAnew(ctx, c, b) // the CLI does not know the conversation
	}
	return report, err
}

// begunAnew starts a new conversation, from the worktree of the step's start.
func (w *Workshop) begunAnew(ctx context.Context, c Call, b beginning) (agent.Report, error) {
	if b.cutOff {
		if err := w.Stage.Restore(ctx, b.Snapshot); err != nil {
			return agent.Report{}, err
		}
	}
	return w.speak(ctx, c, event.AgentStart{Conversation: uuid.NewString(), Prompt: c.Agent.Prompt})
}

// speak runs the agent once.
func (w *Workshop) speak(ctx context.Context, c Call, start event.AgentStart) (agent.Report, error) {
	transcript, err := w.Logs.Open(c.Path)
	if err != nil {
		return agent.Report{}, err
	}
	defer transcript.Close() //nolint:errcheck // the events are the record, the log is for people
	if err := w.emit(event.AgentStarted, c.Path, start); err != nil {
		return agent.Report{}, err
	}
	return w.Agents.Run(ctx, AgentRun{
		Path: c.Path, Key: w.key(c.Path), Conversation: start.Conversation, Resume: start.Resumed,
		Prompt: start.Prompt, Model: c.Agent.Model, Transcript: transcript,
	})
}

// conversation is the id of the conversation of a leaf that was cut off.
func (w *Workshop) conversation(path string, b beginning) string {
	if !b.cutOff {
		return ""
	}
	id := ""
	for _, e := range w.Journal.Events() {
		if e.Type == event.AgentStarted && e.Path == path && e.Seq > b.since {
			var start event.AgentStart
			if e.Decode(&start) == nil {
				id = start.Conversation
			}
		}
	}
	return id
}

// recall reads what a run that was cut off had come to.
func (w *Workshop) recall(ctx context.Context, path string) (agent.Report, bool, error) {
	transcript, err := w.Logs.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return agent.Report{}, false, nil
	}
	if err != nil {
		return agent.Report{}, false, fmt.Errorf("read the transcript of %s: %w", path, err)
	}
	defer transcript.Close() //nolint:errcheck // read only
	return w.Agents.Recall(ctx, transcript)
}
