package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
)

func onMain(t testing.TB, r *repo.Repo, name, content string) {
	t.Helper()
	write(t, filepath.Join(r.Root, name), content)
	gitIn(t, r.Root, "add", "-f", name)
	gitIn(t, r.Root, "commit", "-qm", "change "+name)
}

func TestIntegrate(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
	commitAll(t, w, "mine")
	same := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	equal(t, "no merge needed", same.Tip, value[string](t)(w.Tip(ctx)))

	onMain(t, r, "file1.txt", "theirs\n")
	onMain(t, r, "newdir/new.txt", "theirs\n")
	c := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	equal(t, "branch", value[string](t)(w.Tip(ctx)), c.Tip)
	equal(t, "parents", gitIn(t, r.Root, "log", "-1", "--format=%P", c.Tip), same.Tip+" "+c.Old)
	equal(t, "tree of W", value[string](t)(content.Tree(ctx, w)), c.Tree)
	equal(t, "file of W", read(t, filepath.Join(w.Path, "newdir/new.txt")), "theirs\n")
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	c.From = c.Tree // the branch already contains the target
	equal(t, "again", value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))), c)
}

func TestIntegrateConflict(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
	write(t, filepath.Join(w.Path, "odd\nname"), "mine\n")
	commitAll(t, w, "mine")
	onMain(t, r, "file0.txt", "theirs\n")
	onMain(t, r, "odd\nname", "theirs\n")
	before := status(t, w.Path)
	_, err := integrate.Merge(ctx, w, targetOf(r, t))
	conflict := wantError[*integrate.ConflictError](t, err)
	equal(t, "files", strings.Join(conflict.Files, "|"), "file0.txt|odd\nname")
	equal(t, "target", conflict.Target, "main")
	equal(t, "worktree", status(t, w.Path), before)
}

// The tracker's file often changes on both sides. That is not a conflict, and the file in the worktree does
// not change.
func TestIntegrateTrackerFile(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	tracker := filepath.Join(w.Path, ".beads/issues.jsonl")
	for _, version := range []string{"v2\n", "v3\n", "v4\n"} {
		onMain(t, r, ".beads/issues.jsonl", version)
		write(t, tracker, "agent "+version)
		write(t, filepath.Join(w.Path, "a"), version)
		commitAll(t, w, "step "+version)
		onMain(t, r, ".beads/issues.jsonl", "more "+version)
		c := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
		equal(t, "tree", value[string](t)(content.Tree(ctx, w)), c.Tree)
		equal(t, "in the tree", gitIn(t, r.Root, "show", c.Tree+":.beads/issues.jsonl"), "more "+strings.TrimSpace(version))
		equal(t, "in W", read(t, tracker), "agent "+version)
	}
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))), land.Squash))
	equal(t, "files that landed", gitIn(t, r.Root, "diff", "--name-only", "main^", "main"), "a")
}

func TestIntegrateNeedsCommit(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "not committed")
	onMain(t, r, "file1.txt", "theirs\n")
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	equal(t, "files", strings.Join(wantError[*integrate.DirtyError](t, err).Files, " "), "file0.txt")
}

func TestIntegrateRescuesIgnoredFilesInTheWay(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "x.log"), "only here")
	write(t, filepath.Join(w.Path, "build/deep/out"), "only here too")
	onMain(t, r, "x.log", "theirs")
	onMain(t, r, "build", "a file now")
	value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	equal(t, "file", read(t, filepath.Join(w.Path, "x.log")), "theirs")
	equal(t, "file for directory", read(t, filepath.Join(w.Path, "build")), "a file now")
	rescues := value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))
	equal(t, "rescues", len(rescues), 1)
	equal(t, "rescued", rescued(t, r, rescues[0].Ref, "x.log"), "only here")
	equal(t, "rescued", rescued(t, r, rescues[0].Ref, "build/deep/out"), "only here too")
}

// An agent that continues to work during an interrupted integration loses nothing.
func TestSettleForgetsWhenWorkWentOn(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	onMain(t, r, "file1.txt", "theirs\n")
	onMain(t, r, "file2.txt", "theirs\n")
	tip := value[string](t)(w.Tip(ctx))
	must(t, file.WriteJSON(integrate.MovePath(w), integrate.Move{Old: tip, New: targetOf(r, t).Tip}))
	write(t, filepath.Join(w.Path, "file1.txt"), "theirs\n")
	write(t, filepath.Join(w.Path, "file2.txt"), "mine\n")
	_, err := integrate.Merge(ctx, w, targetOf(r, t))
	equal(t, "files", strings.Join(wantError[*integrate.DirtyError](t, err).Files, " "), "file1.txt file2.txt")
	equal(t, "kept", read(t, filepath.Join(w.Path, "file2.txt")), "mine\n")
	_, err = os.Lstat(integrate.MovePath(w))
	wantIs(t, err, os.ErrNotExist)
}
