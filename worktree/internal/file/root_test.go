package file

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/file/regularfile"
)

// A Root reaches only files in its directory, and never through a link.
func TestRoot(t *testing.T) {
	top := t.TempDir()
	in := func(name string) string { return filepath.Join(top, "in", name) }
	for _, err := range []error{
		os.MkdirAll(in("dir/deep"), 0o755), os.Mkdir(filepath.Join(top, "out"), 0o755), os.WriteFile(filepath.Join(top, "out/file"), nil, 0o644),
		os.WriteFile(in("dir/deep/file"), []byte("text"), 0o644), os.Symlink("dir", in("link")), os.Symlink("../out", in("away")),
		os.Symlink("dir/deep/file", in("short")), syscall.Mkfifo(in("pipe"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := OpenRoot(filepath.Join(top, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // read only
	for name, want := range map[string]error{
		"dir/deep/file": nil, "./dir//deep/file": nil,
		"link/deep/file": syscall.ENOTDIR, "away/file": syscall.ENOTDIR, "dir/deep/file/x": syscall.ENOTDIR, "short": syscall.ELOOP, "none/file": syscall.ENOENT,
		"pipe": regularfile.ErrNotFile, "dir": regularfile.ErrNotFile, "../out/file": os.ErrInvalid, "dir/../../out/file": os.ErrInvalid, "/etc/passwd": os.ErrInvalid, "": os.ErrInvalid,
	} {
		raw, err := r.Read(name, 10)
		if !errors.Is(err, want) || want == nil && string(raw) != "text" {
			t.Errorf("read %q: %q, %v; want %v", name, raw, err, want)
		}
	}
	for name, want := range map[string]bool{"new/dir/a": true, "dir/new": true, "link/new": false, "away/new": false, "short": false} {
		err := r.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			var f *os.File
			if f, err = r.Create(name, 0o600); err == nil {
				err = f.Close()
			}
		}
		if (err == nil) != want {
			t.Errorf("create %s: %v", name, err)
		}
	}
	if err := r.Symlink("x", "away/link"); !Missing(err) {
		t.Errorf("a link behind a link: %v", err)
	}
	if to, err := r.Readlink("away"); to != "../out" || err != nil {
		t.Errorf("the target: %q, %v", to, err)
	}
	if entries, err := os.ReadDir(filepath.Join(top, "out")); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
	if _, err := OpenRoot(in("link")); err == nil {
		t.Error("the directory may be a link")
	}
}
