package plugintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// polls returns the cases of forges. The suite serves hosts that are broken. The case about a host that works needs a repository.
func polls() []testcase {
	return []testcase{
		{"broken host", "an answer of the host that is no data is an error", breaksHost},
		{"no login", "if the host refuses the credential, the error is UNAUTHENTICATED", refusesLogin},
		{"credential", "the credential is not sent to another host", redirects},
		{"silent host", "a canceled call ends its request to a host that does not answer", silences},
		{"unknown IDs", "an unknown check, comment or commit is an error", refusesIDs},
		{"state", "the state of a pull request is valid, and is reported once", reportsOnce},
	}
}

// query returns a query for a pull request on a host. The address of its API is http and the host.
func query(host string) forge.Query {
	return forge.Query{
		Repository: forge.Repository{API: "http://" + host, Host: host, Path: "owner/name"},
		Known:      []forge.Known{{Number: 1}},
	}
}

// unreachable is a host that refuses connections.
const unreachable = "127.0.0.1:1"

// polled polls a host that refuses connections. The plugin returns an error.
func (s *suite) polled(ctx context.Context) error {
	_, err := s.poll(ctx, query(unreachable))
	if err == nil {
		return errors.New("the host refuses connections, but Poll returns no error")
	}
	return own(ctx, err)
}

// poll calls the plugin's Poll. The host validates the answer.
func (s *suite) poll(ctx context.Context, q forge.Query) (forge.Report, error) {
	f, err := s.plugin().Forge(ctx)
	if err != nil {
		return forge.Report{}, err
	}
	return f.Poll(ctx, q)
}

// own returns nil for an error that the plugin may return because of its host.
func own(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, pluginerr.ErrGone) || errors.Is(err, pluginerr.ErrInvalid) || errors.Is(err, pluginerr.ErrUnsupported) {
		return err
	}
	return nil
}

// fakeHost is a host on the loopback interface that answers every request in the same way.
type fakeHost struct {
	address string
	server  *http.Server

	mu   sync.Mutex
	seen []http.Header
}

// newHost starts a host.
func newHost(ctx context.Context, answer http.HandlerFunc) (*fakeHost, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a host for the tests: %w", err)
	}
	h := &fakeHost{address: listener.Addr().String()}
	h.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Header.Clone())
		h.mu.Unlock()
		answer(w, r)
	})}
	go func() { _ = h.server.Serve(listener) }() // ends with close
	return h, nil
}

func (h *fakeHost) close() { _ = h.server.Close() }

// requests returns the headers of the requests.
func (h *fakeHost) requests() []http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen)
}

// onHost runs a case with a host. It is skipped if the plugin sends no request, for example because it has no credential.
func (s *suite) onHost(ctx context.Context, answer http.HandlerFunc, run func(h *fakeHost) error) error {
	if err := s.working(); err != nil {
		return err
	}
	h, err := newHost(ctx, answer)
	if err != nil {
		return err
	}
	defer h.close()
	err = s.within(ctx, func(context.Context) error { return run(h) })
	if len(h.requests()) == 0 && err == nil {
		return skipf("the plugin sends no request to http://127.0.0.1, perhaps because it has no credential")
	}
	return err
}

// endless is an answer without end.
const endless = 1 << 30

// brokenAnswers returns answers of a host that are no data.
func brokenAnswers() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>Sign in to the network</html>"))
		},
		"the status 500":      func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oh", http.StatusInternalServerError) },
		"a broken connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"an answer of a gigabyte": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			block := []byte("[" + strings.Repeat("0,", 1<<15))
			for sent := 0; sent < endless; sent += len(block) {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
	}
}

func breaksHost(ctx context.Context, s *suite) error {
	for _, name := range []string{"a page", "the status 500", "a broken connection", "an answer of a gigabyte"} {
		err := s.onHost(ctx, brokenAnswers()[name], func(h *fakeHost) error {
			_, err := s.poll(ctx, query(h.address))
			if err == nil && len(h.requests()) > 0 {
				return fmt.Errorf("the host answers with %s, but Poll returns no error", name)
			}
			return own(ctx, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func refusesLogin(ctx context.Context, s *suite) error {
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"message": "Bad credentials"}`))
	}
	return s.onHost(ctx, refuse, func(h *fakeHost) error {
		_, err := s.poll(ctx, query(h.address))
		if len(h.requests()) > 0 && !errors.Is(err, pluginerr.ErrLogin) {
			return fmt.Errorf("the host answers 401 Unauthorized, and the error is: %w", cmp.Or(err, errors.New("none")))
		}
		return nil
	})
}

// credentialHeaders are the headers in which clients send credentials.
var credentialHeaders = []string{"Authorization", "Private-Token", "Job-Token", "Cookie", "X-Api-Key"}

func redirects(ctx context.Context, s *suite) error {
	other, err := newHost(ctx, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[]")) })
	if err != nil {
		return err
	}
	defer other.close()
	_, port, _ := net.SplitHostPort(other.address)
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost:"+port+"/elsewhere", http.StatusTemporaryRedirect)
	}
	return s.onHost(ctx, redirect, func(h *fakeHost) error {
		q := query(h.address)
		_, _ = s.poll(ctx, q) // it may fail
		f, err := s.plugin().Forge(ctx)
		if err != nil {
			return err
		}
		_, _ = f.Log(ctx, q.Repository, forge.Check{ID: "1", Name: "test", Status: forge.Failed}, 1000)
		for _, name := range credentialHeaders {
			for _, header := range other.requests() {
				if header.Get(name) != "" {
					return fmt.Errorf("the header %s was sent to the host of a redirect", name)
				}
			}
		}
		return nil
	})
}

func silences(ctx context.Context, s *suite) error {
	asked, left := make(chan struct{}, 1000), make(chan struct{}, 1000)
	silent := func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body) // package http notices the end of the connection only after the body
		<-r.Context().Done()
		left <- struct{}{}
	}
	return s.onHost(ctx, silent, func(h *fakeHost) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.poll(ctx, query(h.address)) // the error is the cancellation
		}()
		select {
		case <-ended: // it has sent no request
			return nil
		case <-asked:
		}
		cancel()
		if !s.soon(context.WithoutCancel(ctx), func() bool { return len(left) > 0 }) {
			return fmt.Errorf("a request to the host was still running %v after its call was canceled", s.options.end())
		}
		return nil
	})
}

func refusesIDs(ctx context.Context, s *suite) error {
	none := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message": "Not Found"}`))
	}
	err := s.onHost(ctx, none, func(h *fakeHost) error {
		f, err := s.plugin().Forge(ctx)
		if err != nil {
			return err
		}
		q := query(h.address)
		_, _ = f.Poll(ctx, q) // shows whether the plugin sends requests at all
		check := forge.Check{ID: "no such ID", Name: "test", Status: forge.Failed}
		_, noLog := f.Log(ctx, q.Repository, check, 1000)
		_, noMerge := f.Merge(ctx, q.Repository, forge.Merge{Number: 1, Head: strings.Repeat("0", 40)})
		for name, err := range map[string]error{
			"Log": noLog, "Merge": noMerge, "Rerun": f.Rerun(ctx, q.Repository, check),
			"Reply": f.Reply(ctx, q.Repository, forge.Reply{Number: 1, Comment: "no such ID", Text: "Done."}),
		} {
			if err == nil {
				return fmt.Errorf("%s returns no error", name)
			}
			if errors.Is(err, pluginerr.ErrGone) {
				return err
			}
		}
		return nil
	})
	return err
}

func reportsOnce(ctx context.Context, s *suite) error {
	if err := s.working(); err != nil {
		return err
	}
	with := s.options.With
	number, err := strconv.Atoi(with["number"])
	if err != nil || with["host"] == "" || with["path"] == "" {
		return skipf("needs a pull request: --with host=HOST --with path=OWNER/NAME --with number=N, and --with api=URL if it is not the usual one")
	}
	return s.within(ctx, func(ctx context.Context) error {
		q := forge.Query{Repository: forge.Repository{API: with["api"], Host: with["host"], Path: with["path"]}, Known: []forge.Known{{Number: number}}}
		first, err := s.poll(ctx, q)
		switch {
		case err != nil:
			return err
		case !first.Limit.Until.IsZero():
			return skipf("the host has reached the rate limit, until %s", first.Limit.Until)
		case len(first.Changed) != 1:
			return errors.New("the pull request, whose state is not known, is not reported")
		}
		q.Version, q.Known[0].Version = first.Version, first.Changed[0].Version
		second, err := s.poll(ctx, q)
		switch {
		case err != nil:
			return err
		case len(second.Changed) > 0 && second.Changed[0].Version == q.Known[0].Version:
			return errors.New("the pull request is reported again, although its version is known")
		}
		return nil
	})
}
