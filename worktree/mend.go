package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/worktree/internal/git"
)

// A mark is on disk while git moves a checkout. It says that the files to be
// changed were as the index had them when the move began.
type mark struct {
	Checkout string `json:"checkout"`
	From     string `json:"from"`
	To       string `json:"to"`
}

func (c checkout) markPath() string {
	sum := sha256.Sum256([]byte(c.git.Dir))
	return c.repo.ours("moves", hex.EncodeToString(sum[:8])+".json")
}

func (c checkout) mark(from, to string) error {
	if err := writeJSON(c.markPath(), mark{Checkout: c.path, From: from, To: to}); err != nil {
		return fmt.Errorf("mark %s as moving: %w", c.path, err)
	}
	return nil
}

func (c checkout) unmark() error {
	err := os.Remove(c.markPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mend brings a checkout back to from that was stopped on its way to another
// commit: git changes the files first and the index last.
func (c checkout) mend(ctx context.Context, from, to string) error {
	if err := c.awaitIndex(ctx); err != nil {
		return err
	}
	moved, err := c.half(ctx, from, to)
	if err != nil {
		return fmt.Errorf("bring %s back: %w", c.path, err)
	}
	if len(moved) > 0 {
		err = c.patiently(ctx, func() error { return c.repo.take(ctx, c.git, moved) })
		if err == nil {
			err = c.patiently(ctx, func() error { return c.git.Run(ctx, "read-tree", "-m", "-u", to, from) })
		}
		if err != nil {
			return fmt.Errorf("bring %s back: %w", c.path, err)
		}
	}
	return c.unmark()
}

// half lists the paths whose files are as in to and whose index entries are
// not.
func (c checkout) half(ctx context.Context, from, to string) ([]string, error) {
	changes, err := c.git.Changes(ctx, from, to)
	if err != nil {
		return nil, err
	}
	before, err := c.entries(ctx, c.git)
	if err != nil {
		return nil, err
	}
	actual, err := c.actual(ctx, changes)
	if err != nil {
		return nil, err
	}
	var moved []string
	for _, change := range changes {
		want := wanted(change)
		if actual[change.Path] == want && before[change.Path] != want {
			moved = append(moved, change.Path)
		}
	}
	return moved, nil
}

// wanted is the entry a change leads to, zero for a deleted path.
func wanted(change git.Change) git.Entry {
	if change.Status == 'D' {
		return git.Entry{}
	}
	return git.Entry{Mode: change.Mode, Oid: change.Oid, Path: change.Path}
}

func (c checkout) entries(ctx context.Context, g git.Repo) (map[string]git.Entry, error) {
	fields, err := g.Fields(ctx, "ls-files", "-z", "-s")
	if err != nil {
		return nil, err
	}
	list := map[string]git.Entry{}
	for _, field := range fields {
		e, err := indexEntry(field)
		if err != nil {
			return nil, err
		}
		list[e.Path] = e
	}
	return list, nil
}

// actual returns the entries that the files of some changes would have now.
func (c checkout) actual(ctx context.Context, changes []git.Change) (map[string]git.Entry, error) {
	scratch := &Worktree{repo: c.repo, name: scratchName, Path: c.path}
	g := c.git
	g.Settings = []git.Setting{{Key: "core.splitIndex", Value: "false"}}
	ix, err := scratch.openIndex(g, "none")
	if err != nil {
		return nil, err
	}
	defer ix.drop()
	var paths []string
	for _, change := range changes {
		if _, err := os.Lstat(filepath.Join(c.path, change.Path)); err == nil && change.Mode != git.ModeSubmodule {
			paths = append(paths, change.Path)
		}
	}
	if err := ix.take(ctx, paths); err != nil {
		return nil, err
	}
	return c.entries(ctx, ix.git)
}
