package regularfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(at("in/dir"), 0o755), os.WriteFile(at("in/file"), []byte("text"), 0o644), os.WriteFile(at("out"), []byte("text"), 0o644),
		syscall.Mkfifo(at("in/pipe"), 0o644), os.Symlink("file", at("in/link")), os.Symlink("pipe", at("in/topipe")), os.Symlink("../out", at("in/escape")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, open, openIn string }{
		{"file", "", ""},
		{"link", "", ""},
		{"escape", "", "escapes"},
		{"dir", "not a file", "not a file"},
		{"pipe", "not a file", "not a file"},
		{"topipe", "not a file", "not a file"},
		{"none", "no such file", "no such file"},
	} {
		f, err := regularfile.Open(at("in/" + c.name))
		reads(t, "open "+c.name, f, err, c.open)
		f, err = regularfile.OpenIn(at("in"), c.name)
		reads(t, "open in: "+c.name, f, err, c.openIn)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close() //nolint:errcheck // read only
	fsys := regularfile.FS(root, "in")
	for name, want := range map[string]string{
		"file": "text", "link": "text", "pipe": "not a file", "topipe": "not a file", "dir": "directory", "../out": "invalid", "none": "no such file",
	} {
		data, err := fs.ReadFile(fsys, name)
		if got := string(data); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("read %s: %q, %v", name, got, err)
		}
	}
	if _, err := regularfile.OpenIn(at("nowhere"), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// reads fails the test unless err contains word or, if word is empty, f is the
// file.
func reads(t *testing.T, what string, f *os.File, err error, word string) {
	t.Helper()
	if word != "" {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer f.Close() //nolint:errcheck // read only
	if text, err := io.ReadAll(f); err != nil || string(text) != "text" {
		t.Errorf("%s: %q, %v", what, text, err)
	}
}

// The temporary file is written to the directory of the replaced file.
func TestReplace(t *testing.T) {
	elsewhere, dir := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", elsewhere)
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(elsewhere, long, long); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	for _, content := range []string{"one", "another"} {
		if err := regularfile.Replace(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if got, err2 := os.ReadFile(file); err != nil || err2 != nil || string(got) != content || info.Mode() != 0o600 {
			t.Errorf("the file has %q and the mode %v", got, info.Mode())
		}
	}
	if info, err := os.Stat(elsewhere); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("something was in the directory for temporary files: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("beside the file are %v, %v", names, err)
	}
	if err := regularfile.Replace(filepath.Join(dir, "none", "file"), nil, 0o600); err == nil {
		t.Error("a file in no directory was written")
	}
}
