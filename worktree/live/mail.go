package live

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// mailFile is the file of a message in the tree of its commit.
const mailFile = "message.json"

// mailRef returns the ref of a message for the session of a task, or a pattern.
func mailRef(taskID, id string) string { return names.MailPrefix + names.SafeName(taskID) + "/" + id }

// Send stores a message for the session of a task at the remote, at a ref of its own. The ID must be safe in the name of a ref.
func Send(ctx context.Context, r *repo.Repo, name, taskID, session, id string, message []byte) error {
	commit, err := Store(ctx, r, taskID, State{Session: session, Files: map[string][]byte{mailFile: message}})
	if err != nil {
		return err
	}
	if err := remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: mailRef(taskID, id), New: commit}); err != nil {
		return fmt.Errorf("send a message to task %s: %w", taskID, err)
	}
	return nil
}

// Mail is a message at a ref of a remote.
type Mail struct {
	Session string // for which it is
	Content []byte

	move remote.Move
}

// Mails fetches the messages for the session of a task. Those that cannot be read are empty.
func Mails(ctx context.Context, r *repo.Repo, name, taskID string) ([]Mail, error) {
	tips, err := remote.Refs(ctx, r, name, Timeout, mailRef(taskID, "*"))
	if err != nil || len(tips) == 0 {
		return nil, err
	}
	states, damaged := FetchAll(ctx, r, name, tips)
	var all []Mail
	for ref, tip := range tips {
		s, read := states[ref]
		if read || damaged[ref] != nil {
			all = append(all, Mail{Session: s.Session, Content: s.Files[mailFile], move: remote.Move{Ref: ref, Old: tip}})
		}
	}
	return all, nil
}

// DropMails deletes messages at a remote.
func DropMails(ctx context.Context, r *repo.Repo, name string, all []Mail) error {
	moves := make([]remote.Move, len(all))
	for i, m := range all {
		moves[i] = m.move
	}
	return remote.MoveRefs(ctx, r, name, Timeout, moves...)
}
