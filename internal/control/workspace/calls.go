package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// calls tracks which files the agents' calls may have changed since the last snapshot, so that a
// snapshot need not look at all files.
type calls struct {
	mu      sync.Mutex
	running map[string]string // by the call's ID: the file that it may change; empty: any
	changed []string          // by calls that are over
	known   bool              // there are no other changes
}

// BeforeCall saves the worktree before the call id, which may change a file, given by its absolute
// path, or, if that is empty, any file. note describes the call.
func (s *Workspace) BeforeCall(ctx context.Context, id, file, note string) (event.Snapshot, error) {
	name, err := s.relative(file)
	if err != nil {
		return event.Snapshot{}, err
	}
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	snapshot, err := s.saveChanged(ctx, note)
	if err != nil {
		return event.Snapshot{}, err
	}
	s.calls.changed, s.calls.known = nil, true
	if s.calls.running == nil {
		s.calls.running = map[string]string{}
	}
	s.calls.running[id] = name
	return snapshot, nil
}

// relative returns a file's path in the worktree; empty stays empty.
func (s *Workspace) relative(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	root, err := filepath.EvalSymlinks(s.Worktree.Path)
	if err != nil {
		return "", fmt.Errorf("find the worktree: %w", err)
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return "", fmt.Errorf("find %s in the worktree: %w", file, err)
	}
	return filepath.ToSlash(name), nil
}

// FileIn returns a file, given by its absolute path, as a snapshot of now has it.
func (s *Workspace) FileIn(ctx context.Context, snapshot event.Snapshot, file string) (session.FileState, error) {
	name, err := s.relative(file)
	if err != nil {
		return session.FileState{}, err
	}
	state, err := worktree.FileStateAt(ctx, s.Worktree, snapshot.Commit, name)
	return session.FileState{Path: name, State: state.State, Oid: state.Oid, Mode: state.Mode}, err
}

// saveChanged saves what may have changed since the last snapshot.
func (s *Workspace) saveChanged(ctx context.Context, note string) (event.Snapshot, error) {
	paths := slices.Clone(s.calls.changed)
	for _, name := range s.calls.running {
		paths = append(paths, name)
	}
	if !s.calls.known || slices.Contains(paths, "") {
		return s.Snapshot(ctx, note)
	}
	slices.Sort(paths)
	snapshot, err := worktree.SnapshotPaths(ctx, s.Worktree, s.Session.ID, note, slices.Compact(paths))
	return saved(snapshot, note), err
}

// AfterCall records that a call is over.
func (s *Workspace) AfterCall(id string) {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	name, running := s.calls.running[id]
	delete(s.calls.running, id)
	switch {
	case !running:
	case name == "":
		s.calls.known = false
	default:
		s.calls.changed = append(s.calls.changed, name)
	}
}

// AnyChange notes that the worktree may have changed in other ways than by calls.
func (s *Workspace) AnyChange() {
	s.calls.mu.Lock()
	defer s.calls.mu.Unlock()
	s.calls.known = false
}

// Changing reports whether a call runs that may change any file.
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

func saved(s worktree.Snapshot, note string) event.Snapshot {
	return event.Snapshot{N: s.N, Commit: s.Commit, Tree: s.Tree, Note: note, Clean: s.Clean}
}
