// Package web is the page: it shows the tasks of a repository in a browser. It has no logic of its own: it shows the cards of
// package board and the events of sessions, and every action is a command line of coven in a process of its own, which the page
// names.
package web

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"embed"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/session/spending"
)

//go:embed assets
var assets embed.FS

// Source supplies the cards and starts the commands of the page. It is safe for concurrent use, except Changed.
type Source interface {
	// Cards returns the cards of the board.
	Cards() ([]board.Card, error)
	// All returns the cards of all sessions, the newest first.
	All() ([]board.Card, error)
	// Charges returns the usage of agents at or after a time, without damaged sessions.
	Charges(since time.Time) ([]spending.Charge, error)
	// Today returns the budget of the repository for today, with its usage. Without a limit, the usage is unknown.
	Today() (budget.Day, error)
	// Find returns the card of a task by its ID, or board.ErrNoTask.
	Find(task string) (board.Card, error)
	// Review returns the review of a task's change, and the files of a part of it. If last is not empty, it is the tree of the
	// last look.
	Review(task string, extent review.Extent, last string) (review.Review, []review.File, error)
	// Viewed records whether the person has viewed a file of a change as it is.
	Viewed(of review.Review, path string, viewed bool) error
	// Looked records that the person has looked at the present content of a change.
	Looked(of review.Review) error
	// Changed waits until the cards may have changed. It is for one caller.
	Changed() error
	// Start starts a command line of coven that outlives the page, and returns how it ends.
	Start(args []string) (wait func() (output string, err error), err error)
	Now() time.Time
}

// Options describe a Server.
type Options struct {
	Source      Source
	Name        string            // of the repository
	Token       string            // secret of at least 256 bits, see Token
	Certificate *tls.Certificate  // with its Leaf; nil for a server on loopback without TLS
	ReadOnly    bool              // refuse every POST
	LoggedIn    func(from string) // is called after each login, with its address; it must not block
	Changed     func()            // is called after each change; it must not block; nil for none
}

// Server is the page.
type Server struct {
	options Options
	guard   *guard
	hub     *hub
	mux     *http.ServeMux
	lobby   lobby
	beat    time.Duration // between signs of life on a stream

	reviewing sync.Mutex // held while a review is in memory

	mu       sync.Mutex
	commands []*command // the last ones that the page has started
	streams  int
}

// New returns the page.
func New(o Options) *Server {
	s := &Server{options: o, guard: newGuard(o), hub: newHub(rand.Text()), mux: http.NewServeMux(), beat: 15 * time.Second}
	s.mux.Handle("GET "+assetsPath, http.FileServerFS(assets))
	s.mux.HandleFunc("GET /{$}", s.showBoard)
	s.mux.HandleFunc("GET /costs", s.showCosts)
	s.mux.HandleFunc("GET /task/{task}", s.showTask)
	s.mux.HandleFunc("GET /task/{task}/log", s.showLog)
	s.mux.HandleFunc("GET /task/{task}/review", s.showReview)
	s.mux.HandleFunc("GET /task/{task}/review/file", s.showFile)
	s.mux.HandleFunc("GET /events", s.streamEvents)
	s.mux.HandleFunc("POST /tasks", s.addTask)
	s.mux.HandleFunc("POST /do/{key}", s.act)
	s.mux.HandleFunc("POST /task/{task}/do/{key}", s.act)
	s.mux.HandleFunc("POST /task/{task}/comments", s.addComment)
	s.mux.HandleFunc("POST /task/{task}/comments/{id}/discard", s.discardComment)
	s.mux.HandleFunc("POST /task/{task}/send", s.sendComments)
	s.mux.HandleFunc("POST /task/{task}/viewed", s.markViewed)
	s.mux.HandleFunc("POST /task/{task}/questions/{n}/{key}", s.answer)
	return s
}

// Handler returns the handler of all requests.
func (s *Server) Handler() http.Handler {
	guarded := s.guard.protect(s.mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connection{}).(net.Conn); ok {
			s.lobby.leave(c)
		}
		guarded.ServeHTTP(w, r)
	})
}

// LoginURL returns an address with a code for one login. It leads to the page of a task, or to the board if task is empty.
func (s *Server) LoginURL(host, task string) string {
	u := url.URL{Scheme: "http", Host: host, Path: loginPath}
	if s.options.Certificate != nil {
		u.Scheme = "https"
	}
	query := url.Values{"code": {s.guard.Code()}}
	if task != "" {
		query.Set("task", task)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

func taskPath(task string) string { return "/task/" + url.PathEscape(task) }

// connection is the key of a request's connection.
type connection struct{}

// Limits of connections.
const (
	maxHeader  = 16 << 10 // bytes
	slowest    = 10 * time.Second
	maxWaiting = 128 // connections without a whole request
	maxStreams = 64
)

// Serve answers requests until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: slowest, ReadTimeout: 2 * slowest, WriteTimeout: 6 * slowest, IdleTimeout: 12 * slowest, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), ConnState: s.lobby.state, BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connection{}, c) },
	}
	ended, done := make(chan error, 2), make(chan struct{})
	go func() { ended <- s.hub.watch(ctx, s.options.Source, s.options.Changed) }()
	go func() {
		defer close(done)
		if s.options.Certificate == nil {
			ended <- server.Serve(l)
			return
		}
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*s.options.Certificate}, MinVersion: tls.VersionTLS12}
		ended <- server.ServeTLS(l, "", "")
	}()
	err := error(nil)
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	closed := server.Close()
	<-done
	if ctx.Err() == nil {
		return errors.Join(err, closed)
	}
	return closed
}

// lobby holds the connections without a whole request. If there are too many, it closes the oldest, so that slow ones cannot keep
// others out.
type lobby struct {
	mu      sync.Mutex
	waiting []net.Conn
}

func (l *lobby) state(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew, http.StateIdle:
		l.enter(c)
	case http.StateClosed, http.StateHijacked:
		l.leave(c)
	}
}

func (l *lobby) enter(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting = append(l.waiting, c); len(l.waiting) > maxWaiting {
		_ = l.waiting[0].Close() // it may be closed
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
}

func (l *lobby) leave(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(other net.Conn) bool { return other == c })
}
