package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/suspect"
)

// maxWalk limits the number of commits that are searched for secrets.
const maxWalk = 10_000

// maxAttributes limits the size of a file with attributes in bytes.
const maxAttributes = 1 << 20

// Secrets returns the files that look like secrets in the commits of the first-parent history of tip, as in a commit of coven, each as "path (reason)". It
// looks at each commit's changes up to known, which is on the remote already and may be empty, and then at those since base. Paths that the globs allow do
// not count.
func Secrets(ctx context.Context, r *repo.Repo, base, known, tip string, allow []string) ([]string, error) {
	g := r.Git()
	var changes []object.Change
	for n := 0; tip != "" && tip != known && tip != base; n++ {
		if n == maxWalk {
			return nil, fmt.Errorf("there are more than %d commits to search for secrets", maxWalk)
		}
		c, err := g.Commit(ctx, tip)
		if err != nil {
			return nil, err
		}
		before := base
		tip = ""
		if len(c.Parents) > 0 {
			before, tip = c.Parents[0], c.Parents[0]
		}
		more, err := changesBetween(ctx, g, before, c.Tree)
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	reasons, err := suspect.Find(ctx, g, changes, nil)
	var found []string
	for p, reason := range reasons {
		if !commit.IsAllowed(allow, p) {
			found = append(found, p+" ("+reason+")")
		}
	}
	slices.Sort(found)
	return found, err
}

func changesBetween(ctx context.Context, g git.Repo, before, tree string) ([]object.Change, error) {
	from, err := g.Tree(ctx, before)
	if err != nil {
		return nil, err
	}
	return g.Changes(ctx, from, tree)
}

// HasFilters reports whether attributes of a commit or of the repository name filters. A snapshot contains files as they are in the worktree: where a filter encrypts
// them, or stores them elsewhere, they must not leave the machine.
func HasFilters(ctx context.Context, r *repo.Repo, of string) (bool, error) {
	g := r.Git()
	tree, err := g.Tree(ctx, of)
	if err != nil {
		return false, err
	}
	entries, err := g.Entries(ctx, tree)
	if err != nil {
		return false, err
	}
	var oids []string
	for _, e := range entries {
		if path.Base(e.Path) == ".gitattributes" && e.Mode != object.ModeSubmodule {
			oids = append(oids, e.Oid)
		}
	}
	found := false
	err = g.Objects(ctx, oids, func(_ object.Object, body io.Reader) error {
		text, err := io.ReadAll(io.LimitReader(body, maxAttributes))
		found = found || namesFilter(text)
		return err
	})
	if err != nil || found {
		return found, err
	}
	files := []string{filepath.Join(r.GitDir, "info", "attributes")}
	settings, err := g.Configured(ctx, `^core\.attributesfile$`, true)
	if err != nil {
		return false, err
	}
	for _, s := range settings {
		files = append(files, s.Value)
	}
	if home, err := os.UserConfigDir(); err == nil {
		files = append(files, filepath.Join(home, "git", "attributes"))
	}
	for _, file := range files {
		text, err := regularfile.ReadIn(filepath.Dir(file), filepath.Base(file), maxAttributes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if namesFilter(text) {
			return true, nil
		}
	}
	return false, nil
}

func namesFilter(attributes []byte) bool { return bytes.Contains(attributes, []byte("filter=")) }
