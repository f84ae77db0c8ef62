package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestRemoveRescuesEverything(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "committed"), "c")
	c := commitAll(t, w, "work")
	write(t, filepath.Join(w.Path, "file0.txt"), "changed\r\n")
	write(t, filepath.Join(w.Path, "untracked\n"), "u")
	write(t, filepath.Join(w.Path, "x.log"), "ignored")
	write(t, filepath.Join(w.Path, "build/deep/out"), "ignored")
	must(t, os.Symlink("nowhere", filepath.Join(w.Path, "build/link")))
	write(t, filepath.Join(r.Root, "copy.log"), "from the main checkout")
	write(t, filepath.Join(w.Path, "copy.log"), "from the main checkout")
	gitIn(t, w.Path, "init", "-q", "nested")
	write(t, filepath.Join(w.Path, "nested/a"), "a")
	gitIn(t, filepath.Join(w.Path, "nested"), "add", "-A")
	gitIn(t, filepath.Join(w.Path, "nested"), "commit", "-qm", "only here")
	inside := gitIn(t, filepath.Join(w.Path, "nested"), "rev-parse", "HEAD")
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "")) // an index that contains nested
	gitIn(t, w.Path, "checkout", "-q", "--detach")
	gitIn(t, w.Path, "commit", "-q", "--allow-empty", "-m", "off the branch")
	detached := gitIn(t, w.Path, "rev-parse", "HEAD")

	ref := value[string](t)(Remove(ctx, w, RemoveRequest{Note: "rejected"}))
	equal(t, "ref", ref, "refs/coven/rescue/T/1")
	equal(t, "parents", gitIn(t, r.Root, "log", "-1", "--format=%P", ref), c.Oid)
	equal(t, "detached", unbundled(t, r, ref), detached)
	for name, want := range map[string]string{
		"file0.txt": "changed\r", "untracked\n": "u", "x.log": "ignored", "build/deep/out": "ignored",
		"build/link": "nowhere", "nested/a": "a", "committed": "c",
	} {
		equal(t, name, rescued(t, r, ref, name), want)
	}
	files := rescuedFiles(t, r, ref)
	object := "nested/" + rescue.GitDirName + "/objects/" + inside[:2] + "/" + inside[2:]
	if !strings.Contains(files, object) || strings.Contains(files, "copy.log") {
		t.Fatalf("rescued files:\n%s", files)
	}
	equal(t, "gone", exists(w.Path), false)
	rescues := value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))
	equal(t, "rescues", len(rescues), 1)
	equal(t, "note", rescues[0].Note, "rejected")

	again := add(t, r, "T")
	equal(t, "second", value[string](t)(rescue.Take(ctx, again, "n", false)), "refs/coven/rescue/T/2")
}

func TestRemoveLargeIgnoredFiles(t *testing.T) {
	oneAtATime(t)
	cases := map[string]struct {
		request RemoveRequest
		stored  bool
	}{
		"keep":          {RemoveRequest{KeepBig: true}, true},
		"drop":          {RemoveRequest{DropIgnored: true}, false},
		"keep, landed":  {RemoveRequest{KeepBig: true, Landed: "x"}, true},
		"drop, landed":  {RemoveRequest{DropIgnored: true, Landed: "x"}, false},
		"keep and drop": {RemoveRequest{KeepBig: true, DropIgnored: true}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			ctx := t.Context()
			w := add(t, r, "T")
			write(t, filepath.Join(w.Path, "build/big"), strings.Repeat("0123456789", 1<<20+1))
			write(t, filepath.Join(w.Path, "small.log"), "small")
			_, err := Remove(ctx, w, RemoveRequest{Landed: c.request.Landed})
			equal(t, "files", strings.Join(wantError[*rescue.IgnoredError](t, err).Files, " "), "build/ small.log")
			equal(t, "still there", exists(filepath.Join(w.Path, "build/big")), true)
			equal(t, "branch", value[string](t)(w.Tip(ctx)), targetOf(r, t).Tip)
			ref := value[string](t)(Remove(ctx, w, c.request))
			if c.stored {
				equal(t, "stored", strings.Contains(rescuedFiles(t, r, ref), "build/big\n"), true)
			} else if ref != "" {
				equal(t, "rescued", strings.Contains(rescuedFiles(t, r, ref), "build"), false)
			}
			equal(t, "gone", exists(w.Path), false)
		})
	}
}

func TestRemoveLandedKeepsWhatDidNotLand(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	write(t, filepath.Join(w.Path, "later"), "x")
	ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	equal(t, "rescued", rescued(t, r, ref, "later"), "x")
}

// A remote may keep the work: that of a snapshot, or of the tip.
func TestRemoveKept(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(w *repo.Worktree)
		rescues bool
	}{
		"snapshot":    {func(*repo.Worktree) {}, false},
		"tip":         {func(w *repo.Worktree) { must(t, os.Remove(filepath.Join(w.Path, "new"))) }, false},
		"other files": {func(w *repo.Worktree) { write(t, filepath.Join(w.Path, "new"), "2") }, true},
		"commit":      {func(w *repo.Worktree) { commitAll(t, w, "more") }, true},
		"ignored":     {func(w *repo.Worktree) { write(t, filepath.Join(w.Path, "x.log"), "x") }, true},
		"staged": {func(w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "new"), "staged")
			gitIn(t, w.Path, "add", "new")
			write(t, filepath.Join(w.Path, "new"), "1")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w := add(t, r, "T")
			tip := value[string](t)(w.Tip(t.Context()))
			write(t, filepath.Join(w.Path, "new"), "1")
			tree := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", "")).Tree
			test.change(w)
			ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: tip, Tree: tree}))
			equal(t, "rescue", ref != "", test.rescues)
			equal(t, "gone", exists(w.Path), false)
		})
	}
}

// git omits directories whose paths are too long, as if they did not exist.
func TestRemoveUnreadable(t *testing.T) {
	r := pooled(t)
	w := add(t, r, "T")
	root := value[*os.Root](t)(os.OpenRoot(w.Path))
	for range 30 {
		must(t, root.Mkdir(strings.Repeat("d", 200), 0o755))
		below := value[*os.Root](t)(root.OpenRoot(strings.Repeat("d", 200)))
		must(t, root.Close())
		root = below
	}
	must(t, root.WriteFile("x.log", []byte("only here"), 0o644))
	must(t, root.Close())
	_, err := Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)})
	wantIs(t, err, syscall.ENAMETOOLONG)
	equal(t, "stays", exists(w.Path), true)
	equal(t, "parked", len(pool.List(r)), 0)
}

// A directory in place of the link to the worktree's git directory is stored like other git directories.
func TestRemoveGitDirectory(t *testing.T) {
	r := pooled(t)
	w := add(t, r, "T")
	must(t, os.Remove(filepath.Join(w.Path, ".git")))
	write(t, filepath.Join(w.Path, ".git", "x"), "only here")
	ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	equal(t, "stored", rescued(t, r, ref, rescue.GitDirName+"/x"), "only here")
}

func TestRemoveFailsWhole(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "only-here"), "x")
	// No rescue ref can be created below a ref of that name.
	gitIn(t, r.Root, "update-ref", "refs/coven/rescue/T", "main")
	if _, err := Remove(t.Context(), w, RemoveRequest{}); err == nil {
		t.Fatal("removed without a rescue")
	}
	equal(t, "file", read(t, filepath.Join(w.Path, "only-here")), "x")
	equal(t, "branch", value[string](t)(w.Tip(t.Context())), targetOf(r, t).Tip)
}

func TestRemoveReadOnlyDirectories(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "build/mod/a"), "x")
	must(t, os.Chmod(filepath.Join(w.Path, "build/mod"), 0o555))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
	entries := file.Directories(r.Place().Own)
	equal(t, "left", len(entries), 0)
}

// Adding and removing can be repeated after a kill at any point.
func TestAddAndRemoveSurviveKill(t *testing.T) {
	oneAtATime(t)
	points := []string{
		"add.recorded", "register.branch", "register.admin", "register.files", "register.linked", "add.registered", "add.filled",
		"remove.stored", "remove.trashed", "remove.unregistered", "remove.branch",
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ctx := t.Context()
			cmd := actorCommand(r.Root, "T", "add.", "")
			killAt(t, cmd, point)
			if strings.HasPrefix(point, "remove") {
				rescues := value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))
				equal(t, "rescued before", rescued(t, r, rescues[0].Ref, "work"), "work")
				if rest, err := Leftover(ctx, r, "T"); err == nil {
					value[string](t)(Remove(ctx, rest, RemoveRequest{Note: "again"}))
				}
			}
			w := add(t, r, "T")
			equal(t, "tree", value[string](t)(content.Tree(ctx, w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
			value[string](t)(Remove(ctx, w, RemoveRequest{Landed: landedTip(t, w)}))
			equal(t, "worktrees left", len(value[[]Info](t)(List(ctx, r))), 0)
			equal(t, "registrations left", len(value[[]string](t)(r.Admins())), 0)
			noLocks(t, r.GitDir)
		})
	}
}
