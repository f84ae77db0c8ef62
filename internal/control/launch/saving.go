package launch

import (
	"context"

	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/session"
)

// saver returns the func that saves the worktree on a timer while an agent works: always if its
// calls do not pass the gate, otherwise while a call runs that may change any file.
func (l *Launcher) saver(kind accounts.Traits, emit func(event.Type, any) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if kind.Gated && !l.Workspace.Changing() {
			return nil
		}
		snapshot, isNew, err := l.Workspace.SnapshotIfChanged(ctx, "while the agent works")
		if err != nil || !isNew {
			return err
		}
		return emit(event.SnapshotTaken, snapshot)
	}
}

// recorded is a workspace whose snapshots before calls are part of the conversation.
type recorded struct {
	launcher *Launcher
	path     string // of the step
}

// BeforeCall implements the workspace of package gate.
func (r recorded) BeforeCall(ctx context.Context, c gate.Change) (event.Snapshot, error) {
	snapshot, err := r.launcher.Workspace.BeforeCall(ctx, c.Call, c.Path, c.Note)
	if err != nil {
		return snapshot, err
	}
	part := session.Part{Path: r.path, Type: "snapshot", ID: c.Call, Snapshot: &snapshot}
	if c.Path != "" {
		file, err := r.launcher.Workspace.FileIn(ctx, snapshot, c.Path)
		if err != nil {
			return snapshot, err
		}
		part.File = &file
	}
	return snapshot, r.launcher.Session.Say(part)
}

// AfterCall implements the workspace of package gate.
func (r recorded) AfterCall(id string) { r.launcher.Workspace.AfterCall(id) }
