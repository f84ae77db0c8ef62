package content

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// unconverted disables conversions that could change bytes in a snapshot: line
// endings, $Id$, encodings. Filters stay enabled: they are reversible, and those of
// git-crypt prevent plain text from being stored.
const unconverted = "* -text -ident -working-tree-encoding\n"

// RawGit returns the git.Repo for snapshots, which does not convert files. It uses a git directory with its
// own attributes, but stores objects in the repository.
func RawGit(w *repo.Worktree) (git.Repo, error) {
	g := w.Git()
	g.Dir = w.Repo.OwnStatePath("raw")
	g.ObjectDir = filepath.Join(w.Repo.GitDir, "objects")
	g.Settings = append(g.Settings, asIs()...)
	if err := PrepareRaw(w.Repo, g.Dir); err != nil {
		return g, fmt.Errorf("prepare for snapshots: %w", err)
	}
	return g, nil
}

// PrivateGit returns the git.Repo of coven's own repository for content that may be secret. It has no remotes, only its
// user can read it, and no filter converts files.
func PrivateGit(r *repo.Repo) (git.Repo, error) {
	dir := r.OwnStatePath(names.PrivateStore)
	g := git.Repo{Dir: dir, Store: git.OpenStore(dir), Settings: asIs()}
	err := os.MkdirAll(filepath.Join(dir, "objects"), 0o700)
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "refs"), 0o700)
	}
	if err == nil {
		err = git.PrepareDir(dir, git.MinimalConfig(r.Format, true), map[string]string{"info/attributes": "* -text -ident -working-tree-encoding -filter\n"})
	}
	if err != nil {
		return g, fmt.Errorf("prepare coven's private repository: %w", err)
	}
	return g, nil
}

// asIs returns the settings for storing and writing files with unusual names and without conversion.
func asIs() []git.Setting {
	return []git.Setting{
		{Key: "core.protectNTFS", Value: "false"},
		{Key: "core.protectHFS", Value: "false"},
		{Key: "core.autocrlf", Value: "false"},
	}
}

// PrepareRaw creates the git directory for snapshots, or updates the files in it.
func PrepareRaw(r *repo.Repo, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "refs"), 0o755); err != nil {
		return err
	}
	attributes, err := file.ReadIfExists(filepath.Join(r.GitDir, "info", "attributes"))
	if err != nil {
		return err
	}
	exclude, err := file.ReadIfExists(filepath.Join(r.GitDir, "info", "exclude"))
	if err != nil {
		return err
	}
	return git.PrepareDir(dir, RawConfig(r), map[string]string{
		"info/attributes": strings.TrimSuffix(attributes, "\n") + "\n" + unconverted,
		"info/exclude":    exclude,
	})
}

// RawConfig returns the configuration for snapshots. It includes the repository's settings, which define
// its filters.
func RawConfig(r *repo.Repo) string {
	path := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.Join(r.GitDir, "config"))
	return git.MinimalConfig(r.Format, false) + "[include]\n\tpath = \"" + path + "\"\n"
}

// StageRaw stages the worktree's unconverted files in the snapshot index and returns the tree. Nested
// repositories, including submodules, are stored as plain files. extra lists ignored paths to include.
func StageRaw(ctx context.Context, w *repo.Worktree, ix *Index, extra []string) (string, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return "", err
	}
	l, err := ix.Stage(ctx)
	if err != nil {
		return "", err
	}
	tracked, err := trackedIgnored(ctx, w, tip, l)
	if err != nil {
		return "", err
	}
	if err := ix.Update(ctx, append(tracked, extra...)); err != nil {
		return "", fmt.Errorf("stage the files of %s: %w", w.Path, err)
	}
	skipped, err := ix.skipAsIn(ctx, tip, l)
	if err != nil {
		return "", fmt.Errorf("stage the files of %s: %w", w.Path, err)
	}
	if tree := ix.KnownTree(); tree != "" && !skipped && l.Clean() && len(tracked)+len(extra) == 0 {
		ix.SetEqual(tree)
		return tree, w.CheckExists()
	}
	tree, err := ix.WriteTree(ctx)
	if err == nil {
		ix.SetEqual(tree)
	}
	return tree, errors.Join(err, w.CheckExists())
}

// trackedIgnored lists existing files that the branch tracks, but that are neither in the index nor
// untracked: tracked files that ignore rules match.
func trackedIgnored(ctx context.Context, w *repo.Worktree, tip string, l Listing) ([]string, error) {
	if tip == "" {
		return nil, nil
	}
	entries, err := w.Repo.Git().Entries(ctx, tip)
	if err != nil {
		return nil, err
	}
	var tracked []string
	for _, e := range entries {
		if e.Mode != object.ModeSubmodule {
			tracked = append(tracked, e.Path)
		}
	}
	var paths []string
	for _, p := range without(without(tracked, l.entries), l.Untracked) {
		files, err := InTheWay(w.Path, p)
		if err != nil {
			return nil, err
		}
		if len(files) == 1 && files[0] == p {
			paths = append(paths, p)
		}
	}
	return paths, nil
}

// OpenStaged opens the snapshot index and stages the worktree's files in it.
func OpenStaged(ctx context.Context, w *repo.Worktree, extra []string) (*Index, string, error) {
	g, err := RawGit(w)
	if err != nil {
		return nil, "", err
	}
	ix, err := Open(w, g, SnapshotIndex)
	if err != nil {
		return nil, "", err
	}
	tree, err := StageRaw(ctx, w, ix, extra)
	if err != nil {
		ix.Drop()
	}
	return ix, tree, err
}
