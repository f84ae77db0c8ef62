// Package agent contains a reviewer and an arbiter that ask one of coven's agents. They build the prompt
// and validate the answer.
//
// The agent can read the worktree, but not write to it. Its answer is the last fenced JSON block of its
// final message, which is validated against the contract. If the answer is malformed, the agent is asked
// once more with the validation error.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Options of the reviewer and the arbiter.
const (
	promptOption = "prompt" // text before the change and the format of the answer
	modelOption  = "model"  // model of the agent; empty for that of the definition or the run
	agentOption  = "agent"  // name of the agent's definition; may be empty
)

// Reviewer reviews a change with an agent.
type Reviewer struct{}

// reviewForm describes the format of a review.
const reviewForm = "# Your answer\n\n" +
	"End your final message with one fenced JSON block of this form:\n\n" +
	"```json\n" +
	`{"verdict": "pass", "findings": [{"severity": "error", "file": "path/in/the/worktree", "line": 12, "message": "what is wrong", "suggestion": "how to fix it"}], "suggestions": [], "summary": "one line"}` + "\n" +
	"```\n\n" +
	"`verdict` is `pass` or `fail`: `fail` when there is an error among the findings. `severity` is `error`, `warning` or `info`. " +
	"`file` is relative to the worktree; leave `file` and `line` out for a finding about the whole change. No findings: an empty list."

// Review implements reviewer.Reviewer.
func (Reviewer) Review(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	prompt := strings.TrimSpace(change.Options[promptOption])
	if prompt == "" {
		prompt = "Please review this change.\n\n# Task: " + change.Task.Title + "\n\n" + change.Task.Description
	}
	parts := []string{prompt, changeText(change)}
	if len(change.Previous) > 0 {
		parts = append(parts, cut(previousText(change.Previous), maxOpinions))
	}
	return ask(ctx, host, change.Options, strings.Join(append(parts, reviewForm), "\n\n"), func(r *reviewer.Review) error {
		return r.Check()
	})
}

// changeText formats the change for the agent.
func changeText(c reviewer.Change) string {
	var b strings.Builder
	b.WriteString("# The change\n\n")
	for _, f := range c.Files {
		size := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			size = "binary"
		}
		fmt.Fprintf(&b, "- %s %s (%s)\n", f.Status, f.Path, size)
	}
	if c.Truncated != "" {
		fmt.Fprintf(&b, "\nNot all of it is shown here: %s. Read those files before you judge.\n", c.Truncated)
	}
	b.WriteString("\n" + fenced("diff", c.Diff))
	return b.String()
}

// fenced returns a text in a code fence that is longer than any fence in the text.
func fenced(kind, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + kind + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

func previousText(findings []reviewer.Finding) string {
	var b strings.Builder
	b.WriteString("# What you found the last time\n\nFirst check whether these are fixed:\n\n")
	for _, f := range findings {
		b.WriteString(findingText(f))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func findingText(f reviewer.Finding) string {
	return "- " + strings.ReplaceAll(f.String(), "\n", "\n  ") + "\n"
}

// Arbiter decides with an agent.
type Arbiter struct{}

// decisionForm describes the format of a decision.
const decisionForm = "# Your answer\n\n" +
	"End your final message with one fenced JSON block of this form:\n\n" +
	"```json\n" + `{"continue": true, "reason": "one or two sentences"}` + "\n```\n\n" +
	"`continue` is true when the findings are worth another round, false when the loop should end."

// decision is the agent's JSON answer.
type decision struct {
	Continue *bool  `json:"continue"`
	Reason   string `json:"reason"`
}

// Decide implements arbiter.Arbiter.
func (Arbiter) Decide(ctx context.Context, q arbiter.Question, host hostservice.Services) (arbiter.Decision, error) {
	prompt := strings.TrimSpace(q.Options[promptOption])
	if prompt == "" {
		prompt = "Reviewers are not content with this change. Are their findings worth another round?\n\n# Task: " + q.Task.Title + "\n\n" + q.Task.Description
	}
	parts := []string{cut(prompt, maxOwn), fmt.Sprintf("# Where it stands\n\nThis is round %d of %d at most.", q.Round, q.MaxRounds)}
	if said := strings.TrimSpace(q.Output); said != "" {
		parts = append(parts, "The agent that worked says:\n\n"+fenced("", end(said, maxOutput)))
	}
	parts = append(parts, "# What the reviewers found in this round\n\n"+cut(opinionsText(q.Opinions), maxOpinions), decisionForm)
	parts = slices.Insert(parts, len(parts)-1, historyTexts(q.History, maxPrompt-len(strings.Join(parts, "\n\n")))...)
	given, err := ask(ctx, host, q.Options, strings.Join(parts, "\n\n"), func(d *decision) error {
		if d.Continue == nil {
			return errors.New("continue is missing: true or false")
		}
		return nil
	})
	if err != nil {
		return arbiter.Decision{}, err
	}
	return arbiter.Decision{Continue: *given.Continue, Reason: reviewer.Clip(given.Reason)}, nil
}

// The limits of an arbiter's prompt, in bytes.
const (
	maxPrompt   = 200 << 10 // whole prompt
	maxOwn      = 64 << 10  // prompt of the grimoire, including the task
	maxOpinions = 64 << 10  // findings of one round
	maxOutput   = 16 << 10  // end of the working agent's message
	maxEarlier  = 2 << 10   // end of the message, and the reason, in an earlier round
)

// historyTexts describes the latest earlier rounds that fit, oldest first. If it omits rounds, it adds a
// note.
func historyTexts(history []arbiter.Round, room int) []string {
	const note = "(Round %d and earlier rounds are omitted for length.)"
	room -= len(note) + 20
	var texts []string
	for _, r := range slices.Backward(history) {
		text := roundText(r)
		if room -= len(text) + len("\n\n"); room < 0 {
			texts = append(texts, fmt.Sprintf(note, r.N))
			break
		}
		texts = append(texts, text)
	}
	slices.Reverse(texts)
	return texts
}

// roundText describes an earlier round: the findings, the working agent's message, and the reason for
// another round.
func roundText(r arbiter.Round) string {
	text := fmt.Sprintf("# What they found in round %d\n\n%s", r.N, cut(opinionsText(r.Opinions), maxOpinions/2))
	if said := strings.TrimSpace(r.Output); said != "" {
		text += "\n\nThe agent that had worked said:\n\n" + fenced("", end(said, maxEarlier))
	}
	if reason := strings.TrimSpace(r.Reason); reason != "" {
		text += "\n\nThe loop went on because:\n\n" + fenced("", cut(reason, maxEarlier))
	}
	return text
}

// cut returns the beginning of a text that is too long, with a note. If possible, it consists of complete
// lines.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	kept := text[:most]
	if i := strings.LastIndexByte(kept, '\n'); i > 0 {
		kept = kept[:i]
	}
	return strings.ToValidUTF8(kept, "") + fmt.Sprintf("\n(%d more bytes are omitted for length.)", len(text)-len(kept))
}

// end returns the end of a text that is too long.
func end(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return "..." + strings.ToValidUTF8(text[len(text)-most:], "")
}

func opinionsText(opinions []arbiter.Opinion) string {
	var b strings.Builder
	for _, o := range opinions {
		fmt.Fprintf(&b, "%s says %s\n", o.Reviewer, o.Verdict)
		for _, f := range o.Findings {
			b.WriteString(findingText(f))
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ask makes the agent answer in the format of T. If the first answer is malformed, it asks once more.
func ask[T any](ctx context.Context, host hostservice.Services, options map[string]string, prompt string, check func(*T) error) (T, error) {
	var none T
	request := hostservice.Ask{Prompt: prompt, Model: options[modelOption], Agent: options[agentOption]}
	answer, err := host.RunAgent(ctx, request)
	if err != nil {
		return none, err
	}
	given, wrong := parse(answer.Text, check)
	if wrong == nil {
		return given, nil
	}
	request.Conversation, request.Prompt = answer.Conversation, fmt.Sprintf("Your answer cannot be used: %v. Please give the JSON block again, in the form that was asked for, and nothing else.", wrong)
	if answer, err = host.RunAgent(ctx, request); err != nil {
		return none, err
	}
	if given, wrong = parse(answer.Text, check); wrong != nil {
		return none, fmt.Errorf("the agent's answer is malformed, twice: %w", wrong)
	}
	return given, nil
}

// parse decodes the last fenced JSON block of a text, or the text itself if it is JSON.
func parse[T any](text string, check func(*T) error) (T, error) {
	var given T
	block, ok := lastBlock(text)
	if !ok {
		return given, errors.New("it has no fenced JSON block")
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(block)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return given, fmt.Errorf("its JSON block does not have the required form: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return given, errors.New("its JSON block has text after the JSON value")
	}
	return given, check(&given)
}

// lastBlock returns the content of the last code fence in a text.
func lastBlock(text string) (string, bool) {
	var block []string
	found, open, last := false, "", ""
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		switch {
		case open == "" && strings.HasPrefix(word, "```"):
			open = word[:len(word)-len(strings.TrimLeft(word, "`"))]
			block = nil
		case open != "" && word == open:
			found, open, last = true, "", strings.Join(block, "")
		case open != "":
			block = append(block, line)
		}
	}
	if !found && strings.HasPrefix(strings.TrimSpace(text), "{") {
		return text, true
	}
	return last, found
}
