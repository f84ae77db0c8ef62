package archive

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
)

// lessonVersion is the format of a Lesson.
const lessonVersion = 1

// maxLessonText is the maximum size in bytes of a patch or a tool result in a lesson.
const maxLessonText = 1 << 20

// Lesson is a session as training data: its task, the work of its agents, its outcome, and the feedback of
// people.
type Lesson struct {
	V         int       `json:"v"`
	Session   string    `json:"session_id"`
	Task      Assigned  `json:"task"`
	Prompt    string    `json:"prompt"` // of the first agent
	Agent     string    `json:"agent"`
	Model     string    `json:"model"`
	Provider  string    `json:"provider"`
	Grimoire  string    `json:"grimoire"`
	Started   time.Time `json:"started_at"`
	Ended     time.Time `json:"completed_at,omitzero"`
	Duration  int64     `json:"duration_ms"` // at work
	Outcome   string    `json:"outcome"`     // the state of the session
	Reason    string    `json:"reason,omitempty"`
	Rejected  bool      `json:"rejected,omitempty"`
	Summary   string    `json:"summary"`
	Commit    string    `json:"commit,omitempty"` // as it landed
	Diff      string    `json:"diff,omitempty"`
	Truncated bool      `json:"diff_truncated,omitempty"`

	Steps     []LessonStep     `json:"steps"`
	ToolCalls []LessonCall     `json:"tool_calls"`
	Subagents []LessonSubagent `json:"subagents"`
	Approvals []LessonApproval `json:"approvals"`
	Feedback  []Feedback       `json:"feedback"`
	Tokens    session.Tokens   `json:"tokens"`
	CostUSD   float64          `json:"cost_usd"`
}

// Assigned is the task of a session.
type Assigned struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Acceptance  string `json:"acceptance,omitempty"`
}

// LessonStep is a step of a session.
type LessonStep struct {
	Path    string       `json:"path"`
	Kind    string       `json:"kind"`
	Agent   string       `json:"agent,omitempty"`
	Status  event.Status `json:"status"`
	Prompt  string       `json:"prompt,omitempty"` // of its agent
	Summary string       `json:"summary,omitempty"`
	Error   string       `json:"error,omitempty"`
}

// LessonCall is a tool call.
type LessonCall struct {
	Path    string          `json:"path"`
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input,omitempty"`
	Allowed *bool           `json:"allowed,omitempty"` // null if the gate has no record of it
	Reason  string          `json:"reason,omitempty"`  // why it was allowed or refused
	Result  string          `json:"result,omitempty"`
	Error   bool            `json:"error,omitempty"` // it failed
}

// LessonSubagent is a subagent.
type LessonSubagent struct {
	ID         string              `json:"id"`
	Agent      string              `json:"agent"`
	Task       string              `json:"task"`
	Model      string              `json:"model"`
	Status     event.Status        `json:"status"`
	Report     string              `json:"report,omitempty"`
	Error      *event.SpawnError   `json:"error,omitempty"`
	Reflection []session.Reflected `json:"reflection,omitempty"`
	Duration   int64               `json:"duration_ms"`
	Tokens     session.Tokens      `json:"tokens"`
	CostUSD    float64             `json:"cost_usd"`
}

// LessonApproval is a question about a tool call, and its answer.
type LessonApproval struct {
	Agent    string              `json:"agent"`
	Action   string              `json:"action"`
	Decision string              `json:"decision"`
	By       string              `json:"by,omitempty"`
	Reason   string              `json:"reason,omitempty"`
	Modified *event.Modification `json:"modified,omitempty"`
}

// Feedback is the feedback of a person on the work.
type Feedback struct {
	Kind     string   `json:"kind"` // message, approved, changes or rejected
	By       string   `json:"by,omitempty"`
	Text     string   `json:"text,omitempty"`
	Findings []string `json:"findings,omitempty"` // to change, or accepted
}

// NewLesson returns the lesson of a session, whose plan and messages may be missing. It does not mask secrets
// in a landed commit.
func NewLesson(ctx context.Context, repo *worktree.Repo, v session.View) (Lesson, error) {
	events, err := session.Events(v.Dir, event.AgentStarted, event.AgentMessage, event.ReviewAnswered)
	if err != nil {
		return Lesson{}, err
	}
	parts, err := session.Parts(v.Dir)
	if err != nil {
		return Lesson{}, err
	}
	l := Lesson{
		V: lessonVersion, Session: v.ID, Task: Assigned{ID: v.Task, Title: v.Info.Query}, Agent: v.PrimaryAgent(), Model: v.Info.Model,
		Provider: v.Info.Provider, Grimoire: v.Info.Grimoire, Started: v.Started, Ended: v.Ended, Duration: v.Active.Milliseconds(),
		Outcome: string(v.Status), Reason: v.Detail, Rejected: v.Rejected, Summary: v.Summary, Commit: v.Commit, Tokens: v.Tokens(), CostUSD: v.Used.USD,
		Steps: []LessonStep{}, Subagents: []LessonSubagent{}, Approvals: []LessonApproval{},
	}
	if plan, err := planOf(v.Dir); err == nil {
		l.Task.Title, l.Task.Description, l.Task.Acceptance = plan.Task.Title, plan.Task.Description, plan.Task.Acceptance
	}
	l.steps(v, events)
	l.ToolCalls = calls(v, slices.DeleteFunc(parts, func(p session.Part) bool { return p.ForkedFrom != "" })) // copied parts are in the other session
	for _, s := range v.Subagents {
		l.Subagents = append(l.Subagents, LessonSubagent{
			ID: s.ID, Agent: s.Agent, Task: s.Task, Model: s.Model, Status: s.Status, Report: s.Report, Error: s.Error, Reflection: s.Reflection,
			Duration: s.Duration, Tokens: s.Tokens, CostUSD: s.CostUSD,
		})
	}
	for _, a := range v.Approvals {
		one := LessonApproval{Agent: a.Agent, Action: a.Action(), Decision: "pending"}
		if a.Answer != nil {
			one.Decision, one.By, one.Reason, one.Modified = string(a.Answer.Answer), a.Answer.By, a.Answer.Reason, a.Answer.Modified
		}
		l.Approvals = append(l.Approvals, one)
	}
	l.Feedback = feedback(v, events)
	return l, l.landed(ctx, repo, v)
}

// planOf reads the plan of a session.
func planOf(dir string) (*grimoires.Plan, error) {
	data, err := session.Plan(dir)
	if err != nil {
		return nil, err
	}
	return grimoires.ReadPlan(data)
}

// landed adds the patch that has landed.
func (l *Lesson) landed(ctx context.Context, repo *worktree.Repo, v session.View) error {
	if v.Landed.New == "" || v.Landed.Old == v.Landed.New {
		return nil
	}
	diff, err := diff.Between(ctx, repo, v.Landed.Old, v.Landed.New)
	if err != nil {
		return fmt.Errorf("session %s: read the change that landed: %w", v.ID, err)
	}
	l.Diff, l.Truncated = clipped(diff.Patch)
	return nil
}

// clipped returns a text cut to at most maxLessonText bytes, and whether it was cut.
func clipped(text string) (string, bool) {
	if len(text) <= maxLessonText {
		return text, false
	}
	return strings.ToValidUTF8(text[:maxLessonText], ""), true
}

// steps adds the steps with the first prompts of their agents.
func (l *Lesson) steps(v session.View, events []event.Event) {
	started := map[string]event.AgentStart{}
	for _, e := range events {
		if _, known := started[e.Path]; e.Type == event.AgentStarted && !known {
			started[e.Path] = event.As[event.AgentStart](e)
		}
	}
	for _, s := range v.Steps {
		start, isAgent := started[s.Path]
		step := LessonStep{Path: s.Path, Kind: s.Kind, Status: s.Status, Prompt: start.Prompt, Summary: s.Summary, Error: s.Error}
		if isAgent {
			step.Agent = cmp.Or(start.Agent, "build")
		}
		if step.Agent == spawn.User { // the step only starts the subagent
			step.Prompt = ""
		}
		l.Prompt = cmp.Or(l.Prompt, step.Prompt)
		l.Steps = append(l.Steps, step)
	}
	if len(v.Subagents) > 0 {
		l.Prompt = cmp.Or(l.Prompt, v.Subagents[0].Task)
	}
}

// calls returns the tool calls of a conversation, with the decisions of the gate and the results.
func calls(v session.View, parts []session.Part) []LessonCall {
	decided := map[string]event.Decision{}
	for _, d := range v.Calls {
		decided[d.ID] = d
	}
	all := []LessonCall{}
	at := map[[2]string]int{}
	for _, p := range parts {
		key := [2]string{p.Path, p.ID}
		switch p.Type {
		case "tool_call":
			call := LessonCall{Path: p.Path, Tool: p.Tool, Input: p.Input}
			if d, ok := decided[p.ID]; ok {
				call.Allowed, call.Reason = &d.Allowed, d.Reason
			}
			at[key] = len(all)
			all = append(all, call)
		case "tool_result":
			if i, ok := at[key]; ok {
				all[i].Error = p.Error
				all[i].Result, _ = clipped(p.Text)
			}
		}
	}
	return all
}

// feedback returns the feedback of people, in order.
func feedback(v session.View, events []event.Event) []Feedback {
	all := []Feedback{}
	for _, e := range events {
		switch e.Type {
		case event.AgentMessage:
			m := event.As[event.Message](e)
			all = append(all, Feedback{Kind: "message", By: m.By, Text: m.Text})
		case event.ReviewAnswered:
			d := event.As[event.MergeDecision](e)
			f := Feedback{Kind: "approved", By: d.By, Text: d.Reason}
			for _, a := range d.Accepted {
				f.Findings = append(f.Findings, a.String())
			}
			for _, c := range d.Changes {
				f.Kind, f.Findings = "changes", append(f.Findings, c.String())
			}
			if f.Kind == "changes" || d.Approved && !strings.HasPrefix(d.By, "--") { // --auto-approve is not a person
				all = append(all, f)
			}
		}
	}
	if v.Rejected {
		all = append(all, Feedback{Kind: "rejected", Text: strings.TrimPrefix(v.Detail, "rejected: ")})
	}
	return all
}
