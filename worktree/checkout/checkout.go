// Package checkout moves a user's checkout of a branch from one commit to another so
// that a kill at any instant, of coven or of git, leaves each path with its old or with
// its new content, never without one and never with half.
//
// The result is that of `git read-tree -m -u OLD NEW`: what the person changed
// or staged elsewhere stays, other files keep bytes and time stamps, and the
// move is refused where a file to be changed is not as OLD has it.
//
// Order of effects (State is a directory of coven's in the git directory; the
// record is State.json):
//
//  1. The record names OLD, NEW and a token; then index.lock is linked into
//     place with the token as its content. From here no other git writes the
//     index, and a recovery can tell this lock from anybody else's.
//  2. The merged index and all new contents are made in State: git itself
//     merges the index and writes the files, with the attributes of NEW, on the
//     file system of the checkout. This also reserves the space. A refusal or a
//     full disk ends the move here, and nothing has been touched.
//  3. The record is completed with one step per path: what is there and what is
//     to be there, each by a hash of its bytes.
//  4. Steps exchange staged and present content in one rename each. A directory
//     that becomes a file, or the other way around, is one step. What came out
//     is compared with what step 3 saw: if it differs, somebody edited it
//     meanwhile, it is exchanged back, and the move is undone.
//  5. The merged index, with the time stamps of the staged files, is renamed
//     into place. Advance returns with the index still locked.
//  6. The caller moves the branch. Then Settle ends the move, or Undo takes it
//     back: the old index and the old files, which are kept until then.
//
// After a kill Left finds the record, and Settle or Undo does the same from the
// record and from what is there. Both may be killed and repeated. A path that
// holds neither OLD nor NEW was edited since and stays as it is; displaced bytes
// that nobody else has go to the rescuer. An index.lock with another content is
// never removed.
//
// Where no atomic exchange exists, the old file is linked aside and the new one
// renamed over it; a directory that would have to be exchanged is refused there.
//
// One caller at a time per checkout: the caller has a lock for that.
package checkout

import (
	"context"
	"errors"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
)

// An Error describes why a checkout cannot follow. The checkout is unchanged.
type Error struct {
	Path   string
	Reason string
	Files  []string // the files in the way, if it is about files
	Next   string   // what to do, a command where there is one
	Cause  error    // nil when Reason says it all
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

// A Checkout is a checkout that a user works in.
type Checkout struct {
	Git   git.Repo // with the checkout's own git directory and work tree
	Ref   string   // the branch that is moved
	Task  string   // for which it is moved, for messages
	State string   // a directory of this checkout's own, in the git directory

	// Await waits for another git to let go of the index.
	Await func(ctx context.Context) error
	// Rescue stores files, by their path in the checkout, before they are deleted.
	Rescue func(ctx context.Context, files map[string]string) error
	// Settings run the filters of the repository in the checkout.
	Settings []git.Setting

	exchange   func(from, to place) error // nil: that of the system
	stageAtTop bool                       // even on the same file system
}

func (c *Checkout) top() string { return c.Git.WorkTree }
