package worktree

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/internal/ref"
)

// The value of a single ref is the same as in the list of all refs.
func TestRefIsAsListed(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	tip := gitIn(t, r.Root, "rev-parse", "main")
	gitIn(t, r.Root, "update-ref", "refs/coven/packed", "main")
	gitIn(t, r.Root, "pack-refs", "--all")
	for _, name := range []string{"refs/coven/loose", "refs/heads/both/loose"} {
		gitIn(t, r.Root, "update-ref", name, "main")
	}
	gitIn(t, r.Root, "tag", "-a", "-m", "a tag", "noted", "main")
	gitIn(t, r.Root, "symbolic-ref", "refs/coven/link", "refs/heads/main")
	gitIn(t, r.Root, "symbolic-ref", "refs/coven/nowhere", "refs/heads/none")
	write(t, filepath.Join(r.GitDir, "refs/coven/broken"), "no oid\n")
	write(t, filepath.Join(r.GitDir, "refs/coven/empty"), "")
	missing := "1234567890123456789012345678901234567890"
	write(t, filepath.Join(r.GitDir, "refs/coven/missing"), missing+"\n")
	for name, want := range map[string]string{
		"refs/heads/main": tip, "refs/coven/packed": tip, "refs/coven/loose": tip, "refs/heads/both/loose": tip, "refs/coven/link": tip,
		"refs/tags/noted": gitIn(t, r.Root, "rev-parse", "refs/tags/noted"), "refs/coven/missing": missing,
		"refs/coven/none": "", "refs/heads/both": "", "refs/coven/nowhere": "", "refs/coven/broken": "", "refs/coven/empty": "",
		"refs/coven/none-1-g" + tip[:8]: "", // the output of git describe is not the name of a ref
	} {
		got, err := r.Git().Ref(ctx, name)
		if got != want || (want == "") != errors.Is(err, ref.ErrNoRef) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		listed := ""
		for _, ref := range value[[]ref.Ref](t)(r.Git().Refs(ctx, name)) {
			if ref.Name == name {
				listed = ref.Oid
			}
		}
		equal(t, name+" in the list", listed, want)
	}
}
