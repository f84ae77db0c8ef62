package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/files"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A listing contains the files that git would add and the files that determine that, in checkouts and in
// worktrees of tasks.
func TestListing(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T-1")
	listed := func(l files.Listing, err error) string {
		t.Helper()
		must(t, err)
		if slices.Contains(l.Files, "nested/x") || !slices.Contains(l.Ignored, ".coven") {
			t.Errorf("the listing is %+v", l)
		}
		if slices.ContainsFunc(l.Depends, func(name string) bool { return !filepath.IsAbs(name) }) {
			t.Errorf("the listing depends on %q", l.Depends)
		}
		if index := l.Depends[0]; !exists(index) {
			t.Errorf("there is no index %s", index)
		}
		return strings.Join(l.Files, " ")
	}
	before := listed(files.ListCheckout(ctx, r))
	equal(t, "tracked", before, strings.Join(strings.Fields(gitIn(t, r.Root, "ls-files")), " "))
	equal(t, "in the worktree", listed(files.List(ctx, w)), before)
	for _, top := range []string{r.Root, w.Path} {
		write(t, filepath.Join(top, "zzz.txt"), "new\n")
		write(t, filepath.Join(top, "x.log"), "ignored\n")
		write(t, filepath.Join(top, "build", "x"), "ignored\n")
		write(t, filepath.Join(top, ".gitignore"), "*.log\nbuild/\n")
		write(t, filepath.Join(top, ".coven", "agents", "a.md"), "x\n")
		gitIn(t, top, "init", "--quiet", "nested")
		write(t, filepath.Join(top, "nested", "x"), "x\n")
	}
	for _, listing := range []files.Listing{value[files.Listing](t)(files.ListCheckout(ctx, r)), value[files.Listing](t)(files.List(ctx, w))} {
		got := listed(listing, nil)
		if !strings.HasSuffix(got, " zzz.txt") || strings.Contains(got, "x.log") || strings.Contains(got, "build") || strings.Contains(got, "agents") {
			t.Errorf("the files are %s", got)
		}
		for _, dir := range []string{"build", "nested"} {
			if !slices.Contains(listing.Ignored, dir) {
				t.Errorf("%s is not among the ignored directories %q", dir, listing.Ignored)
			}
		}
	}
	must(t, os.RemoveAll(w.Path))
	_, err := files.List(ctx, w)
	wantIs(t, err, repo.ErrNoWorktree)
}
