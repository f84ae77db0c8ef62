package rescue

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// stagedOnly returns the entries of the worktree's index that are neither in tree nor on the branch. If the
// index is damaged, it adds the index file to files.
func stagedOnly(ctx context.Context, w *repo.Worktree, files map[string]string, tree string) ([]object.Entry, error) {
	from := filepath.Join(w.Admin, "index")
	if same, err := publishedIndex(w, from); err != nil || same {
		return nil, err
	}
	g := w.Repo.Git()
	ix, err := content.Open(w, g, "none")
	if err != nil {
		return nil, err
	}
	defer ix.Drop()
	err = file.CopyRegular(ix.Git.Index, from)
	if errors.As(err, new(*regularfile.SizeError)) {
		files[GitDirName+"/index"] = from
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	reader, err := withShared(w, ix)
	if err != nil {
		return nil, err
	}
	fields, err := reader.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		if whole, sumErr := hasChecksum(ix.Git.Index, w.Repo.Format); sumErr != nil || whole {
			return nil, errors.Join(err, sumErr)
		}
		files[GitDirName+"/index"] = from
		return nil, nil
	}
	has, err := stored(ctx, w, tree)
	if err != nil {
		return nil, err
	}
	var only []object.Entry
	for _, field := range fields {
		e, err := content.IndexEntry(field)
		if err != nil {
			return nil, err
		}
		if has[object.Entry{Oid: e.Oid, Path: e.Path}] || e.Mode == object.ModeSubmodule {
			continue
		}
		meta, _, _ := strings.Cut(field, "\t")
		stage := meta[strings.LastIndexByte(meta, ' ')+1:]
		e.Path = replaceGitNames(path.Join(stagedDir, stage, e.Path))
		only = append(only, e)
	}
	return only, nil
}

// withShared returns a git.Repo that reads the copy of the worktree's index, also if it is split: git looks for the other
// part in the git directory.
func withShared(w *repo.Worktree, ix *content.Index) (git.Repo, error) {
	shared, _ := filepath.Glob(filepath.Join(w.Admin, "sharedindex.*")) // the pattern is valid
	if len(shared) == 0 {
		return ix.Git, nil
	}
	g := ix.Git
	g.Dir, g.Store = filepath.Join(ix.Dir, "git"), nil
	if err := errors.Join(os.MkdirAll(filepath.Join(g.Dir, "refs"), 0o755), os.MkdirAll(filepath.Join(g.Dir, "objects"), 0o755)); err != nil {
		return g, err
	}
	if err := git.PrepareDir(g.Dir, git.MinimalConfig(w.Repo.Format, false), nil); err != nil {
		return g, err
	}
	for _, part := range shared {
		if err := file.CopyRegular(filepath.Join(g.Dir, filepath.Base(part)), part); err != nil && !errors.As(err, new(*regularfile.SizeError)) {
			return g, err
		}
	}
	return g, nil
}

// publishedIndex reports whether the worktree's index has no content of its own, because it does not exist
// or coven wrote it.
func publishedIndex(w *repo.Worktree, from string) (bool, error) {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	has, err := file.Open(from, info.Size())
	if err != nil {
		return false, err
	}
	defer func() { _ = has.Close() }()
	kept, err := os.Open(w.StatePath(content.CommitIndex))
	if err != nil {
		return false, nil // coven has written none
	}
	defer func() { _ = kept.Close() }()
	return sameContent(has, kept), nil
}

// hasChecksum reports whether an index ends with its checksum, or with zeros in its place.
func hasChecksum(name, format string) (bool, error) {
	in, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	h := sha1.New() //nolint:gosec // see above
	if format == "sha256" {
		h = sha256.New()
	}
	if info.Size() < int64(h.Size()) {
		return false, nil
	}
	end := make([]byte, h.Size())
	if _, err := io.CopyN(h, in, info.Size()-int64(h.Size())); err != nil {
		return false, err
	}
	if _, err := io.ReadFull(in, end); err != nil {
		return false, err
	}
	return bytes.Equal(end, h.Sum(nil)) || bytes.Equal(end, make([]byte, h.Size())), nil
}

// stored returns the object IDs and paths of a tree and of the branch.
func stored(ctx context.Context, w *repo.Worktree, tree string) (map[object.Entry]bool, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return nil, err
	}
	has := map[object.Entry]bool{}
	for _, treeish := range []string{tree, tip} {
		if treeish == "" {
			continue
		}
		entries, err := w.Repo.Git().Entries(ctx, treeish)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			has[object.Entry{Oid: e.Oid, Path: e.Path}] = true
		}
	}
	return has, nil
}
