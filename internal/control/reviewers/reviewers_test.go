package reviewers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/worktree"
)

// A plugin can read only the files of the worktree.
func TestReadFile(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "w")
	at := func(name string) string { return filepath.Join(dir, name) }
	large, err := os.Create(filepath.Join(top, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.MkdirAll(at("dir/deep"), 0o755), os.WriteFile(at("dir/file"), []byte("in\n"), 0o600),
		os.WriteFile(filepath.Join(top, "secret"), []byte("out\n"), 0o600), os.Mkdir(filepath.Join(top, "outside"), 0o755),
		os.Symlink("dir/file", at("inside")), os.Symlink("../secret", at("out")), os.Symlink(filepath.Join(top, "secret"), at("absolute")),
		os.Symlink("..", at("up")), os.Symlink("gone", at("dangling")), os.Symlink("loop", at("loop")),
		syscall.Mkfifo(at("fifo"), 0o600), large.Truncate(33<<20), large.Close(), os.Rename(filepath.Join(top, "large"), at("large")),
		os.WriteFile(at("empty"), nil, 0o600), os.WriteFile(at("a\nb\xff"), []byte("odd"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	e := &hostServices{reviewers: Reviewers{Workspace: &workspace.Workspace{Worktree: &worktree.Worktree{Path: dir}}}}
	for path, want := range map[string]string{
		"dir/file": "in\n", "./dir/../dir/file": "in\n", "inside": "in\n", "empty": "", "a\nb\xff": "odd",
	} {
		if got, err := e.ReadFile(t.Context(), path); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]error{
		"gone": fs.ErrNotExist, "dir/gone": fs.ErrNotExist, "dangling": fs.ErrNotExist,
		"../secret": fs.ErrPermission, "dir/../../secret": fs.ErrPermission, "/etc/passwd": fs.ErrPermission, dir + "/dir/file": fs.ErrPermission,
		"out": fs.ErrPermission, "absolute": fs.ErrPermission, "up/secret": fs.ErrPermission, "up/w/dir/file": fs.ErrPermission, "loop": fs.ErrPermission,
		"dir": fs.ErrPermission, ".": fs.ErrPermission, "": fs.ErrPermission, "fifo": fs.ErrPermission, "dir/file/x": fs.ErrPermission, "dir\x00": fs.ErrPermission,
		"large": pluginerr.ErrTooLarge,
	} {
		if got, err := e.ReadFile(t.Context(), path); !errors.Is(err, want) || got != nil {
			t.Errorf("%q: %d bytes, %v", path, len(got), err)
		}
	}
	if hostservice.MaxBytes != 32<<20 {
		t.Error("the bound has changed: so must this test")
	}
}
