package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree/snapshot"
)

// calls holds the running calls of agents that may change files.
type calls struct {
	mu      sync.Mutex
	running map[string]string // absolute path of the file that a call may change, by ID of the call; empty for any file
}

// BeforeCall takes a snapshot of the worktree before a call that may change a file, given by its absolute
// path, or any file if the path is empty. note describes the call.
func (s *Workspace) BeforeCall(ctx context.Context, id, file, note string) (event.Snapshot, error) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	saved, err := s.Snapshot(ctx, note)
	if err != nil {
		return event.Snapshot{}, err
	}
	if s.calls.running == nil {
		s.calls.running = map[string]string{}
	}
	s.calls.running[id] = file
	return saved, nil
}

// FileIn returns the state in a snapshot of a file, given by its absolute path.
func (s *Workspace) FileIn(ctx context.Context, saved event.Snapshot, file string) (session.FileState, error) {
	root, err := filepath.EvalSymlinks(s.Worktree.Path)
	if err != nil {
		return session.FileState{}, fmt.Errorf("find the worktree: %w", err)
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return session.FileState{}, fmt.Errorf("find %s in the worktree: %w", file, err)
	}
	name = filepath.ToSlash(name)
	state, err := snapshot.FileAt(ctx, s.Worktree, saved.Commit, name)
	return session.FileState{Path: name, State: state.State, Oid: state.Oid, Mode: state.Mode}, err
}

// AfterCall records that a call is over.
func (s *Workspace) AfterCall(id string) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	delete(s.calls.running, id)
}

// Changing reports whether a running call may change any file.
func (s *Workspace) Changing() bool {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	for _, name := range s.calls.running {
		if name == "" {
			return true
		}
	}
	return false
}

func saved(s snapshot.Snapshot, note string) event.Snapshot {
	return event.Snapshot{N: s.N, Commit: s.Commit, Tree: s.Tree, Note: note, Clean: s.Clean}
}
