package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/session/trace"
)

// metadata is the machine view of a session: metadata.json.
type metadata struct {
	SessionID    string           `json:"session_id"`
	Project      string           `json:"project"`
	Task         string           `json:"task"`
	StartedAt    string           `json:"started_at"`
	CompletedAt  string           `json:"completed_at,omitempty"`
	Status       event.Status     `json:"status"`
	Reason       event.WaitReason `json:"reason,omitempty"`
	Detail       string           `json:"detail,omitempty"`
	Next         string           `json:"next,omitempty"`
	PrimaryAgent string           `json:"primary_agent"`
	Model        string           `json:"model"`
	Provider     string           `json:"provider"`
	Grimoire     string           `json:"grimoire"`
	Version      string           `json:"version"`
	Depth        int              `json:"depth"`
	Tokens       Tokens           `json:"tokens"`
	CostUSD      float64          `json:"cost_usd"`
	Commit       string           `json:"commit,omitempty"`
	Summary      string           `json:"summary,omitempty"`
	ForkedFrom   *event.Fork      `json:"forked_from,omitempty"`

	Queue            event.Queue     `json:"queue"`
	Subagents        []Subagent      `json:"subagents"`
	PermissionGrants []Grant         `json:"permission_grants"`
	Approvals        []any           `json:"approvals"`
	ExecutionTrace   []trace.Entry   `json:"execution_trace"`
	Steps            []Step          `json:"steps"`
	Receipts         []event.Receipt `json:"receipts"`
}

// Tokens is the token usage of agents.
type Tokens struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

func (t Tokens) plus(u Tokens) Tokens {
	return Tokens{Input: t.Input + u.Input, Output: t.Output + u.Output, Total: t.Total + u.Total}
}

// PrimaryAgent returns the agent that a session starts with, which has depth 0.
func (v View) PrimaryAgent() string { return cmp.Or(v.Info.Agent, "build") }

// writeViews writes the views of the session.
func (s *Session) writeViews() error {
	s.views.Lock()
	defer s.views.Unlock()
	v, err := s.folder.fold(s.Events())
	if err != nil {
		return err
	}
	return s.write(v)
}

// writeLastViews writes the views as they are after the event that ends the session. If the process is killed between
// the event and the views, no later process writes them, because the session is over. Append writes them again, with the
// time of the event.
func (s *Session) writeLastViews(e event.Event, data any) error {
	events, err := s.Journal.Preview(e, data)
	if err != nil {
		return err
	}
	v, err := Fold(events)
	if err != nil {
		return err
	}
	s.views.Lock()
	defer s.views.Unlock()
	return s.write(v)
}

func (s *Session) write(v View) error {
	v.ID = s.ID
	v = v.Shown()
	if err := s.writeSubagents(v); err != nil { // write the targets before the links
		return err
	}
	data, err := json.MarshalIndent(v.metadata(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode metadata: %w", err)
	}
	if err := regularfile.Replace(filepath.Join(s.Dir, metadataFile), append(data, '\n'), fileMode); err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	failpoint.Point("session.views.half")
	story, err := v.story()
	if err != nil {
		return err
	}
	if err := regularfile.Replace(filepath.Join(s.Dir, storyFile), []byte(story), fileMode); err != nil {
		return fmt.Errorf("write session.md: %w", err)
	}
	failpoint.Point("session.views.after")
	return nil
}

func (v View) metadata() metadata {
	m := metadata{
		SessionID: v.ID, Project: v.Info.Project, Task: v.Task, StartedAt: stamp(v.Started), CompletedAt: stamp(v.Ended),
		Status: v.Status, Reason: v.Reason, Detail: v.Detail, Next: v.Next,
		PrimaryAgent: v.PrimaryAgent(), Model: v.Info.Model, Provider: v.Info.Provider, Grimoire: v.Info.Grimoire,
		Version: v.Info.Version, CostUSD: v.Used.USD, Commit: v.Commit, Summary: v.Summary, ForkedFrom: v.Info.Forked,
		Tokens:    v.Tokens(),
		Subagents: append([]Subagent{}, v.Subagents...), PermissionGrants: append([]Grant{}, v.Grants...), Queue: v.Queue, Approvals: []any{},
		ExecutionTrace: v.ExecutionTrace(), Steps: append([]Step{}, v.Steps...), Receipts: append([]event.Receipt{}, v.Receipts...),
	}
	for _, a := range v.Approvals {
		m.Approvals = append(m.Approvals, a.entry())
	}
	if v.Review != nil && v.Review.Approved {
		m.Approvals = append(m.Approvals, v.Review.MergeDecision)
	}
	return m
}

// front is the frontmatter of session.md.
type front struct {
	SessionID    string       `yaml:"session_id"`
	StartedAt    string       `yaml:"started_at"`
	PrimaryAgent string       `yaml:"primary_agent"`
	Model        string       `yaml:"model"`
	Status       event.Status `yaml:"status"`
	Task         string       `yaml:"task"`
	Commit       string       `yaml:"commit,omitempty"`
}

// story returns the content of session.md, the view for people. It contains no terminal control
// characters.
func (v View) story() (string, error) {
	head, err := yaml.Marshal(front{
		SessionID: v.ID, StartedAt: stamp(v.Started), PrimaryAgent: v.PrimaryAgent(), Model: v.Info.Model,
		Status: v.Status, Task: v.Task, Commit: v.Commit,
	})
	if err != nil {
		return "", fmt.Errorf("encode session.md: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\n%s---\n\n# User Query\n\n%s\n", head, unlinked(v.Info.Query))
	if len(v.Reasoning) > 0 {
		fmt.Fprintf(&b, "\n# Agent Reasoning\n\n%s\n", strings.Join(v.Reasoning, "\n\n"))
	}
	b.WriteString("\n# Steps\n")
	for _, s := range v.Steps {
		fmt.Fprintf(&b, "\n## %s\n\n%s", s.Path, s.Status)
		if !s.EndedAt.IsZero() {
			fmt.Fprintf(&b, " after %s", s.EndedAt.Sub(s.StartedAt).Round(time.Millisecond))
		}
		b.WriteString("\n")
		for _, text := range []string{s.Summary, s.Error} {
			if text != "" {
				fmt.Fprintf(&b, "\n%s\n", unlinked(text))
			}
		}
	}
	for _, r := range v.Rounds {
		fmt.Fprintf(&b, "\n# Review %s\n\n%s", r.Path, unlinked(r.story()))
	}
	fmt.Fprintf(&b, "\n# Outcome\n\n%s\n", unlinked(v.outcome()))
	return readable(b.String()), nil
}

// unlinked escapes links in texts of agents, commands and people. Only coven may link
// to records.
func unlinked(text string) string { return strings.ReplaceAll(text, "[[", `\[\[`) }

// readable replaces control characters, except newlines and tabs, and bidirectional
// controls with U+FFFD.
func readable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// story describes a review round: verdicts, findings, and the arbiter's decision.
func (r Round) story() string {
	var b strings.Builder
	for _, o := range r.Opinions {
		fmt.Fprintf(&b, "- %s: %s\n", o.Reviewer, o.Verdict)
		for _, f := range o.Findings {
			fmt.Fprintf(&b, "  - %s\n", strings.ReplaceAll(f.String(), "\n", "\n    "))
		}
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "\nNot finished: %s\n", r.Error)
	}
	if r.Decided {
		fmt.Fprintf(&b, "\nArbiter: continue %t. %s\n", r.Continue, r.Reason)
	}
	return b.String()
}

func (v View) outcome() string {
	text := string(v.Status)
	if v.Reason != "" {
		text += " (" + string(v.Reason) + ")"
	}
	for _, part := range []string{v.Detail, v.Summary} {
		if part != "" {
			text += "\n\n" + part
		}
	}
	if r := v.Review; r != nil && len(r.Accepted) > 0 {
		text += "\n\n" + r.By + " accepted " + findings.Summary(r.Accepted) + "."
	}
	if v.Commit != "" {
		text += "\n\nLanded as " + v.Commit + "."
	}
	if v.Next != "" {
		text += "\n\nNext: `" + v.Next + "`"
	}
	return text
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Tokens returns the token usage of all completed steps and all subagents.
func (v View) Tokens() Tokens {
	sum := Tokens{Input: v.Usage.InputTokens, Output: v.Usage.OutputTokens, Total: v.Usage.InputTokens + v.Usage.OutputTokens}
	for _, s := range v.Subagents {
		sum = sum.plus(s.Tokens)
	}
	return sum
}
