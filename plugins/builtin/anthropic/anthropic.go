// Package anthropic is a model plugin for Anthropic's Messages API and compatible servers.
//
// Rules:
//   - It sends one request per turn. It reports limits, server errors and broken
//     connections, and never waits: coven decides how to proceed.
//   - A turn ends with End only if the API reported that the answer is complete.
//   - Thinking is sent back exactly as it was received.
package anthropic

import (
	"context"
	"net/http"
	"net/url"

	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/model"
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
	a := answer{emit: emit}
	for e, err := range endpoint.Stream[event](ctx, c, "v1/messages", bodyOf(c, request)) {
		if err != nil {
			return c.Fail(ctx, err, emit)
		}
		if err := a.take(e); err != nil {
			return err
		}
		if a.stopped {
			break // not every server ends the stream
		}
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
	var all []model.Info
	path := "v1/models"
	for range maxPages {
		var page modelPage
		if err := c.Get(ctx, path, &page); err != nil {
			return nil, c.FailList(ctx, err)
		}
		for _, found := range page.Data {
			info := c.Info(found.ID)
			if found.MaxInputTokens > 0 {
				info.Window = int(found.MaxInputTokens)
			}
			if found.MaxTokens > 0 {
				info.MaxOutput = int(found.MaxTokens)
			}
			all = append(all, info)
		}
		if !page.HasMore || page.LastID == "" || len(page.Data) == 0 {
			break
		}
		path = "v1/models?after_id=" + url.QueryEscape(page.LastID)
	}
	return all, nil
}

// maxPages limits the number of pages to request from a server.
const maxPages = 100

// modelPage is a page of models.
type modelPage struct {
	Data []struct {
		ID             string          `json:"id"`
		MaxInputTokens endpoint.Number `json:"max_input_tokens"`
		MaxTokens      endpoint.Number `json:"max_tokens"`
	} `json:"data"`
	HasMore bool   `json:"has_more"`
	LastID  string `json:"last_id"`
}

func (m Model) connection() endpoint.Connection {
	return endpoint.Connection{API: endpoint.Anthropic(), Getenv: m.Getenv, Transport: m.Transport}
}
