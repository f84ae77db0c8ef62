package runner

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/runner/engine"
)

// renewedPrompt follows the task in the first prompt of a conversation that replaces another one.
const renewedPrompt = "# What happened before\n\nAn earlier agent worked on this task. Its conversation cannot be continued. Nothing it did was undone: look at what is done, with git log and git diff, before you continue."

// maxRenewedFiles limits the files that a renewed prompt names.
const maxRenewedFiles = 50

// isRefused reports whether the API refused the conversation of an agent for good: its history is invalid or too long.
func isRefused(r driver.Report) bool {
	return r.Kind == driver.Failed && (r.Result.Status == http.StatusBadRequest || r.Result.Status == http.StatusRequestEntityTooLarge)
}

// renew replaces a conversation that the API has refused by a new one in the same worktree, at most once in a leaf. It returns
// the report of the refused one if there is nothing to replace: the first request of a conversation was refused.
func (x *Executor) renew(ctx context.Context, c engine.Call, b leafStart, refused driver.Report) (driver.Report, error) {
	started, _ := x.Journal.lastAt(c.Path, event.AgentStarted)
	last := event.As[event.AgentStart](started)
	if strings.Contains(last.Prompt, renewedPrompt) || !last.Resumed && !x.hasWorked(c.Path, b) {
		return refused, nil
	}
	return x.replace(ctx, c, b, oneline.Of(refused.Error))
}

// replace begins a conversation that takes over from that of a leaf, in the same worktree.
func (x *Executor) replace(ctx context.Context, c engine.Call, b leafStart, why string) (driver.Report, error) {
	if err := x.warn(c.Path, "the conversation cannot be continued ("+why+"): a new one takes over in the same worktree"); err != nil {
		return driver.Report{}, err
	}
	prompt, err := x.renewed(c, b)
	if err != nil {
		return driver.Report{}, err
	}
	return x.runPrompt(ctx, c, b, event.AgentStart{Conversation: uuid.NewString(), Prompt: prompt})
}

// hasWorked reports whether the agent of a leaf has called a tool.
func (x *Executor) hasWorked(path string, b leafStart) bool {
	return slices.ContainsFunc(x.Journal.at(path, event.AgentTool), func(e event.Event) bool { return e.Seq > b.since })
}

// renewed returns the first prompt of a conversation that replaces the one of a leaf: the task, the last calls, the changed
// files, the open findings, and the request of the leaf if it continued an earlier conversation.
func (x *Executor) renewed(c engine.Call, b leafStart) (string, error) {
	parts := []string{strings.TrimRight(x.firstPrompt(c), "\n"), x.reminder(renewedPrompt, "Its", c.Path, b, nil)}
	if files := x.changedFiles(); len(files) > 0 {
		parts = append(parts, "It has changed these files: "+strings.Join(files, ", "))
	}
	open, err := x.Journal.openFindings()
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		text := "These findings of reviewers are open:\n"
		for _, f := range open {
			text += "\n- " + strings.TrimSpace(f.Where()+" "+oneline.Of(f.Message))
		}
		parts = append(parts, text)
	}
	if c.Agent.Continues != "" || c.Agent.Conversation != "" {
		parts = append(parts, "# What to do now\n\n"+c.Agent.Prompt)
	}
	return strings.Join(append(parts, x.undelivered(c.Path, b, nil)...), "\n\n"), nil
}

// firstPrompt returns the prompt that began the conversation of a leaf: its own, or that of the leaf that it continues.
func (x *Executor) firstPrompt(c engine.Call) string {
	for _, e := range x.Journal.at(c.Agent.Continues, event.AgentStarted) {
		if start := event.As[event.AgentStart](e); c.Agent.Continues != "" && !start.Resumed {
			return start.Prompt
		}
	}
	for _, e := range x.Journal.all(event.AgentStarted) { // the conversation that a fork or a revision continues
		if start := event.As[event.AgentStart](e); !start.Resumed {
			return start.Prompt
		}
	}
	return c.Agent.Prompt
}

// changedFiles returns the files that the steps of the session have changed, at most maxRenewedFiles.
func (x *Executor) changedFiles() []string {
	var files []string
	for _, e := range x.Journal.all(event.StepCompleted) {
		files = append(files, event.As[event.Result](e).Files...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if more := len(files) - maxRenewedFiles; more > 0 {
		files = append(files[:maxRenewedFiles], fmt.Sprintf("and %d more", more))
	}
	return files
}
