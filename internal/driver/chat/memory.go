package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Memory is the working memory of an agent: the state that it needs in addition to its recent messages. It is
// computed from the messages.
//
// Most of it is in each request anyway, as part of the messages. When older messages are
// summarized, their part of the memory is stored in the summary, which begins all later requests. So
// consecutive requests have the same prefix, which the cache of an API needs.
type Memory struct {
	Task    string   // the first message
	Results []Result // the most recent ones, oldest first
	Summary *Summary // the latest one; nil if no message is summarized
}

// Result is the result of a tool call.
type Result struct {
	Call provider.ToolCall // its arguments are shortened and may be invalid JSON
	provider.ToolResult
}

// Limits for the results in a working memory.
const (
	maxResults  = 5
	maxResult   = 2 << 10 // bytes of each
	maxInput    = 500     // bytes of the arguments of each
	maxRecalled = 8 << 10 // bytes of the memory in a summary with a large context window
	minRecalled = 120     // bytes; a result with less room is dropped
	memoryShare = 8       // of the budget: 1/8 for the memory
)

// remember passes the working memory to Loop.Remembered.
func (c *conversation) remember() error {
	if c.Remembered == nil {
		return nil
	}
	m := Memory{Task: cut(c.hidden(taskOf(c.messages)), maxRecalled), Results: lastResults(c.messages)}
	for i, r := range m.Results {
		m.Results[i].Text = cut(c.hidden(r.Text), maxResult)
		m.Results[i].Call.Input = []byte(cut(c.hidden(string(r.Call.Input)), maxInput))
	}
	m.Summary, _ = c.current()
	return c.Remembered(m)
}

// hidden removes secrets from a text. Call it before shortening the text, or a part of a secret could remain.
func (c *conversation) hidden(text string) string {
	if c.Hidden == nil {
		return text
	}
	return c.Hidden(text)
}

// lastResults returns the most recent tool results, oldest first. It omits results of the todo tool,
// because the memory has the current todo list.
func lastResults(messages []Message) (results []Result) {
	calls := map[string]provider.ToolCall{}
	for _, m := range messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case provider.ToolCall:
				calls[p.ID] = p
			case provider.ToolResult:
				if call := calls[p.ID]; call.Name != todoTool {
					results = append(results, Result{call, p})
				}
			}
		}
	}
	return results[max(0, len(results)-maxResults):]
}

// todoTool is the name of the todo tool. Its results are the todo list.
const todoTool = "todo"

// prompt returns the parts of the first message of a run. It appends the todo list
// unless the conversation already shows the current one.
func (c *conversation) prompt() []model.Part {
	parts := []model.Part{model.Text{Text: c.job.Prompt}}
	if todos := c.todos(); todos != "" && !c.shows(todos) {
		parts = append(parts, model.Text{Text: todosHeading + todos})
	}
	return parts
}

const todosHeading = "\n\n# Your todo list\n\n"

func (c *conversation) todos() string {
	if c.Todos == nil {
		return ""
	}
	return c.Todos()
}

// shows reports whether the conversation's latest todo list is todos.
func (c *conversation) shows(todos string) bool {
	names := map[string]string{} // tool names by call ID
	last := ""
	for _, m := range c.messages {
		for _, part := range m.Parts {
			switch p := part.(type) {
			case provider.ToolCall:
				names[p.ID] = p.Name
			case provider.ToolResult:
				if names[p.ID] == todoTool && !p.IsError {
					last = p.Text
				}
			case model.Text:
				if at := strings.Index(p.Text, todosHeading); at >= 0 && m.Role == model.User {
					last = p.Text[at:]
				}
			case Summary:
				if p.Memory != "" {
					last = p.Memory
				}
			}
		}
	}
	return strings.Contains(last, todos)
}

// recall returns the working memory to keep when old messages are summarized: the todo list and
// the last results that are not in the recent messages.
func (c *conversation) recall(old, recent []Message) string {
	room := min(maxRecalled, int(float64(c.budget()*tokenBytes/memoryShare)/max(c.scale, 1)))
	var text strings.Builder
	if todos := c.todos(); todos != "" {
		text.WriteString(todosHeading + cut(c.hidden(todos), room*2/3))
	}
	all := lastResults(slices.Concat(old, recent))
	forgotten := all[:max(0, len(all)-len(lastResults(recent)))]
	var kept []string // newest first
	for i, r := range slices.Backward(forgotten) {
		share := min(maxResult, (room-text.Len())/(i+1))
		if share < minRecalled {
			break
		}
		r.Text, r.Call.Input = c.hidden(r.Text), []byte(c.hidden(string(r.Call.Input)))
		shown := r.shown(share)
		room -= len(shown)
		kept = append(kept, shown)
	}
	if len(kept) > 0 {
		slices.Reverse(kept)
		text.WriteString("\n\n# The last results of your tools before the messages below\n" + strings.Join(kept, ""))
	}
	return strings.TrimSpace(text.String())
}

// shown returns a call with its result, in about most bytes.
func (r Result) shown(most int) string {
	call := "\n## " + r.Call.Name + " " + cut(string(r.Call.Input), min(maxInput, most/3)) + "\n\n"
	if r.IsError {
		call += "It failed: "
	}
	return call + cut(r.Text, most-len(call)) + "\n"
}

// taskOf returns the text of the first message, without its todo list.
func taskOf(messages []Message) string {
	var text strings.Builder
	for _, m := range messages[:min(1, len(messages))] {
		for _, part := range m.Parts {
			text.WriteString(plain(part))
		}
	}
	task, _, _ := strings.Cut(text.String(), todosHeading)
	return task
}

// Tokens estimates the tokens of a message, at four bytes per token. The same estimate decides
// when older messages are summarized.
func Tokens(m model.Message) (n int) {
	for _, part := range m.Parts {
		n += partTokens + tokensOf(plain(part))
	}
	return n
}

// cut shortens a text to its beginning and its end, with a note in between.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := max(most*2/3, 0), max(most/4, 0)
	note := fmt.Sprintf("\n(… %d bytes are left out)\n", len(text)-head-tail)
	return strings.ToValidUTF8(text[:head], "") + note + strings.ToValidUTF8(text[len(text)-tail:], "")
}
