package snapshot

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The states of a file in a worktree.
const (
	FileTracked   = "tracked"   // the path is on the task's branch
	FileUntracked = "untracked" // only in snapshots
	FileIgnored   = "ignored"   // neither on the branch nor in snapshots
	FileAbsent    = "absent"
)

// A FileState is the state of a file in a snapshot.
type FileState struct {
	State string
	Oid   string // of the unconverted blob, empty if the file is not in the snapshot
	Mode  string // in git's format: 100644, 100755, 120000
}

// FileAt returns the state of a file at the time of a snapshot. The path is relative to the worktree.
func FileAt(ctx context.Context, w *repo.Worktree, snapshot, path string) (FileState, error) {
	saved, err := w.Repo.Git().Entries(ctx, snapshot, path)
	if err != nil {
		return FileState{}, fmt.Errorf("look at %s in a snapshot: %w", path, err)
	}
	if len(saved) != 1 || saved[0].Path != path {
		if file.Exists(filepath.Join(w.Path, path)) {
			return FileState{State: FileIgnored}, nil
		}
		return FileState{State: FileAbsent}, nil
	}
	state := FileState{State: FileUntracked, Oid: saved[0].Oid, Mode: saved[0].Mode}
	tip, err := w.TipIfAny(ctx)
	if err != nil || tip == "" {
		return state, err
	}
	onBranch, err := w.Repo.Git().Entries(ctx, tip, path)
	if err != nil {
		return state, fmt.Errorf("look at %s on the branch: %w", path, err)
	}
	if len(onBranch) > 0 {
		state.State = FileTracked
	}
	return state, nil
}
