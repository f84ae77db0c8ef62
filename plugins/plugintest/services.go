package plugintest

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Services is a fake hostservice.Services that returns the configured answers and records the requests. The
// zero value has no agent, no files and an empty diff. It is safe for concurrent use once its fields are
// set.
type Services struct {
	// Answers are the answers of agents, in order; the last one is repeated. If empty,
	// RunAgent returns pluginerr.ErrUnsupported.
	Answers []hostservice.Answer
	// Files are the files of the worktree, by slash-separated path.
	Files map[string][]byte
	// Patch is the complete diff in git's format.
	Patch string
	// Before is called at the start of each request if it is set. If it returns an error, the request
	// fails. It may block until ctx is done.
	Before func(ctx context.Context, request string) error

	mu    sync.Mutex
	asks  []hostservice.Ask
	reads []string
	logs  []string
}

// Asks returns the requests to agents so far.
func (s *Services) Asks() []hostservice.Ask { return copyOf(s, &s.asks) }

// Reads returns the files requested so far, including missing ones.
func (s *Services) Reads() []string { return copyOf(s, &s.reads) }

// Logs returns the log lines so far.
func (s *Services) Logs() []string { return copyOf(s, &s.logs) }

func copyOf[T any](s *Services, all *[]T) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*all)
}

func (s *Services) before(ctx context.Context, request string) error {
	if s.Before == nil {
		return nil
	}
	return s.Before(ctx, request)
}

// RunAgent implements hostservice.Services.
func (s *Services) RunAgent(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
	if err := s.before(ctx, "run an agent"); err != nil {
		return hostservice.Answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, ask)
	if len(s.Answers) == 0 {
		return hostservice.Answer{}, fmt.Errorf("no agent: %w", pluginerr.ErrUnsupported)
	}
	return s.Answers[min(len(s.asks), len(s.Answers))-1], nil
}

// Diff implements hostservice.Services.
func (s *Services) Diff(ctx context.Context, paths ...string) (string, error) {
	if err := s.before(ctx, "diff"); err != nil || len(paths) == 0 {
		return s.Patch, err
	}
	files, _, err := gitdiff.Parse(strings.NewReader(s.Patch))
	if err != nil {
		return "", fmt.Errorf("parse the patch: %w", err)
	}
	var b strings.Builder
	for _, f := range files {
		if slices.Contains(paths, cmp.Or(f.NewName, f.OldName)) {
			b.WriteString(f.String())
		}
	}
	return b.String(), nil
}

// ReadFile implements hostservice.Services.
func (s *Services) ReadFile(ctx context.Context, file string) ([]byte, error) {
	if err := s.before(ctx, "read "+file); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.reads = append(s.reads, file)
	s.mu.Unlock()
	if path.IsAbs(file) || path.Clean(file) == ".." || strings.HasPrefix(path.Clean(file), "../") {
		return nil, fmt.Errorf("%s is not in the worktree: %w", file, fs.ErrPermission)
	}
	content, ok := s.Files[path.Clean(file)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	return slices.Clone(content), nil
}

// Log implements hostservice.Services.
func (s *Services) Log(ctx context.Context, text string) error {
	if err := s.before(ctx, "log"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, text)
	return nil
}
