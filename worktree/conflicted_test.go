package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// change writes files below dir. The content "" deletes a file, and "->x" creates a link to x.
func change(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.RemoveAll(path))
		if target, isLink := strings.CutPrefix(content, "->"); isLink {
			must(t, os.Symlink(target, path))
		} else if content != "" {
			write(t, path, content)
		}
	}
}

// clash creates a repository in which the task and the target changed files differently.
func clash(t *testing.T, base, ours, theirs map[string]string) (*repo.Repo, *repo.Worktree) {
	t.Helper()
	r := sample(t)
	commit := func(files map[string]string) {
		change(t, r.Root, files)
		gitIn(t, r.Root, "add", "-A", "--", ".", ":!.coven")
		gitIn(t, r.Root, "commit", "-q", "--allow-empty", "-m", "target")
	}
	commit(base)
	w := add(t, r, "T")
	change(t, w.Path, ours)
	commitAll(t, w, "task")
	commit(theirs)
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	_ = wantError[*integrate.ConflictError](t, err)
	return r, w
}

func finish(t *testing.T, w *repo.Worktree, c integrate.Conflicted) (commit.Commit, error) {
	t.Helper()
	return commit.Create(t.Context(), w, commit.Request{Message: "resolve", TargetTip: c.TargetTip, Merge: c.TargetTip})
}

func TestIntegrateConflicted(t *testing.T) {
	r, w := clash(t, nil,
		map[string]string{"file0.txt": "one\nmine\nthree 0\n", "file2.txt": "mine\n", "mine.txt": "mine\n"},
		map[string]string{
			"file0.txt": "one\ntheirs\nthree 0\n", "file3.txt": "theirs\n", "new/theirs.txt": "theirs\n",
			".beads/issues.jsonl": "v2\n", "file1.txt": "",
		})
	ctx := t.Context()
	tip, head := value[string](t)(w.Tip(ctx)), gitIn(t, w.Path, "rev-parse", "HEAD")
	write(t, filepath.Join(w.Path, "x.log"), "ignored")
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
	equal(t, "files", strings.Join(c.Files, " "), "file0.txt")
	equal(t, "target", c.TargetTip, targetOf(r, t).Tip)
	equal(t, "notes", strings.Join(c.Notes, "|"), "CONFLICT (content): Merge conflict in file0.txt")
	want := "one\n<<<<<<< coven/T\nmine\n=======\ntheirs\n>>>>>>> main\nthree 0\n"
	equal(t, "markers", read(t, filepath.Join(w.Path, "file0.txt")), want)
	equal(t, "ours", read(t, filepath.Join(w.Path, "file2.txt")), "mine\n")
	equal(t, "theirs", read(t, filepath.Join(w.Path, "new/theirs.txt")), "theirs\n")
	equal(t, "tracker", read(t, filepath.Join(w.Path, ".beads/issues.jsonl")), "v2\n")
	equal(t, "deleted", exists(filepath.Join(w.Path, "file1.txt")), false)
	equal(t, "ignored", read(t, filepath.Join(w.Path, "x.log")), "ignored")
	equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)
	equal(t, "HEAD", gitIn(t, w.Path, "rev-parse", "HEAD"), head)
	equal(t, "unmerged", gitIn(t, w.Path, "diff", "--name-only", "--diff-filter=U"), "file0.txt")

	_, err := finish(t, w, c)
	equal(t, "unresolved", strings.Join(wantError[*integrate.UnresolvedError](t, err).Files, " "), "file0.txt")
	_, err = commit.Create(ctx, w, commit.Request{Message: "not a merge", TargetTip: c.TargetTip})
	_ = wantError[*integrate.UnresolvedError](t, err)
	equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)

	write(t, filepath.Join(w.Path, "file0.txt"), "one\nboth\nthree 0\n")
	done := value[commit.Commit](t)(finish(t, w, c))
	equal(t, "parents", gitIn(t, r.Root, "log", "-1", "--format=%P", done.Oid), tip+" "+c.TargetTip)
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	candidate := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	equal(t, "nothing left to merge", candidate.Tip, done.Oid)
	equal(t, "against the target", gitIn(t, r.Root, "diff", "--name-only", "main", done.Oid), "file0.txt\nfile2.txt\nmine.txt")
	landed := value[integrate.Landing](t)(landTask(t, w, candidate, land.Squash))
	equal(t, "landed", gitIn(t, r.Root, "show", landed.New+":file0.txt"), "one\nboth\nthree 0")
	equal(t, "forgotten", exists(integrate.ConflictedPath(w)), false)
}

// Each kind of conflict: the files in the worktree, the additional files, and how its resolution is
// detected.
func TestConflictKinds(t *testing.T) {
	oneAtATime(t)
	ten := strings.Repeat("a line\n", 10)
	cases := map[string]struct {
		base, ours, theirs map[string]string
		files              string            // in conflict
		inW                map[string]string // afterwards; "" means no file
		open               string            // files that Commit refuses at first
		resolve            map[string]string
	}{
		"both added": {
			ours: map[string]string{"n": "mine\n"}, theirs: map[string]string{"n": "theirs\n"},
			files: "n", inW: map[string]string{"n": "<<<<<<< coven/T\nmine\n=======\ntheirs\n>>>>>>> main\n"},
			open: "n", resolve: map[string]string{"n": "mine\n"},
		},
		"binary": {
			base: map[string]string{"b": "x\x00y"}, ours: map[string]string{"b": "x\x00m"}, theirs: map[string]string{"b": "x\x00t"},
			files: "b", inW: map[string]string{"b": "x\x00m", "b~main": "x\x00t"},
			open: "b~main", resolve: map[string]string{"b~main": ""},
		},
		"binary, the name beside is taken": {
			base: map[string]string{"b": "x\x00y", "b~main": "taken"},
			ours: map[string]string{"b": "x\x00m"}, theirs: map[string]string{"b": "x\x00t"},
			files: "b", inW: map[string]string{"b": "x\x00m", "b~main": "taken", "b~main_0": "x\x00t"},
			open: "b~main_0", resolve: map[string]string{"b~main_0": "", "b": "x\x00t"},
		},
		"links": {
			base: map[string]string{"l": "->a"}, ours: map[string]string{"l": "->mine"}, theirs: map[string]string{"l": "->theirs"},
			files: "l", inW: map[string]string{"l": "->mine", "l~main": "->theirs"},
			open: "l~main", resolve: map[string]string{"l~main": "", "l": "->theirs"},
		},
		"deleted by the target": {
			ours: map[string]string{"file0.txt": "mine\n"}, theirs: map[string]string{"file0.txt": ""},
			files: "file0.txt", inW: map[string]string{"file0.txt": "mine\n"}, resolve: map[string]string{"file0.txt": ""},
		},
		"deleted by the task": {
			ours: map[string]string{"file0.txt": ""}, theirs: map[string]string{"file0.txt": "theirs\n"},
			files: "file0.txt", inW: map[string]string{"file0.txt": "theirs\n"},
		},
		"renamed differently": {
			base: map[string]string{"r": ten}, ours: map[string]string{"r": "", "r1": ten}, theirs: map[string]string{"r": "", "r2": ten},
			files: "r r1 r2", inW: map[string]string{"r": "", "r1": ten, "r2": ten}, resolve: map[string]string{"r2": ""},
		},
		"renamed and deleted": {
			base: map[string]string{"r": ten}, ours: map[string]string{"r": "", "r1": ten + "x\n"}, theirs: map[string]string{"r": ""},
			files: "r1", inW: map[string]string{"r": "", "r1": ten + "x\n"},
		},
		"a file where the target has a directory": {
			base: map[string]string{"d/z": ten}, ours: map[string]string{"d": "now a file\n"}, theirs: map[string]string{"d/z": ten + "more\n"},
			files: "d/z d~coven_T", inW: map[string]string{"d/z": ten + "more\n", "d~coven_T": "now a file\n"},
			open: "d~coven_T", resolve: map[string]string{"d": "now a file\n", "d~coven_T": ""},
		},
		"a link where the target has a file": {
			base: map[string]string{"f": "f\n"}, ours: map[string]string{"f": "->x"}, theirs: map[string]string{"f": "theirs\n"},
			files: "f f~main", inW: map[string]string{"f": "->x", "f~main": "theirs\n"},
			open: "f~main", resolve: map[string]string{"f~main": ""},
		},
		"markers of another size": {
			base: map[string]string{".gitattributes": "* conflict-marker-size=12\n"},
			ours: map[string]string{"n": "mine\n"}, theirs: map[string]string{"n": "theirs\n"}, files: "n",
			inW:  map[string]string{"n": "<<<<<<<<<<<< coven/T\nmine\n============\ntheirs\n>>>>>>>>>>>> main\n"},
			open: "n", resolve: map[string]string{"n": "both\n"},
		},
		"a side with markers of its own": {
			base: map[string]string{"n": "before\n<<<<<<< a\n=======\n>>>>>>> b\n"},
			ours: map[string]string{"n": "<<<<<<< a\n=======\n>>>>>>> b\n"}, theirs: map[string]string{"n": "theirs\n"}, files: "n",
			open: "n", resolve: map[string]string{"n": "<<<<<<< a\n=======\n>>>>>>> b\n"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := clash(t, c.base, c.ours, c.theirs)
			got := value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s"))
			equal(t, "files", strings.Join(got.Files, " "), c.files)
			holds(t, w.Path, c.inW)
			if len(got.Notes) == 0 {
				t.Error("no notes")
			}
			if c.open != "" {
				_, err := finish(t, w, got)
				equal(t, "open", strings.Join(wantError[*integrate.UnresolvedError](t, err).Files, " "), c.open)
			}
			change(t, w.Path, c.resolve)
			done := value[commit.Commit](t)(finish(t, w, got))
			candidate := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
			equal(t, "nothing left to merge", candidate.Tip, done.Oid)
			holds(t, w.Path, c.resolve)
		})
	}
}

func holds(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, want := range files {
		path, got := filepath.Join(dir, name), ""
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
			got = "->" + value[string](t)(os.Readlink(path))
		} else if err == nil {
			got = read(t, path)
		}
		equal(t, name, got, want)
	}
}

func TestConflictedSubmodule(t *testing.T) {
	lib, r := sample(t), sample(t)
	gitIn(t, r.Root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", lib.Root, "sub")
	gitIn(t, r.Root, "commit", "-qm", "submodule")
	w := add(t, r, "T")
	bump := func(dir, name string) {
		onMain(t, lib, name, name)
		gitIn(t, dir, "update-index", "--cacheinfo", "160000,"+targetOf(lib, t).Tip+",sub")
		gitIn(t, dir, "commit", "-qm", "bump")
		gitIn(t, lib.Root, "reset", "-q", "--hard", "HEAD~1")
	}
	bump(w.Path, "a")
	bump(r.Root, "b")
	before := status(t, w.Path)
	_, err := integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s")
	equal(t, "files", strings.Join(wantError[*integrate.ConflictError](t, err).Files, " "), "sub")
	equal(t, "worktree", status(t, w.Path), before)
	equal(t, "recorded", exists(integrate.ConflictedPath(w)), false)
}

func TestConflictedRefusals(t *testing.T) {
	r, w := clash(t, nil, map[string]string{"file0.txt": "mine\n"}, map[string]string{"file0.txt": "theirs\n"})
	ctx := t.Context()
	write(t, filepath.Join(w.Path, "file5.txt"), "dirty\n")
	_, err := integrate.MergeConflicted(ctx, w, targetOf(r, t), "s")
	equal(t, "dirty", strings.Join(wantError[*integrate.DirtyError](t, err).Files, " "), "file5.txt")
	gitIn(t, w.Path, "checkout", "-q", "file5.txt")

	onMain(t, r, "file0.txt", "one\ntwo\nthree 0\n") // the target reverts its change
	before := contents(t, w.Path)
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
	equal(t, "no conflict any more", len(c.Files), 0)
	equal(t, "worktree", contents(t, w.Path), before)
	value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
}

// Without MergeConflicted, Commit finds the conflicts itself. A merge that changes nothing is still a
// merge.
func TestCommitMerge(t *testing.T) {
	r, w := clash(t, nil, map[string]string{"file0.txt": "mine\n"}, map[string]string{"file0.txt": "theirs\n"})
	ctx := t.Context()
	tip, theirs := value[string](t)(w.Tip(ctx)), targetOf(r, t).Tip
	request := commit.Request{Message: "resolve", TargetTip: theirs, Merge: theirs}
	write(t, filepath.Join(w.Path, "file0.txt"), "<<<<<<< x\nmine\n=======\ntheirs\n>>>>>>> y\n")
	_, err := commit.Create(ctx, w, request)
	equal(t, "files", strings.Join(wantError[*integrate.UnresolvedError](t, err).Files, " "), "file0.txt")
	write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
	done := value[commit.Commit](t)(commit.Create(ctx, w, request))
	equal(t, "empty", done.Empty, false)
	equal(t, "parents", gitIn(t, r.Root, "log", "-1", "--format=%P", done.Oid), tip+" "+theirs)
	equal(t, "tree", done.Tree, gitIn(t, r.Root, "rev-parse", tip+"^{tree}"))
	equal(t, "integrated", value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))).Tip, done.Oid)
	again := value[commit.Commit](t)(commit.Create(ctx, w, request))
	equal(t, "again", again.Empty, true)
	_, err = commit.Create(ctx, w, commit.Request{Message: "m", Merge: "no-such-commit"})
	if err == nil {
		t.Fatal("merged a commit that does not exist")
	}
}

// Files that a merge brings in from the target are not suspect. The task's own files still are.
func TestCommitMergeSuspects(t *testing.T) {
	r, w := clash(t, nil, map[string]string{"file0.txt": "mine\n"}, map[string]string{"file0.txt": "theirs\n", ".env": "A=1"})
	c := value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s"))
	write(t, filepath.Join(w.Path, "file0.txt"), "both\n")
	write(t, filepath.Join(w.Path, "id_rsa"), "x")
	_, err := finish(t, w, c)
	equal(t, "suspect", wantError[*commit.SuspectError](t, err).Files[0].Path, "id_rsa")
	must(t, os.Remove(filepath.Join(w.Path, "id_rsa")))
	value[commit.Commit](t)(finish(t, w, c))
}

// An ignored file in the way of one of the target's is stored first.
func TestConflictedKeepsIgnoredFiles(t *testing.T) {
	r, w := clash(t, nil, map[string]string{"file0.txt": "mine\n"}, map[string]string{"file0.txt": "theirs\n"})
	onMain(t, r, "x.log", "theirs\n")
	write(t, filepath.Join(w.Path, "x.log"), "only here\n")
	value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s"))
	equal(t, "theirs", read(t, filepath.Join(w.Path, "x.log")), "theirs\n")
	rescues := value[[]rescue.Info](t)(rescue.List(t.Context(), r, "T"))
	equal(t, "rescued", rescued(t, r, rescues[0].Ref, "x.log"), "only here")
}

func TestConflictedLabels(t *testing.T) {
	for _, branch := range []string{"release/1", "HEAD", "config", "objects"} {
		r := sample(t)
		gitIn(t, r.Root, "update-ref", "refs/heads/"+branch, "main")
		w := add(t, r, "T")
		write(t, filepath.Join(w.Path, "file0.txt"), "mine\n")
		commitAll(t, w, "task")
		gitIn(t, r.Root, "checkout", "-q", "--detach")
		write(t, filepath.Join(r.Root, "file0.txt"), "theirs\n")
		gitIn(t, r.Root, "commit", "-qam", "target")
		gitIn(t, r.Root, "update-ref", "refs/heads/"+branch, gitIn(t, r.Root, "rev-parse", "HEAD"))
		target := value[repo.Target](t)(r.Target(t.Context(), branch))
		c := value[integrate.Conflicted](t)(integrate.MergeConflicted(t.Context(), w, target, "s"))
		text := read(t, filepath.Join(w.Path, "file0.txt"))
		if branch == "release/1" && !strings.Contains(text, ">>>>>>> release/1\n") {
			t.Errorf("no label in %q", text)
		}
		equal(t, branch, integrate.HasMarkers([]byte(text)), true)
		_, err := finish(t, w, c)
		_ = wantError[*integrate.UnresolvedError](t, err)
	}
}

func TestHasMarkers(t *testing.T) {
	cases := map[string]bool{
		"<<<<<<< a\n=======\n>>>>>>> b\n":                      true,
		"<<<<<<< a\r\nx\r\n=======\r\ny\r\n>>>>>>> b\r\n":      true,
		"<<<<<<< a\nx\n||||||| base\ny\n=======\nz\n>>>>>>> b": true,
		"text\n=======\n<<<<<<< a\n>>>>>>> b\n":                false,
		"Heading\n=======\ntext\n":                             false,
		"<<<<<<< a\n=======\n":                                 false,
		" <<<<<<< a\n=======\n>>>>>>> b\n":                     false,
		"<<<<<<<\n=======\n>>>>>>>\n":                          false,
		"<<<<<< a\n======\n>>>>>> b\n":                         false,
		"":                                                     false,
	}
	for text, want := range cases {
		equal(t, text, integrate.HasMarkers([]byte(text)), want)
	}
}

// Killed at any point, the merge succeeds after restoring the snapshot and calling it again.
func TestConflictedSurvivesKill(t *testing.T) {
	for _, point := range []string{"conflicted.recorded", "conflicted.worktree", "conflicted.return"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r, w := clash(t, nil,
				map[string]string{"file0.txt": "mine\n", "b": "\x00m"}, map[string]string{"file0.txt": "theirs\n", "b": "\x00t", "n": "n"})
			ctx := t.Context()
			tip := value[string](t)(w.Tip(ctx))
			s := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "before the merge"))
			killAt(t, actorCommand(r.Root, "T", point, ""), point)
			equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)
			value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", s.Commit))
			c := value[integrate.Conflicted](t)(integrate.MergeConflicted(ctx, w, targetOf(r, t), "s"))
			if want := []string{"b", "file0.txt"}; !slices.Equal(c.Files, want) {
				t.Fatalf("got %q, want %q", c.Files, want)
			}
			equal(t, "markers", integrate.HasMarkers([]byte(read(t, filepath.Join(w.Path, "file0.txt")))), true)
			change(t, w.Path, map[string]string{"file0.txt": "both\n", "b~main": ""})
			done := value[commit.Commit](t)(finish(t, w, c))
			equal(t, "integrated", value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))).Tip, done.Oid)
			noLocks(t, r.GitDir)
		})
	}
}
