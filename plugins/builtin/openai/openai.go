// Package openai is a model plugin for the Chat Completions API, which OpenAI and most other
// servers offer: Ollama, llama.cpp, vLLM, and many hosts of models.
//
// Rules:
//   - It sends one request for a turn. Limits, server errors and broken connections are reported,
//     never waited for: coven decides what to do.
//   - A turn ends with End only if the server said why the answer ended.
//   - It sends only what all servers accept.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Model asks the API.
type Model struct {
	Getenv    func(string) string // of the user
	Transport http.RoundTripper   // nil: the network
}

// Turn implements model.Model.
func (m Model) Turn(ctx context.Context, request model.Request, emit func(model.Event) error) error {
	c := m.connection()
	if err := c.Check(m.Getenv); err != nil {
		return err
	}
	if request.Model == "" {
		return fmt.Errorf("no model is chosen: %w", pluginerr.ErrInvalid)
	}
	completions := sdk.NewChatCompletionService(m.options(c)...)
	stream := completions.NewStreaming(ctx, params(c, request))
	defer stream.Close() //nolint:errcheck // only read
	a := answer{emit: emit}
	for stream.Next() {
		if err := a.take(stream.Current()); err != nil {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return c.Fail(ctx, failure(err), emit)
	}
	if a.reason == "" {
		return c.Fail(ctx, c.Cut(), emit)
	}
	return a.finish(request)
}

// Models implements model.Lister. The API tells nothing but IDs; some servers tell the context
// window, too.
func (m Model) Models(ctx context.Context) ([]model.Info, error) {
	c := m.connection()
	if err := c.Check(m.Getenv); err != nil {
		return nil, err
	}
	service := sdk.NewModelService(m.options(c)...)
	var all []model.Info
	pages := service.ListAutoPaging(ctx)
	for pages.Next() {
		found := pages.Current()
		info := c.Info(found.ID)
		if window := windowOf(found); window > 0 {
			info.Window = window
		}
		all = append(all, info)
	}
	if err := pages.Err(); err != nil {
		return nil, c.FailList(ctx, failure(err))
	}
	return all, nil
}

func (m Model) connection() endpoint.Connection {
	return endpoint.Connection{API: endpoint.OpenAI(), Getenv: m.Getenv}
}

// options configures the SDK, which would otherwise repeat requests. A server of the user's own
// may need no key.
func (m Model) options(c endpoint.Connection) []option.RequestOption {
	all := []option.RequestOption{
		option.WithBaseURL(c.URL(c.Getenv)), option.WithHTTPClient(endpoint.Client(m.Transport)), option.WithMaxRetries(0), option.WithMiddleware(c.Middleware),
	}
	if key := c.Getenv("OPENAI_API_KEY"); key != "" {
		all = append(all, option.WithAPIKey(key))
	}
	return all
}

// failure returns an error of the SDK, with an error in the stream as a failure.
func failure(err error) error {
	event := (*ssestream.StreamError)(nil)
	if !errors.As(err, &event) {
		return err
	}
	return endpoint.ParseFailure(http.StatusOK, event.Event.Data)
}
