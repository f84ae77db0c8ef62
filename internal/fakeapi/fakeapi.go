// Package fakeapi is a model API on loopback that says what a script tells it.
//
// It speaks as much of the Anthropic Messages API as the Claude Code CLI needs,
// of the OpenAI Chat Completions API as qwen-code needs, and of the OpenAI
// Responses API as codex needs, so that tests and the demo run the real agent, or
// the fake one, without a network and without an account.
//
// One script is for all of them. It names tools as Claude Code does; where the
// request offers none of that name, the call is said in the words of one that is
// offered and does the same.
//
// Rules. Which turn is played depends on the request alone, never on what was
// asked before, so killed and resumed conversations go on where they were; only
// scripted failures are counted. Requests that the CLI makes for itself, such as
// one for a title, are answered and consume no turn. Nothing is checked: every
// key is welcome.
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
	// URL is what ANTHROPIC_BASE_URL must be: "http://127.0.0.1:PORT".
	// OPENAI_BASE_URL is the same with "/v1" behind it.
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
	go func() { _ = s.server.Serve(listener) }()  // ends with Close, and only so
	return s, nil
}

// Close stops the server and drops every connection, held ones included.
func (s *Server) Close() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("stop fake api: %w", err)
	}
	return nil
}

// WaitHeld waits until an answer stands at the hold with this name, or has
// passed it.
func (s *Server) WaitHeld(ctx context.Context, name string) error {
	return s.holds.waitReached(ctx, name)
}

// Release lets every answer pass the hold with this name, now and later.
func (s *Server) Release(name string) { s.holds.release(name) }

// Requests returns what was asked so far, in order of arrival, without the
// control requests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := make([]Request, len(s.requests))
	for i, request := range s.requests {
		requests[i] = *request
	}
	return slices.Clip(requests)
}

// record keeps the request and returns how to note the status it was answered with.
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
