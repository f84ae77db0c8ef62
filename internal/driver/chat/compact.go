package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// Summary is a message part that replaces all messages up to Up in requests. The store keeps the
// replaced messages.
type Summary struct {
	Text   string
	Up     string // ID of the last message that it replaces
	Count  int    // number of messages that it replaces
	Memory string // part of the working memory that follows the summary; see Memory
}

// The budget of a request is three quarters of the context window; the rest is for the answer.
const (
	answerShare  = 4 // of the window: 1/4
	recentShare  = 2 // of the budget: 1/2 for the messages that are not summarized
	summaryShare = 6 // of the budget: 1/6 for the summary, and 1/6 for the task
	tokenBytes   = 4 // approximate bytes of a token
	maxCompacts  = 3 // in one call of fit
	partTokens   = 4 // of a message part, in addition to its text
)

// tokens estimates the size of a request. The scale from the last answer corrects the estimate.
func (c *conversation) tokens(r model.Request) int {
	n := tokensOf(r.System)
	for _, t := range r.Tools {
		n += tokensOf(t.Name) + tokensOf(t.Description) + tokensOf(string(t.Schema))
	}
	for _, m := range r.Messages {
		n += Tokens(m)
	}
	return int(float64(n) * max(c.scale, 1))
}

func tokensOf(text string) int { return (len(text) + tokenBytes - 1) / tokenBytes }

// maxScale limits the correction, because the usage that an API reports may not match the request.
const maxScale = 3

// measure computes the correction from the usage that the API reports for a request.
func (c *conversation) measure(r model.Request, u provider.Usage) {
	took := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	c.scale = 1
	if n := c.tokens(r); n > 0 {
		c.scale = min(max(float64(took)/float64(n), 1), maxScale)
	}
}

// plain returns the text of a part.
func plain(part model.Part) string {
	switch p := part.(type) {
	case model.Text:
		return p.Text
	case model.Reasoning:
		return p.Text + p.Signature
	case provider.ToolCall:
		return p.Name + " " + string(p.Input)
	case provider.ToolResult:
		return p.Text
	case Summary:
		return p.Text
	}
	return ""
}

// budget returns the maximum number of tokens of a request. It is 0 if there is no limit.
func (c *conversation) budget() int {
	return c.window - c.window/answerShare
}

// fit makes the conversation fit into the context window: the model summarizes the older messages. The
// recent ones remain unchanged. A call and its result are never separated.
func (c *conversation) fit(ctx context.Context) error {
	if c.window <= 0 {
		return nil
	}
	for range maxCompacts {
		before := c.tokens(c.request())
		if before <= c.budget() {
			return nil
		}
		old, recent := c.split()
		if len(old) == 0 {
			break
		}
		text, err := c.summarize(ctx, old)
		if err != nil {
			return err
		}
		up := old[len(old)-1]
		if err := c.add(Summary{Text: text, Up: up.ID, Count: len(old), Memory: c.recall(c.before(recent), recent)}); err != nil {
			return err
		}
		failpoint.Point("chat.compacted")
		done := event.Compacted{Conversation: c.job.Conversation, Messages: len(old), Kept: len(recent), Before: before, After: c.tokens(c.request())}
		if err := errors.Join(c.job.Emit(event.SessionCompacted, done), c.remember()); err != nil {
			return err
		}
	}
	if took := c.tokens(c.request()); took > c.budget() {
		c.report.Result.Status = http.StatusRequestEntityTooLarge
		return failed(driver.Failed, "the conversation does not fit into the context window of the model: it takes about %d of %d tokens", took, c.window)
	}
	return nil
}

// current returns the last summary, or nil, and the messages that it does not replace.
func (c *conversation) current() (last *Summary, rest []Message) {
	for _, m := range c.messages {
		if s, ok := summaryOf(m); ok {
			last = &s
		}
	}
	after := 0
	if last != nil {
		after = 1 + slices.IndexFunc(c.messages, func(m Message) bool { return m.ID == last.Up })
	}
	for _, m := range c.messages[after:] {
		if _, is := summaryOf(m); !is {
			rest = append(rest, m)
		}
	}
	return last, rest
}

// before returns the messages before the recent ones.
func (c *conversation) before(recent []Message) []Message {
	if len(recent) == 0 {
		return c.messages
	}
	return c.messages[:slices.IndexFunc(c.messages, func(m Message) bool { return m.ID == recent[0].ID })]
}

func summaryOf(m Message) (Summary, bool) {
	if len(m.Parts) != 1 {
		return Summary{}, false
	}
	s, ok := m.Parts[0].(Summary)
	return s, ok
}

// split divides the current messages into old ones to summarize and recent ones to keep. The recent ones begin
// with a message of the model, so that no result is separated from its call.
func (c *conversation) split() (old, recent []Message) {
	_, rest := c.current()
	bare := c.request()
	bare.Messages = nil
	room := min(c.budget()/recentShare, c.budget()-c.tokens(bare)-2*c.budget()/summaryShare-c.budget()/memoryShare)
	at, size := len(rest), 0
	for i := len(rest) - 1; i > 0; i-- {
		size += c.tokens(model.Request{Messages: []model.Message{c.clipped(rest[i].Message)}})
		if size > room && at < len(rest) {
			break
		}
		if rest[i].Role == model.Assistant {
			at = i
		}
	}
	if at == len(rest) { // the last turn alone is too large: keep it, it will be clipped
		return nil, rest
	}
	return rest[:at], rest[at:]
}

// clipped returns a message for a request. It shortens tool results that would fill most of the budget.
func (c *conversation) clipped(m model.Message) model.Message {
	if c.window <= 0 {
		return m
	}
	most := c.budget() * tokenBytes / 3
	if len(m.Parts) > 1 {
		most /= len(m.Parts)
	}
	most = int(float64(most) / max(c.scale, 1))
	for i, part := range m.Parts {
		if r, ok := part.(provider.ToolResult); ok && len(r.Text) > most {
			m.Parts = append(append(m.Parts[:i:i], model.Part(nil)), m.Parts[i+1:]...)
			r.Text = cut(r.Text, most)
			m.Parts[i] = r
		}
	}
	return m
}

// opening returns the first message of a request with a summary. It has the task, the summary and the
// working memory.
func (c *conversation) opening(s *Summary) model.Message {
	text := fmt.Sprintf("%s\n\n# What happened so far\n\nYou have worked on this. Your older messages are replaced by this summary:\n\n%s", cut(taskOf(c.messages), c.share()), s.Text)
	if s.Memory != "" {
		text += "\n\n" + s.Memory
	}
	return model.Message{Role: model.User, Parts: []model.Part{model.Text{Text: text}}}
}

// share returns the maximum size in bytes of the summary, which is also that of the task.
func (c *conversation) share() int {
	return int(float64(c.budget()*tokenBytes/summaryShare) / max(c.scale, 1))
}

const summarizer = `You summarize the work of an agent, for the agent itself: it will continue from your summary and cannot see the messages any more.
Say what it was asked, what it found out and decided, which files it changed and how, what failed and why, and what is left to do.
Name files, commands and identifiers exactly. Do not continue the work. Answer with the summary only.`

// summarize asks the model to summarize messages together with the previous summary.
func (c *conversation) summarize(ctx context.Context, old []Message) (string, error) {
	last, _ := c.current()
	var text strings.Builder
	if last != nil {
		fmt.Fprintf(&text, "# Summary of what came before\n\n%s\n\n", last.Text)
	}
	room := int(float64(c.budget()*tokenBytes)/max(c.scale, 1)) - len(summarizer) - text.Len() - 400
	each := max(room/max(len(old), 1), 80)
	text.WriteString("# Messages\n")
	for _, m := range old {
		text.WriteString(cut(transcribed(m), each))
	}
	r := model.Request{
		Model: c.job.Model, System: summarizer, MaxTokens: max(c.share()/tokenBytes, 64),
		Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text{Text: cut(text.String(), room)}}}},
	}
	a, err := c.ask(ctx, r)
	if err != nil {
		return "", err
	}
	if a.end.Reason == model.Limited {
		return "", c.limited(a)
	}
	c.count(a.end.Usage)
	if err := c.charge(&answer{end: a.end}); err != nil {
		return "", err
	}
	if a.end.Reason == model.Refusal {
		return "", a.failure()
	}
	summary := strings.TrimSpace(a.text())
	return cut(cmp.Or(c.hidden(summary), "(the model gave no summary)"), c.share()), nil
}

// transcribed returns a message as text for the summary.
func transcribed(m Message) string {
	var b strings.Builder
	for _, part := range m.Parts {
		switch p := part.(type) {
		case model.Text:
			fmt.Fprintf(&b, "\n%s: %s\n", m.Role, p.Text)
		case provider.ToolCall:
			fmt.Fprintf(&b, "\ncall of %s: %s\n", p.Name, p.Input)
		case provider.ToolResult:
			fmt.Fprintf(&b, "\nresult: %s\n", p.Text)
		}
	}
	return b.String()
}
