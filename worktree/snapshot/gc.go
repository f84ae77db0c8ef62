package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// ErrCollecting means that another process is running garbage collection in the repository.
var ErrCollecting = errors.New("another coven gc works in this repository")

// Ref is the ref of a session's snapshots.
type Ref struct {
	Name string    // SafeName of the session
	Ref  string    // full name
	Oid  string    // the newest snapshot
	Time time.Time // of the newest snapshot
}

// Refs lists the refs of snapshots, sorted by name.
func Refs(ctx context.Context, r *repo.Repo) ([]Ref, error) {
	refs, err := r.Git().Refs(ctx, names.SnapshotsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var oids []string
	for _, ref := range refs {
		oids = append(oids, ref.Oid)
	}
	commits, err := r.Git().Commits(ctx, oids...)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []Ref
	for i, ref := range refs {
		all = append(all, Ref{Name: strings.TrimPrefix(ref.Name, names.SnapshotsPrefix), Ref: ref.Name, Oid: ref.Oid, Time: commits[i].Time})
	}
	return all, nil
}

// CollectLock is the name of the garbage collection lock. Nothing else uses it.
const CollectLock = "gc"

// collectWait limits the time to wait for another garbage collection.
const collectWait = time.Second

// expireBatch is the number of refs that one transaction deletes.
const expireBatch = 100

// GC deletes expired refs of snapshots and packs objects. Tasks may start concurrently: a ref that another
// process has moved is not deleted, and packing does not change the content of objects. GC returns the
// deleted refs. After an error or a kill, the next GC deletes the rest.
//
// Unreachable objects are not deleted. They may belong to the user, and git gc deletes them
// when they are old enough.
func GC(ctx context.Context, r *repo.Repo, expired []Ref) ([]Ref, error) {
	l, err := lockCollection(ctx, r)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	g := r.Git()
	g.Hold = l.File()
	gone, err := expire(ctx, r, g, expired)
	if err != nil {
		return gone, fmt.Errorf("expire snapshots: %w", err)
	}
	failpoint.Point("gc.expired")
	return gone, pack(ctx, r, g)
}

// pack packs the refs, and the loose objects with small packs, so that there are few packs and large ones are not written again. With a commit-graph, git reads a ref in a
// microsecond: each fetch reads all of them.
func pack(ctx context.Context, r *repo.Repo, g git.Repo) error {
	if err := g.Run(ctx, "pack-refs", "--all", "--prune"); err != nil {
		return fmt.Errorf("pack refs: %w", err)
	}
	args := []string{"-c", "pack.threads=1", "-c", "pack.windowMemory=100m", "repack", "-d", "-l", "-q"}
	if isWhole(r) {
		args = append(args, "--geometric=2", "--no-write-bitmap-index")
	}
	if err := g.Run(ctx, args...); err != nil {
		return fmt.Errorf("pack objects: %w", err)
	}
	if err := g.Run(ctx, "commit-graph", "write", "--reachable", "--no-progress"); err != nil {
		return fmt.Errorf("write the commit-graph: %w", err)
	}
	failpoint.Point("gc.packed")
	return nil
}

// isWhole reports whether all objects are in the repository itself: before 2.41, git joins no packs of other repositories or of partial clones.
func isWhole(r *repo.Repo) bool {
	promised, _ := filepath.Glob(filepath.Join(r.GitDir, "objects", "pack", "*.promisor")) // the pattern is right
	_, err := os.Lstat(filepath.Join(r.GitDir, "objects", "info", "alternates"))
	return len(promised) == 0 && errors.Is(err, fs.ErrNotExist)
}

// lockCollection excludes other garbage collections. The error is ErrCollecting if another one works.
func lockCollection(ctx context.Context, r *repo.Repo) (*lock.Lock, error) {
	wait, cancel := context.WithTimeoutCause(ctx, collectWait, ErrCollecting)
	defer cancel()
	return r.Lock(wait, CollectLock, "gc")
}

// expire deletes those of the refs that have not changed.
func expire(ctx context.Context, r *repo.Repo, g git.Repo, expired []Ref) (gone []Ref, err error) {
	for len(expired) > 0 {
		batch := expired[:min(expireBatch, len(expired))]
		expired = expired[len(batch):]
		if expireAll(ctx, r, g, batch...) == nil {
			gone = append(gone, batch...)
			continue
		}
		for _, one := range batch { // another process has moved one of them
			switch err := expireAll(ctx, r, g, one); {
			case err == nil:
				gone = append(gone, one)
			case context.Cause(ctx) != nil:
				return gone, context.Cause(ctx)
			case errors.As(err, new(*lock.BusyError)):
				return gone, err
			}
		}
	}
	return gone, nil
}

func expireAll(ctx context.Context, r *repo.Repo, g git.Repo, refs ...Ref) error {
	var edits []ref.Edit
	for _, s := range refs {
		edits = append(edits, ref.Delete(s.Ref, s.Oid))
	}
	return r.Transact(ctx, g, "coven: gc", edits...)
}

// LooseObjects returns the number of loose objects in the repository.
func LooseObjects(r *repo.Repo) int {
	n := 0
	for first := range 256 {
		n += loose(r, first)
	}
	return n
}

// loose returns the number of loose objects whose IDs begin with a byte.
func loose(r *repo.Repo, first int) int {
	entries, _ := os.ReadDir(filepath.Join(r.GitDir, "objects", fmt.Sprintf("%02x", first))) // without objects, there is no directory
	return len(entries)
}

// Drop deletes the snapshots of a session.
func Drop(ctx context.Context, r *repo.Repo, session string) error {
	name := names.SnapshotRef(session)
	oid, err := r.Git().Ref(ctx, name)
	if errors.Is(err, ref.ErrNoRef) {
		return nil
	}
	if err == nil {
		err = expireAll(ctx, r, r.Git(), Ref{Ref: name, Oid: oid})
	}
	if err != nil {
		return fmt.Errorf("delete the snapshots of session %s: %w", session, err)
	}
	return nil
}
