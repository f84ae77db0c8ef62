package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// releasing returns a sample repository in which every landed worktree is examined later.
func releasing(t testing.TB) *repo.Repo {
	t.Helper()
	r := pooled(t)
	r.ExamineLater = 1
	return r
}

// released lets a task land, with more in its worktree than lands, and returns what the examination
// finds; nil: nothing.
func released(t testing.TB, r *repo.Repo, task string, more func(dir string)) *repo.Examined {
	t.Helper()
	w := add(t, r, task)
	write(t, filepath.Join(w.Path, "work"+task), "w")
	commitAll(t, w, "work")
	gitIn(t, r.Root, "merge", "-q", "--ff-only", landedTip(t, w))
	more(w.Path)
	var told *repo.Examined
	req := RemoveRequest{Landed: landedTip(t, w), Note: "landed", Later: func(found repo.Examined) { told = &found }}
	equal(t, "rescue at once", value[string](t)(Remove(t.Context(), w, req)), "")
	equal(t, "W", exists(w.Path), false)
	equal(t, "branch", gitIn(t, r.Root, "branch", "--list", w.Branch), "")
	Settle(r)
	return told
}

// nothingUnexamined fails if anything of examinations is left.
func nothingUnexamined(t testing.TB, r *repo.Repo) {
	t.Helper()
	equal(t, "unexamined", len(allUnexamined(r)), 0)
	equal(t, "files", exists(unexaminedPath(r)), false)
	equal(t, "refs", gitIn(t, r.Root, "for-each-ref", repo.UnexaminedPrefix), "")
}

// A large landed worktree is renamed at once, and examined before it goes to the pool.
func TestRelease(t *testing.T) {
	r := releasing(t)
	if found := released(t, r, "A", func(string) {}); found != nil {
		t.Errorf("found %+v", found)
	}
	equal(t, "parked", len(pool(r)), 1)
	nothingUnexamined(t, r)

	found := released(t, r, "B", func(dir string) { write(t, filepath.Join(dir, "x.log"), "ignored") })
	equal(t, "an ignored file", gitIn(t, r.Root, "show", found.Rescue+":x.log"), "ignored")
	equal(t, "parked", len(pool(r)), 1) // the one that B has taken before

	found = released(t, r, "C", func(dir string) {
		write(t, filepath.Join(dir, "file1.txt"), "edited")
		write(t, filepath.Join(dir, "new"), "untracked")
		must(t, os.Remove(filepath.Join(dir, "file2.txt")))
	})
	equal(t, "an edited file", gitIn(t, r.Root, "show", found.Rescue+":file1.txt"), "edited")
	equal(t, "an untracked file", gitIn(t, r.Root, "show", found.Rescue+":new"), "untracked")
	equal(t, "parked", len(pool(r)), 0) // it differs from what landed
	nothingUnexamined(t, r)
}

// What is too large to store, and not alone, stays for a person to decide.
func TestReleaseRefused(t *testing.T) {
	r := releasing(t)
	found := released(t, r, "A", func(dir string) {
		write(t, filepath.Join(dir, "file1.txt"), "edited")
		write(t, filepath.Join(dir, "large.log"), strings.Repeat("x", ignoredCap+1))
	})
	big := (*IgnoredError)(nil)
	equal(t, "refused", errors.As(found.Err, &big), true)
	equal(t, "found", found.Rescue, "")
	must(t, Tidy(t.Context(), r))
	must(t, Examine(t.Context(), r)) // not again by itself
	add(t, r, "A")                   // the task can start again
	all := Unexamined(r)
	equal(t, "unexamined", len(all), 1)
	equal(t, "why", strings.Contains(all[0].Unexamined, "large.log"), true)
	equal(t, "the edited file", read(t, filepath.Join(all[0].Path, "file1.txt")), "edited")
	stale := value[[]Stale](t)(FindStale(t.Context(), r, func(string) bool { return true }))
	equal(t, "leftovers", len(stale) == 1 && stale[0].Kind == StaleUnexamined, true)
	_, err := Clear(t.Context(), r, stale[0])
	equal(t, "cleared", errors.As(err, &big), true)

	refs, known, err := ExamineTask(t.Context(), r, "A", RemoveRequest{DropIgnored: true})
	must(t, err)
	equal(t, "known", known, true)
	equal(t, "the edited file", gitIn(t, r.Root, "show", refs[0]+":file1.txt"), "edited")
	nothingUnexamined(t, r)
}

// Large ignored files alone stay in the pool until it needs the space.
func TestReleasePutsAside(t *testing.T) {
	r := releasing(t)
	found := released(t, r, "A", func(dir string) { write(t, filepath.Join(dir, "large.log"), strings.Repeat("x", ignoredCap+1)) })
	if found != nil {
		t.Errorf("found %+v", found)
	}
	equal(t, "put aside", len(value[[]string](t)(filepath.Glob(poolPath(r, "*.ignored/large.log")))), 1)
	nothingUnexamined(t, r)
}

// A worktree that waits for its examination is neither tidied nor a leftover that is removed unseen, and what
// is in the way of the directories changes nothing but speed.
func TestReleaseInTheWay(t *testing.T) {
	for name, plant := range map[string]func(r *repo.Repo){
		"a file":      func(r *repo.Repo) { write(t, unexaminedPath(r), "f") },
		"a link":      func(r *repo.Repo) { must(t, os.Symlink(t.TempDir(), unexaminedPath(r))) },
		"no records":  func(r *repo.Repo) { write(t, r.StatePath("unexamined"), "f") },
		"unreadable":  func(r *repo.Repo) { write(t, r.StatePath("unexamined", "X", "record.json"), "{") },
		"files alone": func(r *repo.Repo) { write(t, unexaminedPath(r, "X", "file"), "f") },
		"odd names": func(r *repo.Repo) {
			for _, name := range []string{"a b", ".c", "d..e", "f.lock"} {
				write(t, unexaminedPath(r, name, "file"), "f")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := releasing(t)
			must(t, os.MkdirAll(filepath.Join(r.Root, repo.WorktreesDir), 0o755))
			plant(r)
			w := add(t, r, "A")
			write(t, filepath.Join(w.Path, "x.log"), "ignored")
			rescue := ""
			req := RemoveRequest{Landed: landedTip(t, w), Later: func(found repo.Examined) { rescue = found.Rescue }}
			ref := value[string](t)(Remove(t.Context(), w, req))
			Settle(r)
			equal(t, "the ignored file", gitIn(t, r.Root, "show", ref+rescue+":x.log"), "ignored")
			if name == "files alone" {
				all := value[[]RescueInfo](t)(ListRescues(t.Context(), r, "X"))
				equal(t, "files of nobody", gitIn(t, r.Root, "show", all[0].Ref+":file"), "f")
			}
			if name == "unreadable" || name == "files alone" || name == "odd names" {
				nothingUnexamined(t, r)
			}
		})
	}
}

// What a link in the place of one of coven's own directories leads to is somebody else's: a repository can have
// such a link.
func TestReleaseLeadsElsewhere(t *testing.T) {
	for name, link := range map[string]func(r *repo.Repo, elsewhere string){
		"the unexamined": func(r *repo.Repo, elsewhere string) {
			must(t, os.Symlink(elsewhere, unexaminedPath(r)))
		},
		"one of them": func(r *repo.Repo, elsewhere string) {
			must(t, os.Mkdir(unexaminedPath(r), 0o755))
			must(t, os.Symlink(elsewhere, unexaminedPath(r, "X")))
		},
		"one with a record": func(r *repo.Repo, elsewhere string) {
			must(t, os.Mkdir(unexaminedPath(r), 0o755))
			must(t, os.Symlink(elsewhere, unexaminedPath(r, "X")))
			write(t, r.StatePath("unexamined", "X", "record.json"), `{"task":"X","tip":"`+gitIn(t, r.Root, "rev-parse", "main")+`"}`)
		},
		"the pool": func(r *repo.Repo, elsewhere string) {
			must(t, os.Symlink(elsewhere, poolPath(r)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, elsewhere := releasing(t), t.TempDir()
			must(t, os.MkdirAll(filepath.Join(r.Root, repo.WorktreesDir), 0o755))
			write(t, filepath.Join(elsewhere, "X", "file"), "f")
			must(t, os.Mkdir(filepath.Join(elsewhere, "empty"), 0o755))
			link(r, elsewhere)
			refused := Examine(t.Context(), r)
			equal(t, "refused", refused != nil, name == "one with a record")
			must(t, Tidy(t.Context(), r))
			_, _, _ = ExamineTask(t.Context(), r, "X", RemoveRequest{DropIgnored: true}) // it may refuse
			equal(t, "file", read(t, filepath.Join(elsewhere, "X", "file")), "f")
			equal(t, "directory", exists(filepath.Join(elsewhere, "empty")), true)
			equal(t, "rescues", len(value[[]RescueInfo](t)(AllRescues(t.Context(), r))), 0)
			equal(t, "disk", len(PoolDisk(r)), 0)
		})
	}
}

// Git leaves out a directory that it cannot read, such as one of another user, or with a path that is too long: a
// worktree with one stays, and so do its files.
func TestUnreadableStays(t *testing.T) {
	deep := func(dir string) {
		root := value[*os.Root](t)(os.OpenRoot(dir))
		for range 30 {
			must(t, root.Mkdir(strings.Repeat("d", 200), 0o755))
			below := value[*os.Root](t)(root.OpenRoot(strings.Repeat("d", 200)))
			must(t, root.Close())
			root = below
		}
		must(t, root.WriteFile("x.log", []byte("only here"), 0o644))
		must(t, root.Close())
	}
	r := releasing(t)
	found := released(t, r, "A", deep)
	equal(t, "why", found != nil && errors.Is(found.Err, syscall.ENAMETOOLONG), true)
	equal(t, "stays", exists(Unexamined(r)[0].Path), true)

	w := add(t, r, "B") // at once
	deep(w.Path)
	_, err := Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)})
	equal(t, "why", errors.Is(err, syscall.ENAMETOOLONG), true)
	equal(t, "stays", exists(w.Path), true)
	equal(t, "parked", len(pool(r)), 0)
}

// A directory in the place of the link to W's git directory is stored like other git directories.
func TestReleaseGitDirectory(t *testing.T) {
	r := releasing(t)
	found := released(t, r, "A", func(dir string) {
		must(t, os.Remove(filepath.Join(dir, ".git")))
		write(t, filepath.Join(dir, ".git", "x"), "only here")
	})
	equal(t, "stored", gitIn(t, r.Root, "show", found.Rescue+":"+rescuedGitDir+"/x"), "only here")
	nothingUnexamined(t, r)
}

// What has landed can be gone from the repository when W is examined: then everything in W is stored.
func TestReleaseTipGone(t *testing.T) {
	r := releasing(t)
	w := add(t, r, "A")
	write(t, filepath.Join(w.Path, "work"), "w")
	commitAll(t, w, "work")
	must(t, os.Link(w.StatePath(commitIndex), w.StatePath(snapshotIndex))) // it names what will be gone
	tip := landedTip(t, w)
	l := value[*lock.Lock](t)(r.Lock(t.Context(), examineLock, "test"))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: tip, Later: func(repo.Examined) {}}))
	for _, ref := range strings.Fields(gitIn(t, r.Root, "for-each-ref", "--format=%(refname)", "refs/coven")) {
		gitIn(t, r.Root, "update-ref", "-d", ref)
	}
	gitIn(t, r.Root, "reflog", "expire", "--expire=now", "--all")
	gitIn(t, r.Root, "gc", "-q", "--prune=now")
	l.Release()
	Settle(r)
	must(t, Examine(t.Context(), r))
	nothingUnexamined(t, r)
	all := value[[]RescueInfo](t)(ListRescues(t.Context(), r, "A"))
	equal(t, "stored", len(all), 1)
	equal(t, "the work", gitIn(t, r.Root, "show", all[0].Ref+":work"), "w")
}

// releaseOne releases a worktree with an ignored file and one that is edited.
func releaseOne(ctx context.Context, r *repo.Repo) error {
	r.Pool, r.ExamineLater = repo.Pool{Bytes: 1 << 30}, 1
	w, err := Add(ctx, r, AddRequest{TaskID: "T", Base: "main"})
	if err != nil {
		return err
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{"x.log", "file1.txt"} {
		if err := os.WriteFile(filepath.Join(w.Path, name), []byte("only here"), 0o644); err != nil {
			return err
		}
	}
	_, err = Remove(ctx, w, RemoveRequest{Landed: tip, Later: func(repo.Examined) {}})
	Settle(r)
	return err
}

// Killed at any point, a release loses nothing, and the next command finishes it.
func TestReleaseSurvivesKill(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{
		"release.recorded", "release.moved", "release.indexes", "remove.trashed", "remove.unregistered", "remove.branch",
		"examine.stored", "examine.parked", "examine.unref",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := releasing(t)
			killAt(t, actorCommand(r.Root, "T", "release", ""), point)
			if w, err := Leftover(t.Context(), r, "T"); err == nil { // it was not forgotten yet
				value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: gitIn(t, r.Root, "rev-parse", "main"), Later: func(repo.Examined) {}}))
				Settle(r)
			}
			must(t, Examine(t.Context(), r))
			nothingUnexamined(t, r)
			all := value[[]RescueInfo](t)(ListRescues(t.Context(), r, "T"))
			equal(t, "stored", len(all) > 0, true)
			for _, name := range []string{"x.log", "file1.txt"} {
				equal(t, name, gitIn(t, r.Root, "show", all[0].Ref+":"+name), "only here")
			}
			must(t, Tidy(t.Context(), r))
			add(t, r, "T")
			noLocks(t, r.GitDir)
		})
	}
}
