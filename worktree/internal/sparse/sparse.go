// Package sparse gives a worktree only a part of the repository's files, in git's cone mode, and knows which files
// outside the cone are there although they are not part of it.
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
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// NewCone returns the cone of a new worktree; nil: it has all files.
func NewCone(ctx context.Context, r *repo.Repo) (*cone.Cone, error) {
	if r.Sparse.Dirs != nil {
		return &cone.Cone{Dirs: r.Sparse.Dirs}, nil
	}
	if !r.Sparse.Main {
		return nil, nil
	}
	main := r.RootGit()
	settings, err := main.Configured(ctx, `^core\.sparsecheckout(cone)?$`, false)
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, s := range settings {
		on[strings.ToLower(s.Key)] = strings.EqualFold(s.Value, "true")
	}
	if !on["core.sparsecheckout"] {
		return nil, nil
	}
	if !on["core.sparsecheckoutcone"] {
		return nil, errors.New("the main checkout is sparse, but not in git's cone mode: set worktree.sparse")
	}
	text, err := file.ReadIfExists(filepath.Join(main.Dir, "info", "sparse-checkout"))
	if err != nil {
		return nil, err
	}
	return cone.Parse(text)
}

// WriteCone lets W's own git know the cone, if the configuration of the repository allows worktrees
// their own; see settleConfig for that of an isolated W. Otherwise it knows the entries of W's
// index, as far as it does not write new ones.
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

// Presence looks for files in W, with one look for all in a directory that does not exist.
type Presence struct {
	top  string
	dirs map[string]bool
}

// PresenceOf returns a Presence for W, which lists each directory once.
func PresenceOf(w *repo.Worktree) Presence {
	return Presence{top: w.Path, dirs: map[string]bool{".": true}}
}

// Has reports whether anything is at a path. What is behind a symbolic link is not.
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

// Present returns the paths of the entries that are in W.
func Present(w *repo.Worktree, entries []git.Entry) []string {
	var paths []string
	there := PresenceOf(w)
	for _, e := range entries {
		if there.Has(e.Path) {
			paths = append(paths, e.Path)
		}
	}
	return paths
}

// Outside is outside.json: as what files outside of the cone count that are not in W.
type Outside struct {
	Tip  string   `json:"tip,omitempty"`  // of the branch
	Tree string   `json:"tree,omitempty"` // a commit that has these files while the branch is at Tip: a merge in W
	Gone []string `json:"gone,omitempty"` // they count as deleted: W had them
}

// OutsidePath returns the file of the record that WriteOutside writes.
func OutsidePath(w *repo.Worktree) string { return w.StatePath("outside.json") }

// ReadOutside reads the record for a tip of the branch. Tree is that of the tip if no merge is in
// progress.
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

// OutsideText returns the record as it is in its file.
func OutsideText(w *repo.Worktree) string {
	if w.Cone == nil {
		return ""
	}
	raw, _ := os.ReadFile(OutsidePath(w)) // without the file, it is empty
	return string(raw)
}

// WriteOutside writes the record of a sparse W.
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

// Disable removes settings that git copied from a sparse main checkout.
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
