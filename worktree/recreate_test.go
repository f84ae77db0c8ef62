package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// deletions lists the ways in which a person or a program deletes a worktree.
func deletions() map[string]func(t *testing.T, r *repo.Repo, w *repo.Worktree) {
	return map[string]func(t *testing.T, r *repo.Repo, w *repo.Worktree){
		"rm -rf": func(t *testing.T, _ *repo.Repo, w *repo.Worktree) { must(t, os.RemoveAll(w.Path)) },
		"rm -rf of all worktrees": func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, os.RemoveAll(filepath.Dir(w.Path)))
		},
		"rm -rf and prune": func(t *testing.T, r *repo.Repo, w *repo.Worktree) {
			must(t, os.RemoveAll(w.Path))
			gitIn(t, r.Root, "worktree", "prune")
		},
		"git worktree remove": func(t *testing.T, r *repo.Repo, w *repo.Worktree) {
			gitIn(t, r.Root, "worktree", "remove", "--force", w.Path)
		},
		"all but the directory": func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, os.RemoveAll(w.Path))
			must(t, os.Mkdir(w.Path, 0o755))
		},
	}
}

// worked creates a task with commits by coven and by the agent, and a later state in a snapshot.
func worked(t *testing.T, r *repo.Repo) (*repo.Worktree, snapshot.Snapshot) {
	t.Helper()
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "file0.txt"), "committed\n")
	commitAll(t, w, "work")
	write(t, filepath.Join(w.Path, "own.txt"), "own\n")
	gitIn(t, w.Path, "add", "own.txt")
	gitIn(t, w.Path, "commit", "-qm", "the agent's own")
	write(t, filepath.Join(w.Path, "crlf.txt"), "one\r\ntwo\r\n")
	write(t, filepath.Join(w.Path, "odd\nname"), "\x00\xff")
	write(t, filepath.Join(w.Path, ".beads/issues.jsonl"), "the agent's\n")
	must(t, os.Symlink("nowhere", filepath.Join(w.Path, "link")))
	must(t, os.Chmod(filepath.Join(w.Path, "file3.txt"), 0o755))
	must(t, os.RemoveAll(filepath.Join(w.Path, "dir")))
	return w, value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", "before the step"))
}

func TestGone(t *testing.T) {
	for name, remove := range deletions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w, s := worked(t, r)
			ctx := t.Context()
			target := targetOf(r, t)
			tip := value[string](t)(w.Tip(ctx))
			c := integrate.Landing{Target: target, Old: target.Tip, Tip: tip, Tree: gitIn(t, r.Root, "rev-parse", tip+"^{tree}")}
			claim := claimFor(t, r, "T")
			remove(t, r, w)
			empty := exists(w.Path)
			operations := map[string]func() error{
				"Snapshot": func() error { _, err := snapshot.Take(ctx, w, "s", ""); return err },
				"Tree":     func() error { _, err := content.Tree(ctx, w); return err },
				"Diff":     func() error { _, err := diff.Of(ctx, w, "main"); return err },
				"Commit": func() error {
					_, err := commit.Create(ctx, w, commit.Request{Message: "m", TargetTip: target.Tip})
					return err
				},
				"Integrate": func() error { _, err := integrate.Merge(ctx, w, target); return err },
				"Restore":   func() error { _, err := snapshot.Restore(ctx, w, "s", "main"); return err },
				"Revert":    func() error { _, err := snapshot.Revert(ctx, w, "s", s.N); return err },
				"Find":      func() error { _, err := r.Find(ctx, "T"); return err },
				"Land": func() error {
					_, err := land.Land(ctx, w, land.Request{Landing: c, Message: "m", ClaimOid: claim.Oid, Journal: fileJournal{"/none"}})
					return err
				},
			}
			for what, operate := range operations {
				err := operate()
				wantIs(t, err, repo.ErrNoWorktree)
				if !strings.Contains(err.Error(), w.Path) {
					t.Errorf("%s does not say where: %v", what, err)
				}
				equal(t, what+" made a directory", exists(w.Path), empty)
			}
			equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)
			equal(t, "target", targetOf(r, t).Tip, target.Tip)
			equal(t, "snapshots", len(value[[]snapshot.Snapshot](t)(snapshot.List(ctx, w.Repo, "s"))), 1)
			noLocks(t, r.GitDir)
		})
	}
}

// A worktree in which the agent deleted every file is not a missing worktree.
func TestAllFilesDeleted(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	entries := value[[]os.DirEntry](t)(os.ReadDir(w.Path))
	for _, entry := range entries {
		if entry.Name() != ".git" {
			must(t, os.RemoveAll(filepath.Join(w.Path, entry.Name())))
		}
	}
	value[*repo.Worktree](t)(r.Find(t.Context(), "T"))
	s := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
	equal(t, "snapshot", gitIn(t, r.Root, "ls-tree", "-r", s.Tree), "")
	c := commitAll(t, w, "all gone")
	equal(t, "left", gitIn(t, r.Root, "ls-tree", "-r", "--name-only", c.Oid), ".beads/issues.jsonl")
}

// Removing a deleted worktree preserves the branch's commits.
func TestRemoveGone(t *testing.T) {
	for name, remove := range deletions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w, _ := worked(t, r)
			tip := value[string](t)(w.Tip(t.Context()))
			remove(t, r, w)
			rest := value[*repo.Worktree](t)(Leftover(t.Context(), r, "T"))
			ref := value[string](t)(Remove(t.Context(), rest, RemoveRequest{}))
			equal(t, "rescued", gitIn(t, r.Root, "rev-parse", ref+"^"), tip)
			equal(t, "left", len(value[[]Info](t)(List(t.Context(), r))), 0)
		})
	}
}

func TestRecreate(t *testing.T) {
	for name, remove := range deletions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w, s := worked(t, r)
			ctx := t.Context()
			before := contents(t, w.Path)
			tip, tree := value[string](t)(w.Tip(ctx)), value[string](t)(content.Tree(ctx, w))
			write(t, filepath.Join(w.Path, "x.log"), "ignored")
			remove(t, r, w)
			w, from, err := Recreate(ctx, r, "T", "s")
			must(t, err)
			equal(t, "snapshot", from.Commit, s.Commit)
			equal(t, "content", contents(t, w.Path), before)
			equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)
			equal(t, "tree", value[string](t)(content.Tree(ctx, w)), tree)
			equal(t, "HEAD", gitIn(t, w.Path, "symbolic-ref", "HEAD"), "refs/heads/coven/T")
			equal(t, "same as the snapshot", value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "")).Commit, s.Commit)
			equal(t, "registrations", len(value[[]string](t)(r.Admins())), 1)
			equal(t, "rescues", len(value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))), 0)
			value[*repo.Worktree](t)(r.Find(ctx, "T"))
			commitAll(t, w, "goes on")
			equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), " M .beads/issues.jsonl")
			value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t))), land.Squash))
		})
	}
}

// Commits after the newest snapshot take precedence over it.
func TestRecreateFromBranch(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w, _ := worked(t, r)
	write(t, filepath.Join(w.Path, "file4.txt"), "later\n")
	commitAll(t, w, "later")
	onMain(t, r, "file7.txt", "theirs\n")
	value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	tree := value[string](t)(content.Tree(ctx, w))
	must(t, os.RemoveAll(w.Path))
	w, from, err := Recreate(ctx, r, "T", "s")
	must(t, err)
	equal(t, "snapshot", from.N, 0)
	equal(t, "tree", value[string](t)(content.Tree(ctx, w)), tree)
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	must(t, os.RemoveAll(w.Path))
	w, _, err = Recreate(ctx, r, "T", "another session")
	must(t, err)
	equal(t, "tree", value[string](t)(content.Tree(ctx, w)), tree)

	// The same content on a branch that has moved is another snapshot.
	s := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "after"))
	equal(t, "tip", s.Tip, value[string](t)(w.Tip(ctx)))
	must(t, os.RemoveAll(w.Path))
	_, from, err = Recreate(ctx, r, "T", "s")
	must(t, err)
	equal(t, "snapshot", from.N, s.N)
}

// The branch is deleted as well, with or without coven's records.
func TestRecreateWithoutBranch(t *testing.T) {
	for _, forget := range []bool{false, true} {
		r := sample(t)
		ctx := t.Context()
		w, s := worked(t, r)
		before := contents(t, w.Path)
		tip := value[string](t)(w.Tip(ctx))
		gitIn(t, r.Root, "worktree", "remove", "--force", w.Path)
		gitIn(t, r.Root, "branch", "-qD", w.Branch)
		if forget {
			must(t, os.RemoveAll(w.StatePath()))
		}
		w, from, err := Recreate(ctx, r, "T", "s")
		must(t, err)
		equal(t, "snapshot", from.Commit, s.Commit)
		equal(t, "content", contents(t, w.Path), before)
		equal(t, "branch", value[string](t)(w.Tip(ctx)), tip)
	}
}

func TestRecreateRefusals(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	_, _, err := Recreate(ctx, r, "T", "s")
	wantIs(t, err, repo.ErrNoWorktree)
	equal(t, "nothing made", exists(r.Place().Own), false)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "only-here"), "x")
	_, _, err = Recreate(ctx, r, "T", "s")
	equal(t, "in the way", wantError[*LeftoverError](t, err).Path, w.Path)
	equal(t, "file", read(t, filepath.Join(w.Path, "only-here")), "x")
	must(t, os.RemoveAll(w.Path))
	write(t, w.Path, "a person's file")
	_, err = snapshot.Take(ctx, w, "s", "")
	wantIs(t, err, repo.ErrNoWorktree)
	_, _, err = Recreate(ctx, r, "T", "s")
	_ = wantError[*LeftoverError](t, err)
	equal(t, "file", read(t, w.Path), "a person's file")
}

// Content that only the registration of the deleted worktree reached.
func TestRecreateKeepsWhatTheRegistrationHad(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	w := add(t, r, "T")
	gitIn(t, w.Path, "checkout", "-q", "--detach")
	write(t, filepath.Join(w.Path, "a"), "detached\n")
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-qm", "off the branch")
	lost := gitIn(t, w.Path, "rev-parse", "HEAD")
	write(t, filepath.Join(w.Path, "b"), "staged\n")
	gitIn(t, w.Path, "add", "-A")
	must(t, os.RemoveAll(w.Path))
	_, _, err := Recreate(ctx, r, "T", "s")
	must(t, err)
	rescues := value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))
	equal(t, "rescues", len(rescues), 1)
	equal(t, "commit", unbundled(t, r, rescues[0].Ref), lost)
	equal(t, "staged", rescued(t, r, rescues[0].Ref, "b"), "staged")
}

// After a prune, git gives the registration's name to the next worktree.
func TestGoneLeavesOtherRegistrationsAlone(t *testing.T) {
	for _, again := range []bool{false, true} {
		r := sample(t)
		w := add(t, r, "T")
		commit := gitIn(t, r.Root, "commit-tree", "-p", "main", "-m", "m", "main^{tree}")
		gitIn(t, r.Root, "update-ref", "refs/heads/coven/T", commit)
		must(t, os.RemoveAll(w.Path))
		gitIn(t, r.Root, "worktree", "prune")
		persons := filepath.Join(value[string](t)(filepath.EvalSymlinks(t.TempDir())), "T")
		gitIn(t, r.Root, "worktree", "add", "-q", "-b", "mine", persons)
		write(t, filepath.Join(persons, "staged"), "x")
		gitIn(t, persons, "add", "staged")
		equal(t, "name", strings.Join(value[[]string](t)(r.Admins()), " "), "T")
		if again {
			_, _, err := Recreate(t.Context(), r, "T", "s")
			must(t, err)
		} else {
			rest := value[*repo.Worktree](t)(Leftover(t.Context(), r, "T"))
			value[string](t)(Remove(t.Context(), rest, RemoveRequest{}))
		}
		equal(t, "the person's", gitIn(t, persons, "status", "--porcelain"), "A  staged")
	}
}

func TestRecreateSurvivesKill(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"recreate.recorded", "recreate.cleared", "register.admin", "register.files", "register.linked", "recreate.registered", "recreate.filled"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			ctx := t.Context()
			w, s := worked(t, r)
			before := contents(t, w.Path)
			must(t, os.RemoveAll(w.Path))
			killAt(t, actorCommand(r.Root, "T", "recreate.", ""), point)
			_, err := r.Find(ctx, "T")
			wantIs(t, err, repo.ErrNoWorktree)
			_, err = snapshot.Take(ctx, w, "s", "half")
			wantIs(t, err, repo.ErrNoWorktree)
			_, err = Add(ctx, r, AddRequest{TaskID: "T", Base: "main"})
			equal(t, "unlanded", wantError[*LeftoverError](t, err).Unlanded, true)
			again, from, err := Recreate(ctx, r, "T", "s")
			must(t, err)
			equal(t, "snapshot", from.Commit, s.Commit)
			equal(t, "content", contents(t, again.Path), before)
			equal(t, "registrations", len(value[[]string](t)(r.Admins())), 1)
			equal(t, "rescues", len(value[[]rescue.Info](t)(rescue.List(ctx, r, "T"))), 0)
			equal(t, "newest", value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", "")).Commit, s.Commit)
			value[string](t)(Remove(ctx, again, RemoveRequest{}))
			equal(t, "left", len(value[[]Info](t)(List(ctx, r))), 0)
		})
	}
}

// A worktree that is deleted while coven reads it never counts as one whose agent deleted all files.
func TestGoneMeanwhile(t *testing.T) {
	r := sample(t)
	w, _ := worked(t, r)
	full := len(strings.Fields(gitIn(t, r.Root, "ls-tree", "-r", "--name-only", w.Branch)))
	for round := range 6 {
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				for {
					if _, err := content.Tree(context.Background(), w); err != nil {
						if !errors.Is(err, repo.ErrNoWorktree) {
							t.Errorf("got %v, want %v", err, repo.ErrNoWorktree)
						}
						return
					}
				}
			})
		}
		moved := filepath.Join(t.TempDir(), "away") // a rename deletes it at once
		must(t, os.Rename(w.Path, moved))
		wait.Wait()
		_, err := commit.Create(t.Context(), w, commit.Request{Message: "m", TargetTip: "main"})
		wantIs(t, err, repo.ErrNoWorktree)
		_, _, err = Recreate(t.Context(), r, "T", "s")
		must(t, err)
		got := len(strings.Fields(gitIn(t, r.Root, "ls-tree", "-r", "--name-only", w.Branch)))
		equal(t, "files of the branch in round "+string(rune('0'+round)), got, full)
	}
}
