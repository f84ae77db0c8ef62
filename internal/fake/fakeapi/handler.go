package fakeapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"
)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	s.control(mux)
	mux.HandleFunc("POST /v1/messages", s.turns(anthropic()))
	mux.HandleFunc("POST /v1/chat/completions", s.turns(chat()))
	mux.HandleFunc("POST /v1/responses", s.turns(responses()))
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("POST /v1/embeddings", s.embeddings)
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) { s.plain(w, r, http.StatusOK, s.models()) })
	mux.HandleFunc("HEAD /{$}", func(w http.ResponseWriter, r *http.Request) { s.plain(w, r, http.StatusOK, nil) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.plain(w, r, http.StatusNotFound, errorBody(http.StatusNotFound, r.URL.Path+" is not part of the fake API"))
	})
	return mux
}

// dialect is the encoding of one of the APIs.
type dialect struct {
	decode func(*Request, []byte) error
	whole  func(model string, turn Turn) object
	stream func(ctx context.Context, out *stream, model string, turn Turn) error
	fault  func(status int, text string) object
}

// anthropic returns the dialect of the Messages API.
func anthropic() dialect {
	return dialect{
		decode: (*Request).decode, whole: whole, fault: errorBody,
		stream: func(ctx context.Context, out *stream, model string, turn Turn) error {
			return out.play(ctx, opening(model, turn), turn)
		},
	}
}

// turns returns a handler that answers a turn or an internal request of the CLI.
func (s *Server) turns(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request, err := readRequest(r, d.decode)
		if err != nil {
			s.record(request)(http.StatusBadRequest)
			reply(w, http.StatusBadRequest, d.fault(http.StatusBadRequest, err.Error()))
			return
		}
		if answer, side := sideAnswer(request); side {
			request.Kind = KindSide
			s.record(request)(http.StatusOK)
			s.answer(w, r, d, request, Turn{Text: answer})
			return
		}
		request.Kind = KindTurn
		request.Conversation, request.Turn = s.scenario.choose(request)
		s.play(w, r, d, request, s.record(request))
	}
}

func (s *Server) play(w http.ResponseWriter, r *http.Request, d dialect, request Request, answered func(int)) {
	turn := s.scenario.turn(request.Conversation, request.Turn).expand(request).spoken(request.Tools)
	if failure, failing := s.failures.next(request.Conversation, request.Turn, turn.Fail); failing {
		answered(failure.Status)
		fail(w, failure, d.fault(failure.Status, cmp.Or(failure.Text, "scripted failure")))
		return
	}
	if s.holds.wait(r.Context(), turn.Hold) != nil || pause(r, turn.Delay) != nil {
		return
	}
	answered(http.StatusOK)
	s.answer(w, r, d, request, turn)
}

// answer sends the turn in the requested form. It drops the connection if the
// answer cannot be completed, intentionally or not.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, request Request, turn Turn) {
	turn.Limits.tell(w.Header())
	turn.tellsUsage = request.asksUsage
	if !request.Stream {
		if turn.Cut {
			panic(http.ErrAbortHandler)
		}
		reply(w, http.StatusOK, d.whole(request.Model, turn))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	out := &stream{writer: w, flusher: http.NewResponseController(w), holds: s.holds}
	if d.stream(r.Context(), out, request.Model, turn) != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	request, err := readRequest(r, (*Request).decode)
	request.Kind = KindCount
	if err != nil {
		s.record(request)(http.StatusBadRequest)
		reply(w, http.StatusBadRequest, errorBody(http.StatusBadRequest, err.Error()))
		return
	}
	s.record(request)(http.StatusOK)
	reply(w, http.StatusOK, object{"input_tokens": 10})
}

// models lists the models of the scenario in a form that is valid for both APIs.
func (s *Server) models() object {
	list := []object{}
	for _, m := range s.scenario.Models {
		one := object{"id": m.ID, "type": "model", "object": "model", "display_name": m.ID}
		if m.Window > 0 {
			one["max_input_tokens"], one["max_model_len"] = m.Window, m.Window
		}
		list = append(list, one)
	}
	return object{"object": "list", "data": list, "has_more": false}
}

// plain records a request that is not a turn and answers it with the given status.
func (s *Server) plain(w http.ResponseWriter, r *http.Request, status int, body any) {
	request, _ := readRequest(r, (*Request).decode) // ignore a body that is not JSON
	s.record(request)(status)
	reply(w, status, body)
}

func fail(w http.ResponseWriter, failure Failure, body object) {
	if failure.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(failure.RetryAfter/time.Second)))
	}
	failure.Limits.tell(w.Header())
	reply(w, failure.Status, body)
}

// tell sets the headers. It rounds the reset time up to whole seconds.
func (l Limits) tell(header http.Header) {
	if l.Status == "" {
		return
	}
	header.Set("Anthropic-Ratelimit-Unified-Status", l.Status)
	if l.Reset > 0 {
		reset := time.Now().Add(l.Reset + time.Second - 1).Unix()
		header.Set("Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(reset, 10))
	}
	if l.Claim != "" {
		header.Set("Anthropic-Ratelimit-Unified-Representative-Claim", l.Claim)
	}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_, _ = w.Write([]byte(encode(body))) // the client may have disconnected
	}
}

// pause waits for the delay, or until the client disconnects.
func pause(r *http.Request, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
