// Package anthropic is a model plugin for the Messages API of Anthropic, and for servers that
// are compatible with it.
//
// Rules:
//   - It sends one request for a turn. Limits, server errors and broken connections are reported,
//     never waited for: coven decides what to do.
//   - A turn ends with End only if the API said that the answer is complete.
//   - Thinking goes back exactly as it came.
package anthropic

import (
	"context"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
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
	messages := sdk.NewMessageService(m.options(c)...)
	stream := messages.NewStreaming(ctx, params(c, request))
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
	if !a.stopped {
		return c.Fail(ctx, c.Cut(), emit)
	}
	return emit(a.end())
}

// Models implements model.Lister.
func (m Model) Models(ctx context.Context) ([]model.Info, error) {
	c := m.connection()
	if err := c.Check(m.Getenv); err != nil {
		return nil, err
	}
	service := sdk.NewModelService(m.options(c)...)
	var all []model.Info
	pages := service.ListAutoPaging(ctx, sdk.ModelListParams{})
	for pages.Next() {
		found := pages.Current()
		info := c.Info(found.ID)
		if found.MaxInputTokens > 0 {
			info.Window = int(found.MaxInputTokens)
		}
		if found.MaxTokens > 0 {
			info.MaxOutput = int(found.MaxTokens)
		}
		all = append(all, info)
	}
	if err := pages.Err(); err != nil {
		return nil, c.FailList(ctx, failure(err))
	}
	return all, nil
}

func (m Model) connection() endpoint.Connection {
	return endpoint.Connection{API: endpoint.Anthropic(), Getenv: m.Getenv}
}

// options configures the SDK, which would otherwise read the environment and files of its own, and
// repeat requests.
func (m Model) options(c endpoint.Connection) []option.RequestOption {
	all := []option.RequestOption{
		option.WithBaseURL(c.URL(c.Getenv)), option.WithHTTPClient(endpoint.Client(m.Transport)), option.WithMaxRetries(0), option.WithMiddleware(c.Middleware),
	}
	if key := c.Getenv("ANTHROPIC_API_KEY"); key != "" {
		all = append(all, option.WithAPIKey(key))
	}
	if token := c.Getenv("ANTHROPIC_AUTH_TOKEN"); token != "" {
		all = append(all, option.WithAuthToken(token))
	}
	return all
}

// failure returns an error of the SDK, with an error event of the stream as a failure.
func failure(err error) error {
	event := (*sdk.Error)(nil)
	if !errors.As(err, &event) {
		return err
	}
	return endpoint.ParseFailure(event.StatusCode, []byte(event.RawJSON()))
}
