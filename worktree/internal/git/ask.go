package git

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// inProcess calls read with the Store. If it returns an error, the caller must run git.
func inProcess[T any](ctx context.Context, r Repo, read func(*Store) (T, error)) (T, error) {
	if r.Store == nil || r.ObjectDir != "" || ctx.Err() != nil {
		var none T
		return none, errAsk
	}
	return read(r.Store)
}

// objects calls read with the storage and the IDs of the named objects. A name is an ID, HEAD, or the full
// name of a ref. If objects returns an error, for example because a name has another form, the caller must
// run git.
func objects[T any](ctx context.Context, r Repo, names []string, read func(*storage, []plumbing.Hash) (T, error)) (T, error) {
	return inProcess(ctx, r, func(s *Store) (value T, err error) {
		ids := make([]plumbing.Hash, len(names))
		for i, name := range names {
			if ids[i], err = s.named(r.Dir, name); err != nil {
				return value, err
			}
		}
		err = s.use(func(opened *storage) error {
			value, err = read(opened, ids)
			return err
		})
		return value, err
	})
}

// Has reports whether the repository has the object oid and whether it is, or leads to, an object of this
// kind: "commit" or "tree".
func (r Repo) Has(ctx context.Context, oid, kind string) (bool, error) {
	found, err := objects(ctx, r, []string{oid}, func(s *storage, ids []plumbing.Hash) (string, error) {
		if _, err := s.size(ids[0]); err != nil { // it may have been removed since it was read
			return "", err
		}
		o, err := s.object(ids[0])
		if err != nil {
			return "", err
		}
		return o.Type().String(), nil
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

// Tree returns the tree of a commit, tree or revision.
func (r Repo) Tree(ctx context.Context, treeish string) (string, error) {
	tree, err := objects(ctx, r, []string{treeish}, func(s *storage, ids []plumbing.Hash) (string, error) {
		tree, err := s.peel(ids[0])
		if err != nil {
			return "", err
		}
		_, err = s.tree(tree)
		return tree.String(), err
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
	return objects(ctx, r, []string{ancestor, of}, func(s *storage, ids []plumbing.Hash) (bool, error) {
		return s.isAncestor(ids[0], ids[1])
	})
}

// ErrNoMergeBase is returned by MergeBase for commits without a common ancestor.
var ErrNoMergeBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two commits, as `git merge-base` does, or ErrNoMergeBase.
func (r Repo) MergeBase(ctx context.Context, one, two string) (string, error) {
	base, err := objects(ctx, r, []string{one, two}, func(s *storage, ids []plumbing.Hash) (string, error) {
		bases, err := s.mergeBases(ids[0], ids[1])
		if err == nil && len(bases) != 1 {
			err = errAsk // git chooses one, or reports that there is none
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
	content, err := objects(ctx, r, []string{treeish}, func(s *storage, ids []plumbing.Hash) ([]byte, error) {
		if !isPlainPath(path) {
			return nil, errAsk
		}
		return s.blobAt(ids[0], path)
	})
	if err == nil {
		return content, nil
	}
	return r.Output(ctx, "cat-file", "blob", treeish+":"+path)
}

// At returns the entry, a file or a directory, at a path in a commit or tree, which is an object ID. If a
// parent of the path is a file, At returns that file. If nothing exists at the path, it returns the zero
// Entry. It fails unless the repository is read in process.
func (r Repo) At(ctx context.Context, treeish, path string) (Entry, error) {
	return objects(ctx, r, []string{treeish}, func(s *storage, ids []plumbing.Hash) (Entry, error) {
		if !isPlainPath(path) {
			return Entry{}, errAsk
		}
		return s.entryAt(ids[0], path)
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
	branch, err := inProcess(ctx, r, func(s *Store) (string, error) { return s.branch(r.Dir) })
	if err == nil {
		return branch, nil
	}
	return r.Line(ctx, "symbolic-ref", "--quiet", "HEAD")
}
