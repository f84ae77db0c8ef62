package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

func TestSnapshotLeavesGitAlone(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "staged\n")
	gitIn(t, w.Path, "stash")
	write(t, filepath.Join(w.Path, "file1.txt"), "staged\n")
	gitIn(t, w.Path, "add", "file1.txt")
	write(t, filepath.Join(w.Path, "untracked.txt"), "untracked\n")
	write(t, filepath.Join(w.Path, "x.log"), "ignored\n")
	look := func() string {
		return status(t, w.Path) + gitIn(t, w.Path, "stash", "list") + gitIn(t, w.Path, "rev-parse", "HEAD") +
			gitIn(t, w.Path, "for-each-ref", "refs/heads")
	}
	before := look()
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "2026-01-01-x", "before edit"))
	equal(t, "git", look(), before)
	equal(t, "number", first.N, 1)
	equal(t, "untracked", gitIn(t, r.Root, "show", first.Tree+":untracked.txt"), "untracked")
	equal(t, "ignored", gitIn(t, r.Root, "ls-tree", "--name-only", first.Tree, "x.log"), "")
	same := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "2026-01-01-x", "again"))
	equal(t, "unchanged", same.Commit, first.Commit)
	write(t, filepath.Join(w.Path, "untracked.txt"), "changed\n")
	second := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "2026-01-01-x", "two\nlines"))
	equal(t, "parent", gitIn(t, r.Root, "rev-parse", second.Commit+"^"), first.Commit)
	all := value[[]snapshot.Snapshot](t)(snapshot.List(ctx, w.Repo, "2026-01-01-x"))
	equal(t, "count", len(all), 2)
	equal(t, "note", all[1].Note, "two\nlines")
	refs := gitIn(t, r.Root, "for-each-ref", "--format=%(refname)", "refs/coven/snapshots")
	equal(t, "refs", refs, "refs/coven/snapshots/2026-01-01-x")
	_, err := snapshot.Revert(ctx, w, "2026-01-01-x", 9)
	wantIs(t, err, snapshot.ErrNone)
	_, err = snapshot.Revert(ctx, w, "other", 1)
	wantIs(t, err, snapshot.ErrNone)
}

func TestRevert(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	must(t, os.Symlink("file0.txt", filepath.Join(w.Path, "link")))
	write(t, filepath.Join(w.Path, "untracked\n😀"), "untracked")
	must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o755))
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	before := contents(t, w.Path)

	must(t, os.Remove(filepath.Join(w.Path, "link")))
	write(t, filepath.Join(w.Path, "link/now/a/dir"), "x")
	must(t, os.RemoveAll(filepath.Join(w.Path, "dir")))
	write(t, filepath.Join(w.Path, "dir"), "now a file")
	write(t, filepath.Join(w.Path, "untracked\n😀"), "changed")
	must(t, os.Chmod(filepath.Join(w.Path, "file2.txt"), 0o644))
	write(t, filepath.Join(w.Path, "created/later"), "x")
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-qm", "the agent's own")
	after, head := contents(t, w.Path), gitIn(t, w.Path, "rev-parse", "HEAD")

	saved := value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", 1))
	equal(t, "content", contents(t, w.Path), before)
	equal(t, "directory created later", exists(filepath.Join(w.Path, "created")), false)
	equal(t, "HEAD", gitIn(t, w.Path, "rev-parse", "HEAD"), head)
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", saved.N))
	equal(t, "undone", contents(t, w.Path), after)
}

// Line endings that git would convert are restored unchanged.
func TestRevertIsByteForByte(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	onMain(t, r, ".gitattributes", "*.txt text=auto\n*.win text eol=crlf\n*.id ident\n")
	onMain(t, r, "a.win", "one\r\ntwo\r\n")
	onMain(t, r, "a.id", "$Id$\n")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "one\r\ntwo\r\n")
	write(t, filepath.Join(w.Path, "a.win"), "one\ntwo\r\n")
	write(t, filepath.Join(w.Path, "a.id"), "$Id: mine $\n")
	before := contents(t, w.Path)
	s := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	for _, name := range []string{"file0.txt", "a.win", "a.id", "file1.txt"} {
		write(t, filepath.Join(w.Path, name), "changed\n")
	}
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", s.N))
	equal(t, "content", contents(t, w.Path), before)
	c := commitAll(t, w, "commits do convert")
	equal(t, "committed", gitIn(t, r.Root, "show", c.Oid+":file0.txt"), "one\ntwo")
}

// Changes of ignore rules between snapshots do not lose content.
func TestRevertAcrossIgnoreRules(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "cache/x"), "cached")
	write(t, filepath.Join(w.Path, "y.log"), "ignored then and now")
	write(t, filepath.Join(w.Path, ".gitignore"), "*.log\ncache/\n")
	write(t, filepath.Join(w.Path, "z"), "first")
	first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "cache ignored"))
	write(t, filepath.Join(w.Path, ".gitignore"), "*.log\nz\n")
	write(t, filepath.Join(w.Path, "z"), "ignored now, and only here")
	saved := value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", first.N))
	equal(t, "z", read(t, filepath.Join(w.Path, "z")), "first")
	equal(t, "cache", read(t, filepath.Join(w.Path, "cache/x")), "cached")
	equal(t, "log", read(t, filepath.Join(w.Path, "y.log")), "ignored then and now")
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", saved.N))
	equal(t, "z again", read(t, filepath.Join(w.Path, "z")), "ignored now, and only here")
}

func TestRestoreCommit(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	onMain(t, r, ".gitattributes", "*.win text eol=crlf\n")
	onMain(t, r, "a.win", "one\r\n")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a.win"), "changed\r\n")
	write(t, filepath.Join(w.Path, "later"), "x")
	write(t, filepath.Join(w.Path, ".beads/issues.jsonl"), "agent\n")
	before := contents(t, w.Path)
	saved := value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", "main"))
	equal(t, "converted", read(t, filepath.Join(w.Path, "a.win")), "one\r\n")
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	value[snapshot.Snapshot](t)(snapshot.Restore(ctx, w, "s", saved.Commit))
	equal(t, "undone", contents(t, w.Path), before)
}

func TestSnapshotsAtOnce(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			path := filepath.Join(w.Path, fmt.Sprintf("by-%d", i))
			if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
				t.Error(err)
			}
			if _, err := snapshot.Take(t.Context(), w, "s", "n"); err != nil {
				t.Error(err)
			}
			if _, err := content.Tree(t.Context(), w); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for i, s := range value[[]snapshot.Snapshot](t)(snapshot.List(t.Context(), w.Repo, "s")) {
		equal(t, "number", s.N, i+1)
	}
	equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), value[string](t)(content.Tree(t.Context(), w)))
	noLocks(t, r.GitDir)
}

// After any changes to a worktree, a revert restores every byte, and a second one undoes it.
func TestRevertProperty(t *testing.T) {
	oneAtATime(t)
	r := sample(t)
	w := add(t, r, "T")
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		session := fmt.Sprintf("s%d", round)
		edits(rt, w.Path)
		first := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, session, "first"))
		before := visible(t, w)
		edits(rt, w.Path)
		after, log := visible(t, w), ignoredLog(w)
		saved := value[snapshot.Snapshot](t)(snapshot.Revert(t.Context(), w, session, first.N))
		if got := visible(t, w); got != before {
			rt.Fatalf("after the revert:\n%s\nwant:\n%s", got, before)
		}
		if got := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, session, "again")); got.Tree != first.Tree {
			rt.Fatalf("tree %s, want %s", got.Tree, first.Tree)
		}
		value[snapshot.Snapshot](t)(snapshot.Revert(t.Context(), w, session, saved.N))
		if got := visible(t, w); got != after {
			rt.Fatalf("after the second revert:\n%s\nwant:\n%s", got, after)
		}
		if got := ignoredLog(w); got != log {
			rt.Fatalf("the ignored file is %q, want %q", got, log)
		}
	})
}

// visible returns the content of the worktree that is not ignored, as files and as seen by git.
func visible(t *testing.T, w *repo.Worktree) string {
	t.Helper()
	var files strings.Builder
	for line := range strings.Lines(contents(t, w.Path)) {
		if !strings.HasPrefix(line, "x.log ") {
			files.WriteString(line)
		}
	}
	return files.String() + value[string](t)(content.Tree(t.Context(), w))
}

// ignoredLog returns the ignored file, which reverts do not change.
func ignoredLog(w *repo.Worktree) string {
	name := filepath.Join(w.Path, "x.log")
	raw, err := os.ReadFile(name)
	link, linkErr := os.Readlink(name)
	return fmt.Sprint(string(raw), err == nil, link, linkErr == nil)
}

// edits makes a few random changes in a directory.
func edits(rt *rapid.T, top string) {
	names := []string{"file0.txt", "file1.txt", "dir", "dir/deep", "dir/deep/x.txt", "a", "a/b", "a/b/c", "a b\n", "x.log"}
	for range rapid.IntRange(1, 6).Draw(rt, "edits") {
		name := filepath.Join(top, rapid.SampledFrom(names).Draw(rt, "name"))
		if !clear(top, name) {
			continue
		}
		var err error
		switch rapid.SampledFrom([]string{"write", "write", "execute", "link", "delete"}).Draw(rt, "edit") {
		case "write":
			err = os.WriteFile(name, []byte(rapid.SampledFrom([]string{"", "1\n", "2\n", "a\r\n"}).Draw(rt, "content")), 0o644)
		case "execute":
			err = os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755)
		case "link":
			err = os.Symlink(rapid.SampledFrom([]string{"a", "../x", "nowhere"}).Draw(rt, "to"), name)
		}
		if err != nil {
			rt.Fatal(err)
		}
	}
}

// clear makes room for a new file, unless an ignored file would be deleted, which a revert need not
// restore.
func clear(top, name string) bool {
	if strings.HasSuffix(name, ".log") && exists(name) {
		return false
	}
	for dir := filepath.Dir(name); dir != top; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			return false
		}
	}
	return os.RemoveAll(name) == nil && os.MkdirAll(filepath.Dir(name), 0o755) == nil
}

// An index that was damaged by a power failure is created again.
func TestDamagedIndex(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	first := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "S", "first"))
	for name, damage := range map[string]func(path string) error{
		"empty":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"zeros":     func(path string) error { return os.WriteFile(path, make([]byte, 1000), 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, kept := range []string{content.SnapshotIndex, content.CommitIndex} {
				must(t, os.RemoveAll(w.StatePath(kept)))
				must(t, damage(w.StatePath(kept)))
			}
			equal(t, "the snapshot", value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "S", "again")).Tree, first.Tree)
			value[string](t)(content.Tree(t.Context(), w))
		})
	}
}

// A named pipe in place of one of git's own files counts as an empty file. git itself would wait until another process
// writes to the pipe.
func TestPipesOfAgents(t *testing.T) {
	r := sample(t)
	for _, name := range []string{".gitignore", "dir/.gitattributes", ".gitmodules", "sub/.git/HEAD"} {
		t.Run(name, func(t *testing.T) {
			w := add(t, r, "T"+strings.ReplaceAll(name, "/", "-"))
			if strings.HasPrefix(name, "sub/") {
				gitIn(t, w.Path, "init", "-q", "sub")
			}
			must(t, os.RemoveAll(filepath.Join(w.Path, name)))
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(w.Path, name)), 0o755))
			must(t, syscall.Mkfifo(filepath.Join(w.Path, name), 0o600))
			write(t, filepath.Join(w.Path, "dir/new"), "new\n")
			s := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
			equal(t, "new file", gitIn(t, r.Root, "show", s.Tree+":dir/new"), "new")
			c := commitAll(t, w, "m")
			equal(t, "new file", gitIn(t, r.Root, "show", c.Tree+":dir/new"), "new")
			value[string](t)(rescue.Take(t.Context(), w, "m", true))
		})
	}
}
