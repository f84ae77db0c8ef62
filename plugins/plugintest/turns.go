package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
)

// turns returns the cases of models. They are skipped if the model API cannot be reached, for example
// without a key or a network.
func turns() []testcase {
	return []testcase{
		{"end", "a turn ends with End and a valid reason", endsTurn},
		{"tools", "a conversation with tools, calls and results", usesTools},
		{"stop", "a turn ends when coven stops it", stopsTurn},
	}
}

// turn returns a simple request.
func turn() model.Request {
	return model.Request{
		Model: "test", System: "Answer in one word.", MaxTokens: 100,
		Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text{Text: "Say hello."}}}},
	}
}

// said runs a turn and returns its End.
func (s *suite) said(ctx context.Context, req model.Request) (end model.End, err error) {
	if err := s.working(); err != nil {
		return end, err
	}
	err = s.within(ctx, func(ctx context.Context) error {
		return s.turn(ctx, req, func(e model.Event) error {
			if last, ok := e.(model.End); ok {
				end = last
			}
			return nil
		})
	})
	return end, err
}

func endsTurn(ctx context.Context, s *suite) error {
	end, err := s.said(ctx, turn())
	if err != nil {
		return err
	}
	switch end.Reason {
	case model.Done, model.ForTools, model.Length, model.Refusal, model.Limited:
		return nil
	}
	return fmt.Errorf("unknown reason %s", quoted(string(end.Reason)))
}

func usesTools(ctx context.Context, s *suite) error {
	req := turn()
	req.Tools = []model.Tool{{Name: "read", Description: "reads a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}
	req.Messages = append(req.Messages,
		model.Message{Role: model.Assistant, Parts: []model.Part{model.Text{Text: "I look."}, provider.ToolCall{ID: "t1", Name: "read", Input: json.RawMessage(`{"path":"a"}`)}}},
		model.Message{Role: model.User, Parts: []model.Part{provider.ToolResult{ID: "t1", Text: "hello"}}})
	_, err := s.said(ctx, req)
	return err
}

// errEnough ends a turn.
var errEnough = errors.New("enough")

func stopsTurn(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	err := s.within(ctx, func(ctx context.Context) error {
		return s.turn(ctx, turn(), func(model.Event) error { return errEnough })
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	_, err = s.said(ctx, turn())
	return err
}
