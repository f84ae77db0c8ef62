package worktree

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
)

// hollow creates a file that has a size, but no content.
func hollow(t *testing.T, path string, size int64) {
	t.Helper()
	write(t, path, "")
	must(t, os.Truncate(path, size))
}

// bytesBelow returns the disk space of the files below a directory.
func bytesBelow(t *testing.T, dir string) (sum int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	}))
	return sum
}

// Files that are too large are refused before git reads them, and leave nothing in the repository.
func TestLargeFilesAreNotStored(t *testing.T) {
	for name, path := range map[string]string{
		"one": "dir/big", "in a nested repository": "sub/big", "its git directory": "sub/.git/big", "a file of git": "admin/BIG", "the index": "admin/index",
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w := add(t, r, "T")
			gitIn(t, w.Path, "init", "-q", "sub")
			write(t, filepath.Join(w.Path, "sub", "small"), "x")
			value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "S", "before"))
			big := filepath.Join(w.Path, path)
			if filepath.Dir(path) == "admin" {
				big = filepath.Join(w.Admin, filepath.Base(path))
			}
			hollow(t, big, 50<<30)
			stored, allocated := bytesBelow(t, r.GitDir), allocations()
			if name == "one" || name == "in a nested repository" {
				_, err := snapshot.Take(t.Context(), w, "S", "after")
				equal(t, "snapshot", wantError[*content.LargeError](t, err).Path, path)
				_, err = commit.Create(t.Context(), w, commit.Request{Message: "m", TargetTip: targetOf(r, t).Tip})
				_ = wantError[*content.LargeError](t, err)
			}
			_, err := rescue.Take(t.Context(), w, "", true)
			large := wantError[*content.LargeError](t, err)
			equal(t, "bytes", large.Bytes, 50<<30)
			if grown := allocations() - allocated; grown > 100<<20 {
				t.Errorf("%d MB were allocated", grown>>20)
			}
			if grown := bytesBelow(t, r.GitDir) - stored; grown > 1<<20 {
				t.Errorf("%d MB were stored", grown>>20)
			}
			must(t, os.Remove(big))
			value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), w, "S", "after"))
			value[string](t)(rescue.Take(t.Context(), w, "", true))
		})
	}
}

// Several large files count together. Files of the main checkout do not count.
func TestLargeFilesTogether(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	for _, name := range []string{"a", "b", "c"} {
		hollow(t, filepath.Join(w.Path, name), content.MaxStored/3+1)
	}
	_, err := snapshot.Take(t.Context(), w, "S", "")
	_ = wantError[*content.LargeError](t, err)
	must(t, content.CheckLarge(map[string]string{"a": filepath.Join(w.Path, "a"), "b": filepath.Join(w.Path, "b"), "none": "none"}))
}

// The files that only coven and the user write have a limit, too, and may not be pipes or directories.
func TestOwnFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	hollow(t, filepath.Join(dir, "big"), 3<<30)
	for _, name := range []string{"big", "."} {
		path := filepath.Join(dir, name)
		if _, err := file.ReadIfExists(path); err == nil {
			t.Errorf("%s: ReadIfExists reads it", name)
		}
		if err := file.ReadJSON(path, new(any)); err == nil {
			t.Errorf("%s: ReadJSON reads it", name)
		}
		if err := file.CopyIfExists(path, filepath.Join(dir, "copy")); err == nil {
			t.Errorf("%s: CopyIfExists copies it", name)
		}
	}
}
