package claude

import "github.com/coven-run/coven/plugins/provider"

// partial is the prefix of lines with fragments of an answer.
const partial = `{"type":"stream_event"`

// streamEvent is a fragment of an answer from the API. The content is repeated in full later, except for
// the final usage.
type streamEvent struct {
	Type    string `json:"type"`
	Message struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"` // message_start
	Delta struct {
		StopReason string `json:"stop_reason"`
	} `json:"delta"` // message_delta
	Usage usage `json:"usage"` // message_delta: of the whole answer
}

func (e streamEvent) events() []provider.Event {
	switch {
	case e.Type == "message_start" && e.Message.ID != "":
		return []provider.Event{provider.Spent{ID: e.Message.ID, Model: e.Message.Model, Usage: e.Message.Usage.provider()}}
	case e.Type == "message_delta" && e.Delta.StopReason != "":
		more := e.Delta.StopReason == "tool_use" || e.Delta.StopReason == "pause_turn"
		return []provider.Event{provider.Spent{Usage: e.Usage.provider(), Done: true, More: more}}
	}
	return nil
}
