package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// mailFile is the file of a message in the tree of its commit.
const mailFile = "message.json"

// MaxMail limits the size of a message, and of its commit and tree, in bytes.
const MaxMail = 256 << 10

// maxMails limits the number of messages that are fetched or deleted at once.
const maxMails = 100

// mailRef returns the ref of a message for the session of a task, or a pattern.
func mailRef(taskID, id string) string { return names.MailPrefix + names.SafeName(taskID) + "/" + id }

// Send stores a message for the session of a task at the remote, at a ref of its own. The ID must be safe in the name of a ref. The error is a *remote.MovedError
// if the remote has a message with this ID.
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

// Look returns the tip of a task's session at a remote, or "", and the messages for it, which are not fetched yet.
func Look(ctx context.Context, r *repo.Repo, name, taskID string) (tip string, all []Mail, err error) {
	found, err := remote.Refs(ctx, r, name, Timeout, Ref(taskID), mailRef(taskID, "*"))
	return found[Ref(taskID)], mailsOf(taskID, found), err
}

// mailsOf returns the messages for a session among the refs of a remote.
func mailsOf(taskID string, found map[string]string) (all []Mail) {
	for _, ref := range slices.Sorted(maps.Keys(found)) {
		if strings.HasPrefix(ref, mailRef(taskID, "")) { // a pattern is the end of a name
			all = append(all, Mail{ID: found[ref], ref: ref})
		}
	}
	return all
}

// Mail is a message at a ref of a remote.
type Mail struct {
	ID      string // of its commit
	Session string // for which it is
	Content []byte // empty if it cannot be read
	Fetched bool

	ref string
}

// FetchMails fetches the first maxMails of the messages, and returns them.
func FetchMails(ctx context.Context, r *repo.Repo, name string, all []Mail) []Mail {
	all = slices.Clone(all[:min(len(all), maxMails)])
	var missing []string
	for _, m := range all {
		if _, err := size(ctx, r, m.ID); err != nil {
			missing = append(missing, m.ref)
		}
	}
	if len(missing) > 0 && remote.Fetch(ctx, r, name, Timeout/4, missing...) != nil {
		for _, ref := range missing { // one of them may have been deleted, or is too large to be fetched in time
			_ = remote.Fetch(ctx, r, name, Timeout/4, ref)
		}
	}
	for i := range all {
		m := &all[i]
		if _, err := size(ctx, r, m.ID); err != nil {
			continue
		}
		m.Fetched = true
		if session, content, err := readMail(ctx, r, m.ID); err == nil {
			m.Session, m.Content = session, content
		}
	}
	return all
}

// readMail reads a message in this repository.
func readMail(ctx context.Context, r *repo.Repo, oid string) (session string, content []byte, err error) {
	if err := checkSize(ctx, r, oid); err != nil {
		return "", nil, err
	}
	c, err := r.Git().Commit(ctx, oid)
	if err != nil {
		return "", nil, err
	}
	if err := checkSize(ctx, r, c.Tree); err != nil {
		return "", nil, err
	}
	entries, err := r.Git().Level(ctx, c.Tree)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(entries, func(e object.Entry) bool { return e.Path == mailFile && e.Mode == fileMode })
	if i < 0 {
		return "", nil, fmt.Errorf("it has no file %s", mailFile)
	}
	if err := checkSize(ctx, r, entries[i].Oid); err != nil {
		return "", nil, err
	}
	err = r.Git().Objects(ctx, []string{entries[i].Oid}, func(_ object.Object, body io.Reader) (err error) {
		content, err = io.ReadAll(io.LimitReader(body, MaxMail))
		return err
	})
	return parse(c.Message).Session, content, err
}

// checkSize returns an error unless an object of a message is here and is small enough.
func checkSize(ctx context.Context, r *repo.Repo, oid string) error {
	n, err := size(ctx, r, oid)
	if err == nil && n > MaxMail {
		err = fmt.Errorf("%s has %d bytes", oid, n)
	}
	return err
}

// size returns the size of an object that is here.
func size(ctx context.Context, r *repo.Repo, oid string) (int64, error) {
	sizes, err := r.Git().Sizes(ctx, []string{oid})
	return sizes[oid], err
}

// DropMails deletes messages at a remote, unless they have changed.
func DropMails(ctx context.Context, r *repo.Repo, name string, all []Mail) error {
	for len(all) > 0 {
		some := all[:min(len(all), maxMails)]
		moves := make([]remote.Move, len(some))
		for i, m := range some {
			moves[i] = remote.Move{Ref: m.ref, Old: m.ID}
		}
		err := remote.MoveRefs(ctx, r, name, Timeout, moves...)
		moved := (*remote.MovedError)(nil)
		switch {
		case err == nil:
			all = all[len(some):]
		case errors.As(err, &moved):
			all = slices.DeleteFunc(slices.Clone(all), func(m Mail) bool { return m.ref == moved.Ref })
		default:
			return err
		}
	}
	return nil
}
