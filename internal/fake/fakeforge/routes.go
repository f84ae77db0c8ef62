package fakeforge

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Routes is a host with fixed answers, for forges other than GitHub.
type Routes struct {
	// Host is the address of the server: "127.0.0.1:PORT".
	Host string

	server  *httptest.Server
	mu      sync.Mutex
	answers map[string]any
	asked   []string
}

// NewRoutes starts a host. Each request needs the header with the value token; others get the status 401.
func NewRoutes(header, token string) *Routes {
	r := &Routes{answers: map[string]any{}}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if request.Header.Get(header) != token {
			refuse(w, http.StatusUnauthorized, "401 Unauthorized")
			return
		}
		var body map[string]any
		_ = json.NewDecoder(request.Body).Decode(&body) // GET has none
		name := request.Method + " " + request.URL.EscapedPath()
		r.asked = append(r.asked, name)
		if page := request.URL.Query().Get("page"); page != "" && page != "1" {
			name += "?page=" + page
		}
		r.answer(w, r.answers[name], body)
	}))
	r.Host = strings.TrimPrefix(r.server.URL, "http://")
	return r
}

// answer sends an answer: a status, a text, the result of a function of the body, or anything else as JSON.
func (r *Routes) answer(w http.ResponseWriter, answer any, body map[string]any) {
	switch a := answer.(type) {
	case nil:
		refuse(w, http.StatusNotFound, "404 Not Found")
	case int:
		refuse(w, a, "refused")
	case string:
		_, _ = w.Write([]byte(a))
	case func(body map[string]any) any:
		r.answer(w, a(body), body)
	default:
		reply(w, http.StatusOK, a)
	}
}

// Close stops the server.
func (r *Routes) Close() { r.server.Close() }

// Set sets the answer to a method and an escaped path: a status, a text, a function of the request's body, or anything else as
// JSON. Further pages of a list have ?page=N after the path. Other paths do not exist.
func (r *Routes) Set(name string, answer any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[name] = answer
}

// Asked returns the requests since the last call.
func (r *Routes) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}
