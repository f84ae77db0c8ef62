package git

import (
	"context"
	"errors"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// inProcess calls read with the Store. If it returns an error, git must be asked.
func inProcess[T any](ctx context.Context, r Repo, read func(*Store) (T, error)) (T, error) {
	if r.Store == nil || r.ObjectDir != "" || ctx.Err() != nil {
		var none T
		return none, errAsk
	}
	return read(r.Store)
}

// objects calls read with the storage and the ids of objects, which are given by an id, HEAD or
// the full name of a ref. If it returns an error, git must be asked, among other reasons because
// a name is another one.
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

// Has reports whether the repository has an object that is, or leads to, one of this kind:
// "commit" or "tree".
func (r Repo) Has(ctx context.Context, oid, kind string) (bool, error) {
	found, err := objects(ctx, r, []string{oid}, func(s *storage, ids []plumbing.Hash) (string, error) {
		if _, err := s.size(ids[0]); err != nil { // it may be gone since it was read
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

// Tree returns the tree of a commit, a tree or a revision that names one.
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

// IsAncestor reports whether a commit is reachable from another, given by object ids. A commit
// is reachable from itself.
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

// KnownAncestor reports whether a commit is known, without asking git, to be reachable from another.
func (r Repo) KnownAncestor(ctx context.Context, ancestor, of string) bool {
	is, err := r.isAncestor(ctx, ancestor, of)
	return err == nil && is
}

// isAncestor answers in process. If it returns an error, git must be asked.
func (r Repo) isAncestor(ctx context.Context, ancestor, of string) (bool, error) {
	return objects(ctx, r, []string{ancestor, of}, func(s *storage, ids []plumbing.Hash) (bool, error) {
		return s.isAncestor(ids[0], ids[1])
	})
}

// ErrNoMergeBase is returned for commits without a common ancestor.
var ErrNoMergeBase = errors.New("no common ancestor")

// MergeBase returns the best common ancestor of two commits, as git merge-base prints it, or
// ErrNoMergeBase.
func (r Repo) MergeBase(ctx context.Context, one, two string) (string, error) {
	base, err := objects(ctx, r, []string{one, two}, func(s *storage, ids []plumbing.Hash) (string, error) {
		bases, err := s.mergeBases(ids[0], ids[1])
		if err == nil && len(bases) != 1 {
			err = errAsk // git chooses, and says that there is none
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

// File returns the content of a file of a commit or tree, given by an object id. A file that
// is not there is an *Error.
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

// At returns the entry of a commit or tree, given by an object id, at a path: a file or a directory.
// If a part of the path is a file, it is that file; if there is none, the zero value. It fails
// unless the repository is read in process.
func (r Repo) At(ctx context.Context, treeish, path string) (Entry, error) {
	return objects(ctx, r, []string{treeish}, func(s *storage, ids []plumbing.Hash) (Entry, error) {
		if !isPlainPath(path) {
			return Entry{}, errAsk
		}
		return s.entryAt(ids[0], path)
	})
}

// Head returns the commit that HEAD of this git directory leads to.
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

// Branch returns the full name of the ref that HEAD of this git directory is attached to. A
// detached HEAD is an *Error with exit code 1.
func (r Repo) Branch(ctx context.Context) (string, error) {
	branch, err := inProcess(ctx, r, func(s *Store) (string, error) { return s.branch(r.Dir) })
	if err == nil {
		return branch, nil
	}
	return r.Line(ctx, "symbolic-ref", "--quiet", "HEAD")
}
