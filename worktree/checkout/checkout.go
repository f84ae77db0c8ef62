// Package checkout moves a user's checkout of a branch from one commit to another. A kill
// at any instant, of coven or of git, leaves each path with its old or its new content,
// never missing and never partially written.
//
// The result is the same as that of `git read-tree -m -u OLD NEW`: other changes of the
// user, staged or not, are preserved, other files keep their content and timestamps, and
// the move is refused if a file to be changed differs from OLD.
//
// Order of effects (State is one of coven's directories in the git directory; the record
// is State.json):
//
//  1. The record names OLD, NEW and a token; then index.lock is linked into place with
//     the token as its content. From then on no other git process writes the index, and a
//     recovery can distinguish this lock from others.
//  2. The merged index and all new contents are created in State: git merges the index
//     and writes the files, with the attributes of NEW, on the file system of the
//     checkout. This also reserves the space. If the move is refused or the disk is full,
//     it ends here, and nothing has changed.
//  3. One step per path is added to the record, with hashes of the present and the new
//     content. The staged files are on disk before.
//  4. Each step exchanges staged and present content with one rename. A directory that
//     becomes a file, or vice versa, is one step. The displaced content is compared with
//     its hash. If it differs, it was edited in between: it is exchanged back, and the
//     move is undone.
//  5. The merged index, with the timestamps of the staged files, is renamed into place.
//     Advance returns with the index still locked.
//  6. The caller moves the branch. Then Finish completes the move, or Undo reverts it with
//     the old index and the old files, which are preserved until then.
//
// After a kill, Left finds the record, and Finish or Undo works from the record and the
// files. Both may be killed and repeated. A path with neither OLD nor NEW content has been
// edited and does not change; displaced content that exists nowhere else is passed to
// Rescue. An index.lock with other content is never removed.
//
// Without an atomic exchange, a second link to the old file is created and the new file is
// renamed over it; moves that would have to exchange a directory are refused.
//
// Callers must use a lock so that only one of them works on a checkout at a time.
package checkout

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// An Error describes why a checkout cannot follow a move. The checkout is unchanged.
type Error struct {
	Path   string
	Reason string
	Files  []string // the files that block the move, if any
	Next   string   // instruction for the user, preferably a command
	Cause  error    // may be nil
}

func (e *Error) Error() string {
	text := "checkout " + e.Path + ": " + e.Reason
	if len(e.Files) > 0 {
		text += ": " + strings.Join(e.Files, ", ")
	}
	return text + "; next: " + e.Next
}

func (e *Error) Unwrap() error { return e.Cause }

// ErrFull means that a file system has no space left.
var ErrFull = errors.New("the disk is full")

// A Checkout is a user's checkout.
type Checkout struct {
	Git   git.Repo // with the git directory and the work tree of the checkout
	Ref   string   // the branch that is moved
	Task  string   // the task that lands, for messages
	State string   // coven's directory for this checkout, in the git directory
	Token string   // content of the lock of the index, if LockIndex has locked it
	// NoSync means that new content need not be on disk before it replaces the old one: a power failure may then
	// leave empty files.
	NoSync bool

	// Await waits for another git process to unlock the index.
	Await func(ctx context.Context) error
	// Rescue stores files, by their path in the checkout, before they are deleted.
	Rescue func(ctx context.Context, files map[string]string) error
	// Settings run the filters of the repository in the checkout.
	Settings []git.Setting

	exchange   func(from, to place) error // for tests; nil means swap of the operating system
	stageAtTop bool                       // stage at the top, because renames from the git directory fail
}

func (c *Checkout) top() string { return c.Git.WorkTree }
