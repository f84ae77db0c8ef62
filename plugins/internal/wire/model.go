package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	pluginv1 "github.com/coven-run/coven/plugins/internal/proto/coven/plugin/v1"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// RegisterModel registers impl with a plugin's gRPC server.
func RegisterModel(s *grpc.Server, impl model.Model) {
	pluginv1.RegisterModelServer(s, &modelServer{impl: impl})
}

type modelServer struct {
	pluginv1.UnimplementedModelServer
	impl model.Model
}

func (s *modelServer) Turn(in *pluginv1.TurnRequest, stream grpc.ServerStreamingServer[pluginv1.TurnEvent]) error {
	request, err := decodeTurn(in)
	if err != nil {
		return toWire(err)
	}
	return toWire(s.impl.Turn(stream.Context(), request, func(e model.Event) error {
		wire, err := encodeTurnEvent(e)
		if err != nil {
			return err
		}
		return stream.Send(wire)
	}))
}

// Models implements pluginv1.ModelServer. It returns pluginerr.ErrUnsupported for a model that is not a
// model.Lister.
func (s *modelServer) Models(ctx context.Context, _ *pluginv1.ModelsRequest) (*pluginv1.ModelsResponse, error) {
	lister, ok := s.impl.(model.Lister)
	if !ok {
		return nil, toWire(fmt.Errorf("the plugin does not list its models: %w", pluginerr.ErrUnsupported))
	}
	models, err := lister.Models(ctx)
	if err != nil {
		return nil, toWire(err)
	}
	wire := &pluginv1.ModelsResponse{}
	for _, m := range models {
		wire.Models = append(wire.Models, encodeInfo(m))
	}
	return wire, nil
}

// Model returns a client for a model plugin. It reports a turn without an End as an error. The client is a
// model.Lister.
func Model(conn grpc.ClientConnInterface) model.Model {
	return &modelClient{rpc: pluginv1.NewModelClient(conn)}
}

type modelClient struct{ rpc pluginv1.ModelClient }

// Turn implements model.Model.
func (c *modelClient) Turn(ctx context.Context, request model.Request, emit func(model.Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := encodeTurn(request)
	if err != nil {
		return err
	}
	stream, err := c.rpc.Turn(ctx, in)
	if err != nil {
		return fromWire(ctx, err)
	}
	ended := false
	for {
		wire, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && ended:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the turn has no end: %w", pluginerr.ErrInvalid)
		case err != nil:
			return fromWire(ctx, err)
		case ended:
			return fmt.Errorf("the turn continues after its end: %w", pluginerr.ErrInvalid)
		}
		event := decodeTurnEvent(wire)
		if event == nil {
			continue // an event of a newer plugin
		}
		_, ended = event.(model.End)
		if err := emit(event); err != nil {
			return err
		}
	}
}

// Models implements model.Lister. It returns pluginerr.ErrUnsupported for a plugin without the method.
func (c *modelClient) Models(ctx context.Context) ([]model.Info, error) {
	wire, err := c.rpc.Models(ctx, &pluginv1.ModelsRequest{})
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	var models []model.Info
	for _, m := range wire.GetModels() {
		models = append(models, decodeInfo(m))
	}
	return models, nil
}

func encodeInfo(m model.Info) *pluginv1.ModelInfo {
	wire := &pluginv1.ModelInfo{Id: valid(m.ID), Window: int64(m.Window), MaxOutput: int64(m.MaxOutput)}
	if p := m.Prices; p != nil {
		wire.Prices = &pluginv1.ModelPrices{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return wire
}

func decodeInfo(wire *pluginv1.ModelInfo) model.Info {
	m := model.Info{ID: wire.GetId(), Window: int(wire.GetWindow()), MaxOutput: int(wire.GetMaxOutput())}
	if p := wire.GetPrices(); p != nil {
		m.Prices = &model.Prices{Input: p.GetInput(), Output: p.GetOutput(), CacheRead: p.GetCacheRead(), CacheWrite: p.GetCacheWrite()}
	}
	return m
}

func encodeTurn(r model.Request) (*pluginv1.TurnRequest, error) {
	wire := &pluginv1.TurnRequest{Model: r.Model, System: valid(r.System), MaxTokens: number(r.MaxTokens)}
	for _, m := range r.Messages {
		message := &pluginv1.ModelMessage{Role: string(m.Role)}
		for _, p := range m.Parts {
			part, err := encodePart(p)
			if err != nil {
				return nil, err
			}
			message.Parts = append(message.Parts, part)
		}
		wire.Messages = append(wire.Messages, message)
	}
	for _, t := range r.Tools {
		wire.Tools = append(wire.Tools, &pluginv1.Tool{Name: t.Name, Description: valid(t.Description), Schema: t.Schema})
	}
	return wire, nil
}

func decodeTurn(wire *pluginv1.TurnRequest) (model.Request, error) {
	r := model.Request{Model: wire.GetModel(), System: wire.GetSystem(), MaxTokens: int(wire.GetMaxTokens())}
	for _, m := range wire.GetMessages() {
		message := model.Message{Role: model.Role(m.GetRole())}
		for _, p := range m.GetParts() {
			part := decodePart(p)
			if part == nil {
				return r, fmt.Errorf("this plugin does not know the kind of a part of a message: %w", pluginerr.ErrUnsupported)
			}
			message.Parts = append(message.Parts, part)
		}
		r.Messages = append(r.Messages, message)
	}
	for _, t := range wire.GetTools() {
		r.Tools = append(r.Tools, model.Tool{Name: t.GetName(), Description: t.GetDescription(), Schema: t.GetSchema()})
	}
	return r, nil
}

func encodePart(p model.Part) (*pluginv1.Part, error) {
	switch p := p.(type) {
	case model.Text:
		return &pluginv1.Part{Kind: &pluginv1.Part_Text{Text: valid(p.Text)}}, nil
	case model.Reasoning:
		return &pluginv1.Part{Kind: &pluginv1.Part_Reasoning{Reasoning: encodeThought(p)}}, nil
	case provider.ToolCall:
		return &pluginv1.Part{Kind: &pluginv1.Part_ToolCall{ToolCall: encodeToolCall(p)}}, nil
	case provider.ToolResult:
		return &pluginv1.Part{Kind: &pluginv1.Part_ToolResult{ToolResult: encodeToolResult(p)}}, nil
	}
	return nil, fmt.Errorf("%T is not a part of a message: %w", p, pluginerr.ErrInvalid)
}

func decodePart(wire *pluginv1.Part) model.Part {
	switch k := wire.GetKind().(type) {
	case *pluginv1.Part_Text:
		return model.Text{Text: k.Text}
	case *pluginv1.Part_Reasoning:
		return decodeThought(k.Reasoning)
	case *pluginv1.Part_ToolCall:
		return decodeToolCall(k.ToolCall)
	case *pluginv1.Part_ToolResult:
		return decodeToolResult(k.ToolResult)
	}
	return nil
}

func encodeTurnEvent(e model.Event) (*pluginv1.TurnEvent, error) {
	switch e := e.(type) {
	case model.Text:
		return &pluginv1.TurnEvent{Kind: &pluginv1.TurnEvent_Text{Text: valid(e.Text)}}, nil
	case model.Reasoning:
		return &pluginv1.TurnEvent{Kind: &pluginv1.TurnEvent_Reasoning{Reasoning: encodeThought(e)}}, nil
	case provider.ToolCall:
		return &pluginv1.TurnEvent{Kind: &pluginv1.TurnEvent_ToolCall{ToolCall: encodeToolCall(e)}}, nil
	case provider.Limit:
		return &pluginv1.TurnEvent{Kind: &pluginv1.TurnEvent_Limit{Limit: encodeLimit(e)}}, nil
	case model.End:
		end := &pluginv1.TurnEnd{Reason: string(e.Reason), Usage: encodeUsage(e.Usage)}
		return &pluginv1.TurnEvent{Kind: &pluginv1.TurnEvent_End{End: end}}, nil
	}
	return nil, fmt.Errorf("%T is not an event of a model: %w", e, pluginerr.ErrInvalid)
}

// decodeTurnEvent converts an event from protobuf. It returns nil for an unknown event.
func decodeTurnEvent(wire *pluginv1.TurnEvent) model.Event {
	switch k := wire.GetKind().(type) {
	case *pluginv1.TurnEvent_Text:
		return model.Text{Text: k.Text}
	case *pluginv1.TurnEvent_Reasoning:
		return decodeThought(k.Reasoning)
	case *pluginv1.TurnEvent_ToolCall:
		return decodeToolCall(k.ToolCall)
	case *pluginv1.TurnEvent_Limit:
		return decodeLimit(k.Limit)
	case *pluginv1.TurnEvent_End:
		return model.End{Reason: model.Reason(k.End.GetReason()), Usage: decodeUsage(k.End.GetUsage())}
	}
	return nil
}

func encodeThought(r model.Reasoning) *pluginv1.Thought {
	return &pluginv1.Thought{Text: valid(r.Text), Signature: valid(r.Signature)}
}

func decodeThought(wire *pluginv1.Thought) model.Reasoning {
	return model.Reasoning{Text: wire.GetText(), Signature: wire.GetSignature()}
}
