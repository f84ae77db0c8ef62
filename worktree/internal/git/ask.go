package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/coven-run/coven/worktree/internal/object"
)

// A Store reads refs and objects of a repository in process. The methods of Repo use it, and run git whenever
// it fails. Unsupported repositories are therefore only slower: see object.Store. A Store is safe for
// concurrent use.
type Store struct {
	dir     string // the common git directory
	objects *object.Store

	config configList
	refs   refWriter

	writeOut func(*os.File) error // starts writing the content of a new object to disk
}

// OpenStore returns the Store of a common git directory. It reads nothing yet.
func OpenStore(dir string) *Store {
	return &Store{dir: dir, objects: object.Open(dir), writeOut: writeOut}
}

// ReadInProcess reports whether the repository has the common format, so that it is read in process.
func (r Repo) ReadInProcess() bool {
	return r.Store != nil && r.Store.dir == r.Dir && r.Store.objects.IsReadable()
}

// inProcess calls read with the object.Store of the repository. If it returns an error, the caller must run git.
func inProcess[T any](ctx context.Context, r Repo, read func(*object.Store) (T, error)) (T, error) {
	if r.Store == nil || r.ObjectDir != "" || ctx.Err() != nil {
		var none T
		return none, object.ErrUnsupported
	}
	return read(r.Store.objects)
}

// objects calls read with the storage and the IDs of the named objects: see object.Read. If it returns an
// error, for example because a name has another form, the caller must run git.
func objects[T any](ctx context.Context, r Repo, names []string, read func(*object.Storage, []object.ID) (T, error)) (T, error) {
	return inProcess(ctx, r, func(s *object.Store) (T, error) { return object.Read(s, r.Dir, names, read) })
}

// Has reports whether the repository has the object oid and whether it is, or leads to, an object of this
// kind: "commit" or "tree".
func (r Repo) Has(ctx context.Context, oid, kind string) (bool, error) {
	found, err := objects(ctx, r, []string{oid}, func(s *object.Storage, ids []object.ID) (string, error) {
		return s.Kind(ids[0])
	})
	if err == nil && found == kind {
		return true, nil
	}
	err = r.Run(ctx, "cat-file", "-e", oid+"^{"+kind+"}")
	if ExitCode(err) > 0 {
		return false, nil
	}
	return err == nil, err
}

// HasCommit reports whether the repository has a commit and its tree.
func (r Repo) HasCommit(ctx context.Context, oid string) (bool, error) {
	tree, err := r.Tree(ctx, oid)
	if ExitCode(err) > 0 {
		return false, nil
	}
	has := false
	if err == nil {
		has, err = r.Has(ctx, tree, "tree")
	}
	if err != nil {
		return false, fmt.Errorf("look for commit %s: %w", oid, err)
	}
	return has, nil
}

// Tree returns the tree of a commit, tree or revision.
func (r Repo) Tree(ctx context.Context, treeish string) (string, error) {
	tree, err := objects(ctx, r, []string{treeish}, func(s *object.Storage, ids []object.ID) (string, error) {
		return s.TreeOf(ids[0])
	})
	if err == nil {
		return tree, nil
	}
	return r.Line(ctx, "rev-parse", "--verify", treeish+"^{tree}")
}

// IsAncestor reports whether a commit is reachable from another. Both are object IDs. A commit is reachable
// from itself.
func (r Repo) IsAncestor(ctx context.Context, ancestor, of string) (bool, error) {
	is, err := r.isAncestor(ctx, ancestor, of)
	if err == nil {
		return is, nil
	}
	err = r.Run(ctx, "merge-base", "--is-ancestor", ancestor, of)
	if ExitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// KnownAncestor reports whether a commit is known to be reachable from another. It never runs git.
func (r Repo) KnownAncestor(ctx context.Context, ancestor, of string) bool {
	is, err := r.isAncestor(ctx, ancestor, of)
	return err == nil && is
}

// isAncestor is IsAncestor in process. If it returns an error, the caller must run git.
func (r Repo) isAncestor(ctx context.Context, ancestor, of string) (bool, error) {
	return objects(ctx, r, []string{ancestor, of}, func(s *object.Storage, ids []object.ID) (bool, error) {
		return s.IsAncestor(ids[0], ids[1])
	})
}

// ErrNoMergeBase is returned by MergeBase for commits without a common ancestor.
var ErrNoMergeBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two commits, as `git merge-base` does, or ErrNoMergeBase.
func (r Repo) MergeBase(ctx context.Context, one, two string) (string, error) {
	base, err := objects(ctx, r, []string{one, two}, func(s *object.Storage, ids []object.ID) (string, error) {
		bases, err := s.MergeBases(ids[0], ids[1])
		if err == nil && len(bases) != 1 {
			err = object.ErrUnsupported // git chooses one, or reports that there is none
		}
		return strings.Join(bases, ""), err
	})
	if err == nil {
		return base, nil
	}
	base, err = r.Line(ctx, "merge-base", one, two)
	if failed, ok := errors.AsType[*Error](err); ok && failed.ExitCode == 1 && failed.Stderr == "" {
		return "", ErrNoMergeBase
	}
	return base, err
}

// File returns the content of a file in a commit or tree, which is an object ID. The error is an *Error if
// the file does not exist.
func (r Repo) File(ctx context.Context, treeish, path string) ([]byte, error) {
	content, err := objects(ctx, r, []string{treeish}, func(s *object.Storage, ids []object.ID) ([]byte, error) {
		return s.BlobAt(ids[0], path)
	})
	if err == nil {
		return content, nil
	}
	return r.Output(ctx, "cat-file", "blob", treeish+":"+path)
}

// At returns the entry, a file or a directory, at a path in a commit or tree, which is an object ID. If a
// parent of the path is a file, At returns that file. If nothing exists at the path, it returns the zero
// Entry. It fails unless the repository is read in process.
func (r Repo) At(ctx context.Context, treeish, path string) (object.Entry, error) {
	return objects(ctx, r, []string{treeish}, func(s *object.Storage, ids []object.ID) (object.Entry, error) {
		return s.EntryAt(ids[0], path)
	})
}

// Head returns the commit of HEAD in this git directory.
func (r Repo) Head(ctx context.Context) (string, error) {
	if branch, err := r.Branch(ctx); err == nil {
		if oid, err := r.Ref(ctx, branch); err == nil {
			if is, err := r.Has(ctx, oid, "commit"); err == nil && is {
				return oid, nil
			}
		}
	}
	return r.Line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
}

// Branch returns the full name of the ref that HEAD of this git directory is attached to. If HEAD is
// detached, the error is an *Error with exit code 1.
func (r Repo) Branch(ctx context.Context) (string, error) {
	branch, err := inProcess(ctx, r, func(s *object.Store) (string, error) { return s.Branch(r.Dir) })
	if err == nil {
		return branch, nil
	}
	return r.Line(ctx, "symbolic-ref", "--quiet", "HEAD")
}
