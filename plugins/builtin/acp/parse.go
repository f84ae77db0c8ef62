package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/provider"
)

// Parse implements provider.Provider. It skips lines that are not part of the protocol.
func (p Provider) Parse(_ context.Context, lines []byte) ([]provider.Event, error) {
	var events []provider.Event
	for text := range bytes.Lines(lines) {
		var m message
		if json.Unmarshal(text, &m) != nil {
			continue
		}
		switch {
		case m.Method == acp.ClientMethodSessionUpdate:
			events = append(events, p.update(m)...)
		case len(m.ID) == 0 || len(m.ID) > maxID || string(m.ID) == "null":
		case m.Method != "":
			events = append(events, m.request())
		case m.Result != nil || m.Error != nil:
			events = append(events, p.response(m)...)
		}
	}
	return events, nil
}

// response returns the events for the response to a request of coven.
func (p Provider) response(m message) []provider.Event {
	var id any
	_ = json.Unmarshal(m.ID, &id) // valid, because it is part of a message
	name, _ := id.(string)
	next, chosen := chosen(name)
	session, prompted := strings.CutPrefix(name, idPrompt)
	switch {
	case !chosen && !prompted && id != float64(idInitialize) && id != float64(idNew) && id != float64(idLoad):
		return nil // coven did not send this request
	case prompted && m.Error != nil:
		return []provider.Event{p.refusals.end(session, m.Error.result())}
	case m.Error != nil:
		return []provider.Event{m.Error.result()}
	case chosen:
		return []provider.Event{asked(next)}
	case id == float64(idInitialize):
		var r acp.InitializeResponse
		_ = json.Unmarshal(m.Result, &r) // without capabilities, the agent has none
		return []provider.Event{asked(step{Did: acp.AgentMethodInitialize, Version: int(r.ProtocolVersion), Loads: r.AgentCapabilities.LoadSession})}
	case prompted:
		return []provider.Event{p.refusals.end(session, m.stopped())}
	}
	return m.opened()
}

// chosen returns the step after the response to a request with the given ID, which chose a model or a mode.
func chosen(id string) (next step, ok bool) {
	for _, did := range []string{idModel, idModelMode, idMode} {
		if session, is := strings.CutPrefix(id, did); is {
			return step{Did: did, Session: session, Mode: did == idModelMode}, true
		}
	}
	return step{}, false
}

// askingMode is the mode of known agents in which they ask before they change files or run commands. In others,
// they decide themselves, or a model does.
const askingMode = "default"

// mustAsk reports whether a session is in another mode than askingMode, and has that one.
func mustAsk(modes *acp.SessionModeState) bool {
	return modes != nil && modes.CurrentModeId != askingMode &&
		slices.ContainsFunc(modes.AvailableModes, func(m acp.SessionMode) bool { return m.Id == askingMode })
}

// opened returns the events for the response to session/new or session/load. The latter does not contain
// the session ID.
func (m message) opened() []provider.Event {
	var r acp.NewSessionResponse
	_ = json.Unmarshal(m.Result, &r) // the agent reports an error for a prompt without a session ID
	s := step{Did: acp.AgentMethodSessionNew, Session: string(r.SessionId), Mode: mustAsk(r.Modes)}
	current := ""
	for _, o := range r.ConfigOptions {
		if o.Select == nil || o.Select.Category == nil || *o.Select.Category != acp.SessionConfigOptionCategoryModel {
			continue
		}
		s.Option, current = string(o.Select.Id), string(o.Select.CurrentValue)
		s.Models = modelsOf(o.Select.Options)
	}
	for _, m := range s.Models {
		if m.Value == current {
			current = m.Name
		}
	}
	return []provider.Event{provider.Started{Conversation: s.Session, Model: current}, asked(s)}
}

// model is a model that coven can choose.
type model struct{ Value, Name string }

func modelsOf(o acp.SessionConfigSelectOptions) (all []model) {
	var options []acp.SessionConfigSelectOption
	if o.Ungrouped != nil {
		options = *o.Ungrouped
	}
	if o.Grouped != nil {
		for _, group := range *o.Grouped {
			options = append(options, group.Options...)
		}
	}
	for _, option := range options {
		all = append(all, model{string(option.Value), cmp.Or(option.Name, string(option.Value))})
	}
	return all
}

// stopped returns the result of a prompt.
func (m message) stopped() provider.Result {
	var r acp.PromptResponse
	_ = json.Unmarshal(m.Result, &r) // without a reason, it is not a success
	out := provider.Result{OK: r.StopReason == acp.StopReasonEndTurn}
	if u := r.Usage; u != nil {
		out.Usage = provider.Usage{
			InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens),
			CacheReadTokens: int64(value(u.CachedReadTokens)), CacheWriteTokens: int64(value(u.CachedWriteTokens)),
		}
	}
	switch r.StopReason {
	case acp.StopReasonEndTurn:
	case acp.StopReasonMaxTokens:
		out.Error = "the model used all the tokens that it may"
	case acp.StopReasonMaxTurnRequests:
		out.Error = "the agent made all the requests to the model that it may"
	case acp.StopReasonRefusal:
		out.Error = "the agent refused"
	case acp.StopReasonCancelled:
		out.Error = "the agent cancelled its turn"
	default:
		out.Error = "the agent stopped without a reason"
	}
	return out
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// statusRE matches an error of the model API in an error of an agent.
var statusRE = lazyregexp.New(`^(?:\w+: )?\[?(?:API Error: )?(401|403|429|5\d\d)\b`)

// authRequired is the protocol's error code for an agent that is not logged in.
const authRequired = -32000

// result returns the result for a failed request.
func (e rpcError) result() provider.Result {
	r := provider.Result{Error: e.text()}
	switch {
	case e.Code == authRequired:
		r.Status = http.StatusUnauthorized
	case e.Code >= http.StatusBadRequest && e.Code < 600:
		r.Status = e.Code
	default:
		for _, text := range []string{e.Message, strings.TrimPrefix(r.Error, e.Message+": ")} {
			if found := statusRE.FindStringSubmatch(text); found != nil {
				r.Status, _ = strconv.Atoi(found[1]) // three digits
			}
		}
	}
	r.Limit = r.Status == http.StatusTooManyRequests || r.Status == 529
	return r
}

// update returns the events for a notification about the conversation.
func (p Provider) update(m message) []provider.Event {
	var n acp.SessionNotification
	if json.Unmarshal(m.Params, &n) != nil {
		return nil // from a later version of the protocol
	}
	u := n.Update
	switch {
	case u.ToolCall != nil, u.AgentMessageChunk != nil && chunk(u.AgentMessageChunk.Content, false) != nil:
		p.refusals.worked(string(n.SessionId))
	case u.ToolCallUpdate != nil && value(u.ToolCallUpdate.Status) == acp.ToolCallStatusFailed:
		p.refusals.failed(string(n.SessionId))
	}
	switch {
	case u.AgentMessageChunk != nil:
		return append(chunk(u.AgentMessageChunk.Content, false), spent(u.AgentMessageChunk.Meta)...)
	case u.AgentThoughtChunk != nil:
		return chunk(u.AgentThoughtChunk.Content, true)
	case u.ToolCall != nil:
		c := u.ToolCall
		return append(begun(acp.ToolCallUpdate{
			Meta: c.Meta, ToolCallId: c.ToolCallId, Title: &c.Title, Kind: &c.Kind, RawInput: c.RawInput, Locations: c.Locations, Content: c.Content,
		}, true), ended(callID(c.ToolCallId), c.Status, c.Content)...)
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		return append(begun(acp.ToolCallUpdate{
			Meta: c.Meta, ToolCallId: c.ToolCallId, Kind: c.Kind, RawInput: c.RawInput, Locations: c.Locations, Content: c.Content,
		}, false), ended(callID(c.ToolCallId), value(c.Status), c.Content)...)
	case u.UsageUpdate != nil && u.UsageUpdate.Cost != nil && u.UsageUpdate.Cost.Currency == "USD":
		return []provider.Event{provider.Spent{ID: "session", Done: true, Usage: provider.Usage{CostUSD: u.UsageUpdate.Cost.Amount}}}
	}
	return nil
}

func chunk(c acp.ContentBlock, reasoning bool) []provider.Event {
	if c.Text == nil || c.Text.Text == "" {
		return nil
	}
	return []provider.Event{provider.Chunk{Text: c.Text.Text, Reasoning: reasoning}}
}

// spent returns the usage of an answer of the model. Qwen Code reports it at the end of the answer.
func spent(meta map[string]any) []provider.Event {
	used, ok := meta["usage"].(map[string]any)
	if !ok {
		return nil
	}
	count := func(name string) int64 {
		n, _ := used[name].(float64)
		return int64(max(n, 0))
	}
	return []provider.Event{provider.Spent{Next: true, Done: true, Usage: provider.Usage{
		InputTokens:  max(count("inputTokens")-count("cachedReadTokens"), 0),
		OutputTokens: count("outputTokens"), CacheReadTokens: count("cachedReadTokens"),
	}}}
}

// begun returns a call as soon as its parameters are known. Some agents first report it without parameters.
// isNew means that the call is reported for the first time; a call without an argument for the gate is
// complete then.
func begun(c acp.ToolCallUpdate, isNew bool) []provider.Event {
	call := callsOf(c)[0]
	if has := hasGateArgument()[call.Name]; has && string(call.Input) == "{}" || !has && !isNew {
		return nil
	}
	return []provider.Event{call}
}

// ended returns the result of a call, if the call has ended.
func ended(id string, status acp.ToolCallStatus, content []acp.ToolCallContent) []provider.Event {
	if status != acp.ToolCallStatusCompleted && status != acp.ToolCallStatusFailed {
		return nil
	}
	var text []string
	for _, c := range content {
		switch {
		case c.Content != nil && c.Content.Content.Text != nil:
			text = append(text, c.Content.Content.Text.Text)
		case c.Diff != nil:
			text = append(text, "changed "+c.Diff.Path)
		}
	}
	return []provider.Event{provider.ToolResult{ID: id, Text: strings.Join(text, "\n"), IsError: status == acp.ToolCallStatusFailed}}
}
