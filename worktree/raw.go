package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/google/renameio/v2"
)

// unconverted turns off what would change bytes on their way into a snapshot
// and back: line endings, $Id$, encodings. Filters stay: they are made to be
// undone, and git-crypt's are there so that no plain text is stored.
const unconverted = "* -text -ident -working-tree-encoding\n"

// rawGit is W as snapshots see it: files as they are, byte for byte. That
// takes a git directory with attributes of its own; objects go to the
// repository's.
func (w *Worktree) rawGit() (git.Repo, error) {
	g := w.git()
	g.Dir = w.repo.ours("raw")
	g.ObjectDir = filepath.Join(w.repo.GitDir, "objects")
	// A snapshot of a file with an odd name is better than none.
	g.Settings = append(g.Settings,
		git.Setting{Key: "core.protectNTFS", Value: "false"},
		git.Setting{Key: "core.protectHFS", Value: "false"},
		git.Setting{Key: "core.autocrlf", Value: "false"})
	if err := w.repo.prepareRaw(g.Dir); err != nil {
		return g, fmt.Errorf("prepare for snapshots: %w", err)
	}
	return g, nil
}

// prepareRaw makes the git directory, or brings its copies up to date.
func (r *Repo) prepareRaw(dir string) error {
	for _, sub := range []string{"refs", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	attributes, err := readIfThere(filepath.Join(r.GitDir, "info", "attributes"))
	if err != nil {
		return err
	}
	exclude, err := readIfThere(filepath.Join(r.GitDir, "info", "exclude"))
	if err != nil {
		return err
	}
	files := map[string]string{
		"HEAD":            "ref: refs/heads/none\n",
		"config":          r.rawConfig(),
		"info/attributes": strings.TrimSuffix(attributes, "\n") + "\n" + unconverted,
		"info/exclude":    exclude,
	}
	for name, content := range files {
		if err := keepFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// rawConfig includes the repository's settings, for its filters.
func (r *Repo) rawConfig() string {
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	if r.format == "sha256" {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
	}
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.Join(r.GitDir, "config"))
	return config + "[include]\n\tpath = \"" + path + "\"\n"
}

func readIfThere(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(raw), err
}

// keepFile writes a file unless it has this content.
func keepFile(path, content string) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, []byte(content)) {
		return nil
	}
	return renameio.WriteFile(path, []byte(content), 0o644)
}

// stageRaw makes the snapshot index hold W byte for byte and returns the tree.
// Repositories in W, submodules too, are plain files in it. extra are paths
// taken although they are ignored.
func (w *Worktree) stageRaw(ctx context.Context, ix *index, extra []string) (string, error) {
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return "", err
	}
	l, err := ix.stage(ctx)
	if err != nil {
		return "", err
	}
	tracked, err := w.trackedIgnored(ctx, tip, l)
	if err != nil {
		return "", err
	}
	if err := ix.take(ctx, append(tracked, extra...)); err != nil {
		return "", fmt.Errorf("stage the files of %s: %w", w.Path, err)
	}
	tree, err := ix.tree(ctx)
	return tree, errors.Join(err, w.here())
}

// trackedIgnored lists the files that the branch tracks and the index did not
// hold: those that are new to it, and those that only look ignored.
func (w *Worktree) trackedIgnored(ctx context.Context, tip string, l listing) ([]string, error) {
	if tip == "" {
		return nil, nil
	}
	entries, err := w.repo.git().Entries(ctx, tip)
	if err != nil {
		return nil, err
	}
	var tracked []string
	for _, e := range entries {
		if e.Mode != git.ModeSubmodule {
			tracked = append(tracked, e.Path)
		}
	}
	var paths []string
	for _, p := range without(without(tracked, l.entries), l.untracked) {
		files, err := inTheWay(w.Path, p)
		if err != nil {
			return nil, err
		}
		if len(files) == 1 && files[0] == p {
			paths = append(paths, p)
		}
	}
	return paths, nil
}
