package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// Filters run in each checkout that a landing changes, where their programs are. If a required filter
// fails, the landing stops before anything has changed.
func TestLandFilters(t *testing.T) {
	r := sample(t)
	tool := "#!/bin/sh\ntest -e broken && exit 1\ntest \"$GIT_WORK_TREE\" = \"$PWD\" -a -z \"$GIT_INDEX_FILE\" || exit 2\ntr a-z A-Z\n"
	must(t, os.WriteFile(filepath.Join(r.Root, "tool"), []byte(tool), 0o755))
	gitIn(t, r.Root, "add", "tool")
	gitIn(t, r.Root, "commit", "-qm", "tool")
	gitIn(t, r.Root, "config", "filter.up.smudge", "./tool %f")
	gitIn(t, r.Root, "config", "filter.up.clean", "tr A-Z a-z")
	gitIn(t, r.Root, "config", "filter.up.required", "true")
	linked := filepath.Join(t.TempDir(), "linked")
	gitIn(t, r.Root, "worktree", "add", "-q", "-f", linked, "main")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, ".gitattributes"), "*.up filter=up\n")
	write(t, filepath.Join(w.Path, "a.up"), "WORD\n")
	commitAll(t, w, "work")
	c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))

	write(t, filepath.Join(linked, "broken"), "")
	before, second := status(t, r.Root), status(t, linked)
	_, err := landTask(t, w, c, land.Squash)
	if refused := wantError[*land.CheckoutError](t, err); refused.Path != linked || !strings.Contains(refused.Reason, "filter") {
		t.Errorf("refused: %v", refused)
	}
	equal(t, "first", status(t, r.Root), before)
	equal(t, "second", status(t, linked), second)
	must(t, os.Remove(filepath.Join(linked, "broken")))

	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	for _, top := range []string{r.Root, linked} {
		equal(t, top, read(t, filepath.Join(top, "a.up")), "WORD\n")
	}
	equal(t, "landed", gitIn(t, r.Root, "show", "main:a.up"), "word")
	equal(t, "status", gitIn(t, linked, "status", "--porcelain"), "")
}
