// Package fakeapi is a model API on the loopback interface that plays a script.
//
// It implements the parts of the Anthropic Messages API that the Claude Code CLI uses,
// of the OpenAI Chat Completions API that qwen-code uses, and of the OpenAI Responses
// API that codex uses, so that tests and the demo run the real or the fake agent
// without a network and an account.
//
// The same script works for all of them. It uses the tool names of Claude Code. If the
// request does not offer a tool, the call is translated to an equivalent offered
// tool.
//
// The turn depends only on the request, never on earlier requests, so killed
// and resumed conversations continue where they were; only scripted failures are
// counted. Internal requests of the CLI, such as one for a title, are
// answered and consume no turn. Keys are not checked.
package fakeapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
)

// Server is one fake API. It serves until Close.
type Server struct {
	// URL is the value for ANTHROPIC_BASE_URL: "http://127.0.0.1:PORT".
	// OPENAI_BASE_URL additionally needs the suffix "/v1".
	URL string

	scenario Scenario
	server   *http.Server
	holds    *holds
	failures *failures

	mu       sync.Mutex
	requests []*Request
}

// New starts a server on a free port of the loopback interface.
func New(scenario Scenario) (*Server, error) {
	if err := scenario.check(); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start fake api: %w", err)
	}
	s := &Server{
		URL: "http://" + listener.Addr().String(), scenario: scenario,
		holds: newHolds(), failures: newFailures(),
	}
	s.server = &http.Server{Handler: s.handler()} //nolint:gosec // loopback; a held answer has no time limit
	go func() { _ = s.server.Serve(listener) }()  // ends only with Close
	return s, nil
}

// Close stops the server and drops every connection, including those with held answers.
func (s *Server) Close() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stop fake api: %w", err)
	}
	return nil
}

// WaitHeld waits until an answer has reached the hold with this name.
func (s *Server) WaitHeld(ctx context.Context, name string) error {
	return s.holds.waitReached(ctx, name)
}

// Release lets every current and later answer pass the hold with this name.
func (s *Server) Release(name string) { s.holds.release(name) }

// Requests returns the requests so far in order of arrival, without control
// requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.requests))
	for i, request := range s.requests {
		requests[i] = *request
	}
	return slices.Clip(requests)
}

// record stores the request and returns a function that records the status of the
// response.
func (s *Server) record(request Request) (answered func(status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &request
	s.requests = append(s.requests, kept)
	return func(status int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		kept.Status = status
	}
}
