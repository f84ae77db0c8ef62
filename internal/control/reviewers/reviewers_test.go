package reviewers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
)

// part returns the patch of a file with about size bytes.
func part(name string, size int) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+%[2]s\n", name, strings.Repeat("x", size))
}

func TestShortened(t *testing.T) {
	diffOf := func(sizes ...int) diff.Diff {
		var d diff.Diff
		for i, size := range sizes {
			name := fmt.Sprintf("f%d", i)
			d.Files = append(d.Files, diff.FileChange{Path: name, Status: "M"})
			d.Patch += part(name, size)
		}
		return d
	}
	link := diffOf(10, 9000, 20)
	link.Files[0].Status = "T" // a deletion and an addition
	link.Patch = part("f0", 5) + link.Patch
	for name, test := range map[string]struct {
		diff  diff.Diff
		shown string // numbers of files
		left  string
	}{
		"all of it":                {diffOf(10, 20), "0 1", ""},
		"nothing":                  {diff.Diff{}, "", ""},
		"the large one is out":     {diffOf(10, 9000, 20), "0 2", "the diff has 9 KiB and 1 KiB are shown; left out: f1 (9 KiB)"},
		"as many as there is room": {diffOf(3000, 2000, 1000), "1 2", "the diff has 7 KiB and 4 KiB are shown; left out: f0 (3 KiB)"},
		"the only one":             {diffOf(5000), "", "the diff has 5 KiB and 0 KiB are shown; left out: f0 (5 KiB)"},
		"what became a link":       {link, "0 2", "the diff has 10 KiB and 1 KiB are shown; left out: f1 (9 KiB)"},
		"many": {
			diffOf(5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 10), "12",
			"the diff has 60 KiB and 1 KiB are shown; left out: f0 (5 KiB), f1 (5 KiB), f2 (5 KiB), f3 (5 KiB), f4 (5 KiB), f5 (5 KiB), f6 (5 KiB), f7 (5 KiB), f8 (5 KiB), f9 (5 KiB) and 2 more",
		},
	} {
		patch, left := shortened(test.diff, 4<<10)
		var want strings.Builder
		for number := range strings.FieldsSeq(test.shown) {
			want.WriteString(test.diff.Of("f" + number))
		}
		if patch != want.String() || left != test.left {
			t.Errorf("%s: %d bytes, want %d; left %q", name, len(patch), want.Len(), left)
		}
		if len(patch) > 4<<10 {
			t.Errorf("%s: %d bytes are shown", name, len(patch))
		}
	}
}

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
