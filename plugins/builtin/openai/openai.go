// Package openai is a model plugin for the Chat Completions API, which is offered by OpenAI and most other
// servers, such as Ollama, llama.cpp, vLLM, and many model hosts.
//
// Rules:
//   - It sends one request per turn. It reports limits, server errors and broken
//     connections, and never waits: coven decides how to proceed.
//   - A turn ends with End only if the server reported why the answer ended.
//   - It sends only parameters that all servers accept.
package openai

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Model uses the API.
type Model struct {
	Getenv    func(string) string // the user's environment
	Transport http.RoundTripper   // nil for the network
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
	a := answer{emit: emit}
	for e, err := range endpoint.Stream[chunk](ctx, c, "chat/completions", bodyOf(c, request)) {
		if err != nil {
			return c.Fail(ctx, err, emit)
		}
		if err := a.take(e); err != nil {
			return err
		}
	}
	if a.reason == "" {
		return c.Fail(ctx, c.Cut(), emit)
	}
	return a.finish(request)
}

// Models implements model.Lister. The API only lists IDs, but some servers add the context window.
func (m Model) Models(ctx context.Context) ([]model.Info, error) {
	c := m.connection()
	if err := c.Check(m.Getenv); err != nil {
		return nil, err
	}
	var list modelList
	if err := c.Get(ctx, "models", &list); err != nil {
		return nil, c.FailList(ctx, err)
	}
	var all []model.Info
	for _, found := range list.Data {
		info := c.Info(found.ID)
		if window := cmp.Or(found.MaxModelLen, found.ContextWindow, found.ContextLength); window > 0 {
			info.Window = int(window)
		}
		all = append(all, info)
	}
	return all, nil
}

// modelList is a list of models, with the names that vLLM and some hosts use for the context window.
type modelList struct {
	Data []struct {
		ID            string          `json:"id"`
		MaxModelLen   endpoint.Number `json:"max_model_len"`
		ContextWindow endpoint.Number `json:"context_window"`
		ContextLength endpoint.Number `json:"context_length"`
	} `json:"data"`
}

func (m Model) connection() endpoint.Connection {
	return endpoint.Connection{API: endpoint.OpenAI(), Getenv: m.Getenv, Transport: m.Transport}
}
