package fakeapi

import (
	"context"
	"net/http"
	"time"
)

// control adds the endpoints for scripts, which cannot call Go methods:
//
//	GET  /_control/held?name=N&timeout=30s   204 once an answer has reached hold N; 504 after the timeout (60s)
//	POST /_control/release?name=N            204
//	GET  /_control/requests                  200, a JSON array of Request
func (s *Server) control(mux *http.ServeMux) {
	mux.HandleFunc("GET /_control/held", s.controlHeld)
	mux.HandleFunc("POST /_control/release", func(w http.ResponseWriter, r *http.Request) {
		s.Release(r.FormValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /_control/requests", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, s.Requests())
	})
}

func (s *Server) controlHeld(w http.ResponseWriter, r *http.Request) {
	timeout := time.Minute
	if value := r.FormValue("timeout"); value != "" {
		given, err := time.ParseDuration(value)
		if err != nil {
			reply(w, http.StatusBadRequest, errorBody(http.StatusBadRequest, err.Error()))
			return
		}
		timeout = given
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if err := s.WaitHeld(ctx, r.FormValue("name")); err != nil {
		reply(w, http.StatusGatewayTimeout, errorBody(http.StatusGatewayTimeout, err.Error()))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
