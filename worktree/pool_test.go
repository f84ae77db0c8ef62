package worktree

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// pooled creates a sample repository with a pool.
func pooled(t testing.TB, keep ...string) *repo.Repo {
	t.Helper()
	r := sample(t)
	r.Pool = repo.Pool{Bytes: 1 << 30, Keep: keep}
	return r
}

// landAndLeave commits the worktree, moves main there, and removes the worktree as a landing does.
func landAndLeave(t testing.TB, r *repo.Repo, w *repo.Worktree) {
	t.Helper()
	commitAll(t, w, "work")
	gitIn(t, r.Root, "merge", "-q", "--ff-only", landedTip(t, w))
	equal(t, "rescue", leave(t, r, w), "")
}

// leave removes a worktree that has landed, and returns the ref of the stored content.
func leave(t testing.TB, r *repo.Repo, w *repo.Worktree) string {
	t.Helper()
	defer pool.Wait(r)
	return value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
}

// fresh returns the content that the worktree of a new task has without a pool.
func fresh(t testing.TB, r *repo.Repo) string {
	t.Helper()
	bare := *r
	bare.Pool = repo.Pool{}
	w := value[*repo.Worktree](t)(Add(t.Context(), &bare, AddRequest{TaskID: "fresh", Base: "main"}))
	text := modes(t, w.Path) + contents(t, w.Path)
	value[string](t)(Remove(t.Context(), w, RemoveRequest{}))
	return strings.ReplaceAll(text, "fresh", "T")
}

// modes lists everything in a directory with its mode and number of links.
func modes(t testing.TB, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		must(t, err)
		info, err := entry.Info()
		must(t, err)
		all.WriteString(strings.TrimPrefix(name, dir) + " " + info.Mode().String())
		if info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Nlink != 1 {
			all.WriteString(" has links")
		}
		all.WriteString("\n")
		return nil
	}))
	return all.String()
}

func inodeAt(t testing.TB, path string) uint64 {
	t.Helper()
	return file.InodeOf(value[os.FileInfo](t)(os.Lstat(path)))
}

// The next worktree gets the files of a landed worktree, with the same result as if git had written them.
func TestPool(t *testing.T) {
	r := pooled(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "new/file"), "n")
	write(t, filepath.Join(w.Path, "x.log"), "ignored")
	inode := inodeAt(t, filepath.Join(w.Path, "file1.txt"))
	must(t, os.Mkdir(filepath.Join(w.Path, "empty"), 0o755))
	commitAll(t, w, "work")
	tip := value[string](t)(w.Tip(t.Context()))
	gitIn(t, r.Root, "merge", "-q", "--ff-only", tip)
	ref := value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: tip}))
	equal(t, "the ignored file", rescued(t, r, ref, "x.log"), "ignored")
	pool.Wait(r)
	equal(t, "W", exists(w.Path), false)
	equal(t, "registrations", len(value[[]string](t)(r.Admins())), 0)
	equal(t, "parked", len(pool.List(r)), 1)
	if pool.List(r)[0].Bytes == 0 {
		t.Error("the size is not measured")
	}
	write(t, filepath.Join(r.Root, "file0.txt"), "changed meanwhile")
	write(t, filepath.Join(r.Root, "more"), "m")
	gitIn(t, r.Root, "rm", "-q", "new/file")
	gitIn(t, r.Root, "add", "-A", "more", "file0.txt")
	gitIn(t, r.Root, "commit", "-qm", "meanwhile")
	want := fresh(t, r)
	w = add(t, r, "T")
	equal(t, "content", modes(t, w.Path)+contents(t, w.Path), want)
	equal(t, "the same file", inodeAt(t, filepath.Join(w.Path, "file1.txt")), inode)
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
	equal(t, "parked", len(pool.List(r)), 0)
	equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
	s := value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "s", ""))
	equal(t, "snapshot", s.Tree, gitIn(t, r.Root, "rev-parse", "main^{tree}"))
}

// The next worktree is like a new one, regardless of what a task did to its worktree.
func TestPoolIsAsNew(t *testing.T) {
	oneAtATime(t)
	tricks := []func(t *testing.T, r *repo.Repo, w *repo.Worktree){
		func(t *testing.T, r *repo.Repo, w *repo.Worktree) { // a hard link outside
			must(t, os.Link(filepath.Join(w.Path, "file2.txt"), filepath.Join(r.Root, "build-link.log")))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, os.Chmod(filepath.Join(w.Path, "file3.txt"), 0o644|os.ModeSetuid))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, os.Chmod(filepath.Join(w.Path, "file3.txt"), 0o600))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) { must(t, os.Chmod(w.Path, 0o700)) },
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, os.RemoveAll(filepath.Join(w.Path, ".git")))
			must(t, os.Symlink("/dev/null", filepath.Join(w.Path, ".git")))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "build/a/b"), "ignored")
			must(t, os.Chmod(filepath.Join(w.Path, "build/a"), 0o500))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			must(t, syscall.Mkfifo(filepath.Join(w.Path, "pipe.log"), 0o600))
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "deep/er/file"), "d")
		},
		func(t *testing.T, _ *repo.Repo, w *repo.Worktree) {
			write(t, filepath.Join(w.Path, "attr/.gitattributes"), "* text eol=crlf\n")
			write(t, filepath.Join(w.Path, "attr/file"), "crlf\r\n")
		},
		func(t *testing.T, r *repo.Repo, _ *repo.Worktree) {
			gitIn(t, r.Root, "config", "core.autocrlf", "true")
		},
		func(t *testing.T, r *repo.Repo, _ *repo.Worktree) {
			gitIn(t, r.Root, "config", "core.autocrlf", "false")
		},
	}
	afterwards := []func(t *testing.T, r *repo.Repo){
		func(t *testing.T, r *repo.Repo) { // unnoticed by coven
			for _, p := range pool.List(r) {
				write(t, pool.Path(r, p.ID, "file1.txt"), "changed later")
			}
		},
		func(t *testing.T, r *repo.Repo) {
			for _, p := range pool.List(r) {
				write(t, pool.Path(r, p.ID, "added"), "later")
			}
		},
		func(t *testing.T, r *repo.Repo) {
			for _, p := range pool.List(r) {
				must(t, os.WriteFile(pool.RecordPath(r, p.ID, ".index"), []byte("DIRC damaged"), 0o644))
			}
		},
		func(t *testing.T, r *repo.Repo) {
			for _, p := range pool.List(r) {
				must(t, os.Truncate(pool.RecordPath(r, p.ID, ".json"), 3))
			}
		},
		func(t *testing.T, r *repo.Repo) {
			for _, p := range pool.List(r) {
				must(t, os.Remove(pool.RecordPath(r, p.ID, ".json")))
				must(t, syscall.Mkfifo(pool.RecordPath(r, p.ID, ".json"), 0o600))
			}
		},
		func(t *testing.T, r *repo.Repo) { // files without a record, and a record without files
			for _, p := range pool.List(r) {
				must(t, os.Rename(pool.Path(r, p.ID), pool.Path(r, "other")))
			}
		},
		func(t *testing.T, r *repo.Repo) {
			write(t, filepath.Join(r.Root, ".gitattributes"), "*.txt text eol=crlf\n")
			gitIn(t, r.Root, "add", ".gitattributes")
			gitIn(t, r.Root, "commit", "-qm", "attributes")
		},
		func(t *testing.T, r *repo.Repo) { gitIn(t, r.Root, "config", "core.autocrlf", "true") },
		func(t *testing.T, r *repo.Repo) { gitIn(t, r.Root, "commit", "-q", "--allow-empty", "-m", "nothing") },
		func(t *testing.T, r *repo.Repo) {
			gitIn(t, r.Root, "rm", "-q", "-r", ".")
			gitIn(t, r.Root, "commit", "-qm", "gone")
		},
	}
	for seed := range seeds(uint64(len(afterwards)), 24) {
		random := rand.New(rand.NewPCG(seed, 7))
		r := pooled(t)
		w := add(t, r, "T")
		write(t, filepath.Join(w.Path, "work"), "w")
		for range 1 + random.IntN(3) {
			tricks[random.IntN(len(tricks))](t, r, w)
		}
		commitAll(t, w, "work")
		tip := value[string](t)(w.Tip(t.Context()))
		gitIn(t, r.Root, "merge", "-q", "--ff-only", tip)
		value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: tip}))
		pool.Wait(r)
		afterwards[int(seed)%len(afterwards)](t, r)
		want := fresh(t, r)
		w = add(t, r, "T")
		if got := modes(t, w.Path) + contents(t, w.Path); got != want {
			t.Errorf("seed %d: got\n%s\nwant\n%s", seed, got, want)
		}
		equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
		must(t, pool.Tidy(t.Context(), r))
		noLocks(t, r.GitDir)
	}
}

// Files that the user lists are passed from task to task, as long as git ignores them.
func TestPoolKeeps(t *testing.T) {
	oneAtATime(t)
	r := pooled(t, "build", "sub/**/cache.log")
	w := add(t, r, "T")
	for _, name := range []string{"build/out", "sub/a/cache.log", "sub/a/other.log", "x.log"} {
		write(t, filepath.Join(w.Path, name), name)
	}
	write(t, filepath.Join(w.Path, "work"), "w")
	commitAll(t, w, "work")
	tip := value[string](t)(w.Tip(t.Context()))
	gitIn(t, r.Root, "merge", "-q", "--ff-only", tip)
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: tip}))
	w = add(t, r, "U")
	for name, want := range map[string]bool{"build/out": true, "sub/a/cache.log": true, "sub/a/other.log": false, "x.log": false, "work": true} {
		equal(t, name, exists(filepath.Join(w.Path, name)), want)
	}
	leave(t, r, w)
	write(t, filepath.Join(r.Root, ".gitignore"), "*.log\n")
	gitIn(t, r.Root, "commit", "-qam", "build is not ignored any more")
	w = add(t, r, "V")
	equal(t, "kept though not ignored", exists(filepath.Join(w.Path, "build")), false)
	equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
}

// Ignored files that are too large to store stay until the pool needs the space.
func TestPoolPutsAside(t *testing.T) {
	oneAtATime(t)
	r := pooled(t)
	large := strings.Repeat("x", rescue.MaxIgnored+1)
	for _, task := range []string{"A", "B"} {
		w := add(t, r, task)
		equal(t, "of the task before", exists(filepath.Join(w.Path, "build")), false)
		write(t, filepath.Join(w.Path, "build/out"), large+task)
		write(t, filepath.Join(w.Path, "work"+task), "w")
		landAndLeave(t, r, w)
	}
	aside := value[[]string](t)(filepath.Glob(pool.Path(r, "*.ignored/build/out")))
	equal(t, "put aside", len(aside), 2)
	equal(t, "content", read(t, aside[0]) == large+"A" && read(t, aside[1]) == large+"B", true)
	r.Pool.Bytes = 15 << 20
	must(t, pool.Tidy(t.Context(), r))
	aside = value[[]string](t)(filepath.Glob(pool.Path(r, "*.ignored/build/out")))
	equal(t, "put aside", len(aside), 1)
	equal(t, "the newer one", strings.HasPrefix(filepath.Base(filepath.Dir(filepath.Dir(aside[0]))), "B-"), true)
	w := add(t, r, "C")
	equal(t, "taken", exists(filepath.Join(w.Path, "build")), false)
	r.Pool.Bytes = 0
	must(t, pool.Tidy(t.Context(), r))
	equal(t, "left", len(pool.Dirs(r))+len(pool.List(r)), 0)
}

// If links or files are in place of the pool's directory, or the pool is off, only the speed changes.
func TestPoolInTheWay(t *testing.T) {
	oneAtATime(t)
	for name, plant := range map[string]func(r *repo.Repo, elsewhere string){
		"a link":      func(r *repo.Repo, elsewhere string) { must(t, os.Symlink(elsewhere, pool.Path(r))) },
		"a file":      func(r *repo.Repo, _ string) { write(t, pool.Path(r), "f") },
		"no pool":     func(r *repo.Repo, _ string) { r.Pool.Bytes = 0 },
		"read-only":   func(r *repo.Repo, _ string) { write(t, r.StatePath("pool"), "a file") },
		"many in one": func(r *repo.Repo, _ string) { must(t, os.MkdirAll(pool.Path(r, "a", "b"), 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			r, elsewhere := pooled(t), t.TempDir()
			must(t, r.EnsurePlace())
			plant(r, elsewhere)
			for range 2 {
				w := add(t, r, "T")
				write(t, filepath.Join(w.Path, "work"), contents(t, w.Path))
				landAndLeave(t, r, w)
				equal(t, "W", exists(w.Path), false)
			}
			equal(t, "elsewhere", len(value[[]os.DirEntry](t)(os.ReadDir(elsewhere))), 0)
			_ = pool.Tidy(t.Context(), r)
			equal(t, "registrations", len(value[[]string](t)(r.Admins())), 0)
		})
	}
}

// poolTwice parks a worktree with large ignored files and takes it for another task. If changed is set, the
// files may have been changed in between.
func poolTwice(ctx context.Context, r *repo.Repo, changed bool) error {
	r.Pool = repo.Pool{Bytes: 1 << 30}
	w, err := Add(ctx, r, AddRequest{TaskID: "T", Base: "main"})
	if err != nil {
		return err
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return err
	}
	large := filepath.Join(w.Path, "build", "out")
	if err := errors.Join(os.Mkdir(filepath.Dir(large), 0o755), os.WriteFile(large, make([]byte, rescue.MaxIgnored+1), 0o644)); err != nil {
		return err
	}
	if _, err := Remove(ctx, w, RemoveRequest{Landed: tip}); err != nil {
		return err
	}
	pool.Wait(r)
	for _, p := range pool.List(r) {
		if changed {
			err = os.Chmod(pool.Path(r, p.ID, "file1.txt"), 0o600)
		}
	}
	if err == nil {
		_, err = Add(ctx, r, AddRequest{TaskID: "U", Base: "main"})
	}
	return err
}

// Killed at any point, the pool loses nothing and does not give anything to two tasks.
func TestPoolSurvivesKill(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"park.recorded", "park.indexes", "remove.trashed", "remove.branch", "pool.aside", "take.indexes", "take.moved", "add.emptied"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			r.Pool = repo.Pool{Bytes: 1 << 30}
			intent := "pool.whole"
			if point == "add.emptied" {
				intent = "pool.changed"
			}
			killAt(t, actorCommand(r.Root, "T", intent, ""), point)
			for _, task := range []string{"T", "U"} {
				if w, err := Leftover(t.Context(), r, task); err == nil { // it has not been removed yet
					value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
				}
				w := add(t, r, task)
				equal(t, "tree", value[string](t)(content.Tree(t.Context(), w)), gitIn(t, r.Root, "rev-parse", "main^{tree}"))
				equal(t, "ignored files", exists(filepath.Join(w.Path, "build")), false)
				must(t, pool.Tidy(t.Context(), r))
			}
			equal(t, "registrations", len(value[[]string](t)(r.Admins())), 2)
			large := 0
			must(t, filepath.WalkDir(r.Place().Own, func(name string, _ os.DirEntry, err error) error {
				if strings.HasSuffix(name, "build/out") {
					large++
				}
				return err
			}))
			equal(t, "large ignored files", large, 1)
			noLocks(t, r.GitDir)
		})
	}
}

// Files that were changed in the pool do not get into a worktree.
func TestPoolChangedMeanwhile(t *testing.T) {
	oneAtATime(t)
	for name, change := range map[string]func(t *testing.T, dir string){
		"changed":    func(t *testing.T, dir string) { write(t, filepath.Join(dir, "file1.txt"), "changed in the pool") },
		"removed":    func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "file1.txt"))) },
		"executable": func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "file1.txt"), 0o755)) },
		"a link": func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, "file1.txt")))
			must(t, os.Symlink("file0.txt", filepath.Join(dir, "file1.txt")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := pooled(t)
			w := add(t, r, "T")
			write(t, filepath.Join(w.Path, "work"), "w")
			landAndLeave(t, r, w)
			change(t, pool.Path(r, pool.List(r)[0].ID))
			want := fresh(t, r)
			w = add(t, r, "T")
			equal(t, "content", modes(t, w.Path)+contents(t, w.Path), want)
			equal(t, "status", gitIn(t, w.Path, "status", "--porcelain"), "")
		})
	}
}

// The permissions that a directory gives to new files do not get into another worktree.
func TestPoolDefaultACL(t *testing.T) {
	r := pooled(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "work"), "w")
	landAndLeave(t, r, w)
	const attribute = "system.posix_acl_default"
	acl := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][3]uint32{{0x1, 7, math.MaxUint32}, {0x2, 7, 65534}, {0x4, 5, math.MaxUint32}, {0x10, 7, math.MaxUint32}, {0x20, 5, math.MaxUint32}} { // user 65534 may write
		acl = binary.LittleEndian.AppendUint32(acl, entry[0]|entry[1]<<16)
		acl = binary.LittleEndian.AppendUint32(acl, entry[2])
	}
	if err := unix.Setxattr(pool.Path(r, pool.List(r)[0].ID), attribute, acl, 0); err != nil {
		t.Skip(err)
	}
	w = add(t, r, "T")
	if _, err := unix.Getxattr(w.Path, attribute, nil); err == nil {
		t.Error("it is in the worktree")
	}
}

// If attributes have changed since, unchanged blobs may have to be written with other bytes.
func TestPoolOtherAttributes(t *testing.T) {
	r := pooled(t)
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "work"), "w")
	landAndLeave(t, r, w)
	write(t, filepath.Join(r.Root, ".gitattributes"), "*.txt text eol=crlf\n")
	gitIn(t, r.Root, "add", ".gitattributes")
	gitIn(t, r.Root, "commit", "-qm", "attributes")
	want := fresh(t, r)
	if !strings.Contains(want, `\r\n`) {
		t.Fatalf("the attributes change nothing:\n%s", want)
	}
	w = add(t, r, "T")
	equal(t, "content", modes(t, w.Path)+contents(t, w.Path), want)
}
