package runner

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner/continuation"
	"github.com/coven-run/coven/runner/engine"
)

// lostText is the warning that the agent CLI has lost a conversation.
var lostText = replacedText("the agent CLI does not know it")

// replacedText returns the warning that a conversation is replaced.
func replacedText(why string) string {
	return "the conversation cannot be continued (" + why + "): a new one takes over in the same worktree"
}

// isRefused reports whether the API refused the conversation of an agent for good: its history is invalid or too long.
func isRefused(r driver.Report) bool {
	return r.Kind == driver.Failed && (r.Result.Status == http.StatusBadRequest || r.Result.Status == http.StatusRequestEntityTooLarge)
}

// renew replaces a conversation that the API has refused by a new one in the same worktree, at most once in a leaf. It returns
// the report of the refused one if there is nothing to replace: the first request of a conversation was refused.
func (x *Executor) renew(ctx context.Context, c engine.Call, b leafStart, refused driver.Report) (driver.Report, error) {
	started, _ := x.Journal.lastAt(c.Path, event.AgentStarted)
	last := event.As[event.AgentStart](started)
	if first := !last.Resumed && !x.workOf(c, b).HasCalls(); first || continuation.IsReplacement(last.Prompt) {
		return x.withParts(ctx, c, refused), nil
	}
	return x.replace(ctx, c, b, replacedText(oneline.Of(refused.Error)))
}

// withParts adds the largest parts of the first message and the system text of an agent, if they are long, to the reason for
// which the API refused them.
func (x *Executor) withParts(ctx context.Context, c engine.Call, refused driver.Report) driver.Report {
	parts := slices.Clone(c.Agent.Parts)
	if instructions, err := x.Agents.Instructions(ctx, agentRun(c)); err == nil { // otherwise only those of the prompt are known
		parts = append(parts, instructions...)
	}
	if text := grimoires.LargestParts(parts); text != "" {
		refused.Error += "; " + text
	}
	return refused
}

// replace begins a conversation that takes over from that of a leaf, in the same worktree.
func (x *Executor) replace(ctx context.Context, c engine.Call, b leafStart, warning string) (driver.Report, error) {
	if err := x.warn(c.Path, warning); err != nil {
		return driver.Report{}, err
	}
	open, err := x.Journal.openFindings()
	if err != nil {
		return driver.Report{}, err
	}
	work := x.workOf(c, b)
	work.Open = open
	return x.runPrompt(ctx, c, b, event.AgentStart{Conversation: uuid.NewString(), Prompt: work.Replaced()})
}

// workOf returns the earlier work on an agent leaf.
func (x *Executor) workOf(c engine.Call, b leafStart) continuation.Leaf {
	return continuation.Leaf{
		Work:   continuation.Work{Journal: x.Journal, Path: c.Path, Since: b.since},
		Prompt: c.Agent.Prompt, Continues: c.Agent.Continues, Continued: c.Agent.Continues != "" || c.Agent.Conversation != "",
	}
}
