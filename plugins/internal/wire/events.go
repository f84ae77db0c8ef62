package wire

import (
	"time"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/provider"
)

// encodeEvent converts e to protobuf.
func encodeEvent(e provider.Event) *pluginv1.Event {
	switch e := e.(type) {
	case provider.Started:
		return &pluginv1.Event{Kind: &pluginv1.Event_Started{Started: &pluginv1.Started{
			Conversation: e.Conversation, Model: e.Model, Tools: e.Tools, FailedServers: e.FailedServers,
		}}}
	case provider.Text:
		return &pluginv1.Event{Kind: &pluginv1.Event_Text{Text: &pluginv1.Text{Text: valid(e.Text)}}}
	case provider.Reasoning:
		return &pluginv1.Event{Kind: &pluginv1.Event_Reasoning{Reasoning: &pluginv1.Text{Text: valid(e.Text)}}}
	case provider.ToolCall:
		return &pluginv1.Event{Kind: &pluginv1.Event_ToolCall{ToolCall: encodeToolCall(e)}}
	case provider.ToolResult:
		return &pluginv1.Event{Kind: &pluginv1.Event_ToolResult{ToolResult: encodeToolResult(e)}}
	case provider.Retry:
		return &pluginv1.Event{Kind: &pluginv1.Event_Retry{Retry: &pluginv1.Retry{
			Attempt: int32(e.Attempt), MaxAttempts: int32(e.MaxAttempts), //nolint:gosec // single digits
			DelayMs: e.DelayMS, Status: int32(e.Status), Reason: e.Reason, //nolint:gosec // an HTTP status
		}}}
	case provider.Result:
		return &pluginv1.Event{Kind: &pluginv1.Event_Result{Result: encodeResult(e)}}
	case provider.Acknowledged:
		return &pluginv1.Event{Kind: &pluginv1.Event_Heard{Heard: &pluginv1.Heard{Id: e.ID}}}
	case provider.Spent:
		return &pluginv1.Event{Kind: &pluginv1.Event_Spent{Spent: &pluginv1.Spent{
			Id: e.ID, Model: e.Model, Usage: encodeUsage(e.Usage), Done: e.Done, More: e.More, Next: e.Next,
		}}}
	case provider.Limit:
		return &pluginv1.Event{Kind: &pluginv1.Event_Limit{Limit: encodeLimit(e)}}
	case provider.Chunk:
		return &pluginv1.Event{Kind: &pluginv1.Event_Chunk{Chunk: &pluginv1.Chunk{Text: valid(e.Text), Reasoning: e.Reasoning}}}
	case provider.Asked:
		return &pluginv1.Event{Kind: &pluginv1.Event_Asked{Asked: encodeAsked(e)}}
	}
	return &pluginv1.Event{}
}

func encodeResult(r provider.Result) *pluginv1.Result {
	return &pluginv1.Result{
		Ok: r.OK, Text: r.Text, Error: r.Error, Limit: r.Limit,
		Status: int32(r.Status), Turns: int32(r.Turns), //nolint:gosec // an HTTP status, a count of turns
		Usage: encodeUsage(r.Usage),
	}
}

func encodeLimit(l provider.Limit) *pluginv1.Limit {
	wire := &pluginv1.Limit{
		AfterMs: l.After.Milliseconds(), AgainMs: l.Again.Milliseconds(), Reason: l.Reason, Status: int32(l.Status), //nolint:gosec // an HTTP status
	}
	if !l.Until.IsZero() {
		wire.UntilUnix = l.Until.Unix()
	}
	return wire
}

func encodeUsage(u provider.Usage) *pluginv1.Usage {
	return &pluginv1.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
		CostUsd: u.CostUSD,
	}
}

// decodeEvent converts e from protobuf. It returns nil for an unknown event.
func decodeEvent(e *pluginv1.Event) provider.Event {
	switch k := e.GetKind().(type) {
	case *pluginv1.Event_Started:
		return provider.Started{
			Conversation: k.Started.GetConversation(), Model: k.Started.GetModel(),
			Tools: k.Started.GetTools(), FailedServers: k.Started.GetFailedServers(),
		}
	case *pluginv1.Event_Text:
		return provider.Text{Text: k.Text.GetText()}
	case *pluginv1.Event_Reasoning:
		return provider.Reasoning{Text: k.Reasoning.GetText()}
	case *pluginv1.Event_ToolCall:
		return decodeToolCall(k.ToolCall)
	case *pluginv1.Event_ToolResult:
		return decodeToolResult(k.ToolResult)
	case *pluginv1.Event_Retry:
		return provider.Retry{
			Attempt: int(k.Retry.GetAttempt()), MaxAttempts: int(k.Retry.GetMaxAttempts()),
			DelayMS: k.Retry.GetDelayMs(), Status: int(k.Retry.GetStatus()), Reason: k.Retry.GetReason(),
		}
	case *pluginv1.Event_Result:
		return decodeResult(k.Result)
	case *pluginv1.Event_Heard:
		return provider.Acknowledged{ID: k.Heard.GetId()}
	case *pluginv1.Event_Spent:
		return provider.Spent{
			ID: k.Spent.GetId(), Model: k.Spent.GetModel(), Usage: decodeUsage(k.Spent.GetUsage()),
			Done: k.Spent.GetDone(), More: k.Spent.GetMore(), Next: k.Spent.GetNext(),
		}
	case *pluginv1.Event_Limit:
		return decodeLimit(k.Limit)
	case *pluginv1.Event_Chunk:
		return provider.Chunk{Text: k.Chunk.GetText(), Reasoning: k.Chunk.GetReasoning()}
	case *pluginv1.Event_Asked:
		return decodeAsked(k.Asked)
	}
	return nil
}

func decodeResult(r *pluginv1.Result) provider.Result {
	return provider.Result{
		OK: r.GetOk(), Text: r.GetText(), Error: r.GetError(), Limit: r.GetLimit(),
		Status: int(r.GetStatus()), Turns: int(r.GetTurns()),
		Usage: decodeUsage(r.GetUsage()),
	}
}

func decodeLimit(l *pluginv1.Limit) provider.Limit {
	limit := provider.Limit{
		After: time.Duration(l.GetAfterMs()) * time.Millisecond, Again: time.Duration(l.GetAgainMs()) * time.Millisecond,
		Reason: l.GetReason(), Status: int(l.GetStatus()),
	}
	if l.GetUntilUnix() > 0 {
		limit.Until = time.Unix(l.GetUntilUnix(), 0)
	}
	return limit
}

func decodeUsage(u *pluginv1.Usage) provider.Usage {
	return provider.Usage{
		InputTokens: u.GetInputTokens(), OutputTokens: u.GetOutputTokens(),
		CacheReadTokens: u.GetCacheReadTokens(), CacheWriteTokens: u.GetCacheWriteTokens(),
		CostUSD: u.GetCostUsd(),
	}
}

func encodeToolCall(c provider.ToolCall) *pluginv1.ToolCall {
	return &pluginv1.ToolCall{Id: c.ID, Name: c.Name, Input: c.Input}
}

func decodeToolCall(c *pluginv1.ToolCall) provider.ToolCall {
	return provider.ToolCall{ID: c.GetId(), Name: c.GetName(), Input: c.GetInput()}
}

func encodeToolResult(r provider.ToolResult) *pluginv1.ToolResult {
	return &pluginv1.ToolResult{Id: r.ID, Text: valid(r.Text), IsError: r.IsError, NeverRan: r.NeverRan}
}

func decodeToolResult(r *pluginv1.ToolResult) provider.ToolResult {
	return provider.ToolResult{ID: r.GetId(), Text: r.GetText(), IsError: r.GetIsError(), NeverRan: r.GetNeverRan()}
}
