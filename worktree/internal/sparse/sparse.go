// Package sparse checks out only a part of the repository's files in a worktree, in git's cone mode. It
// also records the state of files outside the cone.
package sparse

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/internal/cone"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// NewCone returns the cone of a new worktree, or nil if it gets all files.
func NewCone(ctx context.Context, r *repo.Repo) (*cone.Cone, error) {
	if r.Sparse.Dirs != nil {
		return &cone.Cone{Dirs: r.Sparse.Dirs}, nil
	}
	if !r.Sparse.Main {
		return nil, nil
	}
	on, cones, err := OfMain(ctx, r)
	if err != nil || !on {
		return nil, err
	}
	if !cones {
		return nil, errors.New("the main checkout is sparse, but not in git's cone mode: set worktree.sparse")
	}
	text, err := file.ReadIfExists(filepath.Join(r.RootGit().Dir, "info", "sparse-checkout"))
	if err != nil {
		return nil, err
	}
	return cone.Parse(text)
}

// OfMain reports whether the main checkout is sparse, and whether it is in git's cone mode.
func OfMain(ctx context.Context, r *repo.Repo) (on, cones bool, err error) {
	settings, err := r.RootGit().Configured(ctx, `^core\.sparsecheckout(cone)?$`, false)
	for _, s := range settings {
		set := strings.EqualFold(s.Value, "true")
		if strings.EqualFold(s.Key, "core.sparseCheckout") {
			on = set
		} else {
			cones = set
		}
	}
	return on, cones, err
}

// WriteCone writes the cone to the worktree's git configuration. It has an effect if the repository's
// configuration enables configuration per worktree; for an isolated worktree see package isolation.
// Otherwise the worktree's git respects the skip-worktree bits of its index, but does not set new ones.
func WriteCone(ctx context.Context, w *repo.Worktree) error {
	if w.Cone == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(w.Admin, "info"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.Admin, "info", "sparse-checkout"), []byte(w.Cone.Patterns()), 0o644); err != nil {
		return err
	}
	for _, key := range []string{"core.sparseCheckout", "core.sparseCheckoutCone"} {
		if err := w.Repo.Git().Run(ctx, "config", "--file", filepath.Join(w.Admin, "config.worktree"), key, "true"); err != nil {
			return err
		}
	}
	return nil
}

// Presence checks for files in a worktree. It checks each directory once, so that all files in a missing
// directory cost one system call.
type Presence struct {
	top  string
	dirs map[string]bool
}

// PresenceOf returns a Presence for the worktree.
func PresenceOf(w *repo.Worktree) Presence {
	return Presence{top: w.Path, dirs: map[string]bool{".": true}}
}

// Has reports whether anything exists at a path. It does not follow symbolic links.
func (p Presence) Has(name string) bool {
	return p.hasDir(path.Dir(name)) && file.Exists(filepath.Join(p.top, name))
}

func (p Presence) hasDir(dir string) bool {
	there, known := p.dirs[dir]
	if known {
		return there
	}
	if p.hasDir(path.Dir(dir)) {
		info, err := os.Lstat(filepath.Join(p.top, dir))
		there = err == nil && info.IsDir()
	}
	p.dirs[dir] = there
	return there
}

// Present returns the paths of the entries that exist in the worktree.
func Present(w *repo.Worktree, entries []object.Entry) []string {
	var paths []string
	there := PresenceOf(w)
	for _, e := range entries {
		if there.Has(e.Path) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// Outside is outside.json. It records the state of files that are outside the cone and not in the worktree.
type Outside struct {
	Tip  string   `json:"tip,omitempty"`  // tip of the branch
	Tree string   `json:"tree,omitempty"` // commit with these files during a merge, while the branch is at Tip
	Gone []string `json:"gone,omitempty"` // files that count as deleted, because the worktree had them
}

// OutsidePath returns the path of the file that WriteOutside writes.
func OutsidePath(w *repo.Worktree) string { return w.StatePath("outside.json") }

// ReadOutside reads the record for a tip of the branch. If no merge is in progress, Tree is tip.
func ReadOutside(w *repo.Worktree, tip string) (Outside, error) {
	var rec Outside
	err := file.ReadJSON(OutsidePath(w), &rec)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return rec, err
	}
	if rec.Tip != tip || rec.Tree == "" {
		rec.Tip, rec.Tree = tip, tip
	}
	return rec, nil
}

// OutsideText returns the text of the record's file. It is empty if the file does not exist or the worktree
// is not sparse.
func OutsideText(w *repo.Worktree) string {
	if w.Cone == nil {
		return ""
	}
	raw, _ := os.ReadFile(OutsidePath(w)) // if the file does not exist, it is empty
	return string(raw)
}

// WriteOutside writes the record of a sparse worktree.
func WriteOutside(w *repo.Worktree, rec Outside) error {
	if w.Cone == nil {
		return nil
	}
	if rec.Tree == rec.Tip {
		rec.Tip, rec.Tree = "", ""
	}
	if rec.Tree == "" && len(rec.Gone) == 0 {
		err := os.Remove(OutsidePath(w))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return file.WriteJSON(OutsidePath(w), rec)
}

// Disable removes the sparse settings that git copied from a sparse main checkout.
func Disable(ctx context.Context, r *repo.Repo, admin string) error {
	dir := filepath.Join(r.GitDir, "worktrees", admin)
	err := os.Remove(filepath.Join(dir, "info", "sparse-checkout"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config := filepath.Join(dir, "config.worktree")
	if !file.Exists(config) {
		return nil
	}
	return r.Git().Run(ctx, "config", "--file", config, "core.sparseCheckout", "false")
}
