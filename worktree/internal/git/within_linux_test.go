package git

import (
	"os"
	"path/filepath"
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// git changes only files in the directories of Write.
func TestWriteLimits(t *testing.T) {
	if abi, err := ll.LandlockGetABIVersion(); err != nil || abi < 2 {
		t.Skip("no Landlock, or an old one")
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := (Repo{Dir: dir}).Run(t.Context(), "init", "-q", "--bare"); err != nil {
		t.Fatal(err)
	}
	g := Repo{Dir: dir, Write: []string{dir}}
	try := func(g Repo, path string) error { return g.Run(t.Context(), "config", "--file", path, "a.b", "c") }
	if err := try(g, filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := try(g, filepath.Join(dir, "link", "file")); err == nil {
		t.Error("git changed a file outside")
	}
	g.Write = nil
	if err := try(g, filepath.Join(dir, "link", "file")); err != nil {
		t.Error("other threads are restricted too:", err)
	}
	g.Write = []string{filepath.Join(dir, "missing")}
	if err := try(g, filepath.Join(dir, "file")); err == nil {
		t.Error("a missing directory is no error")
	}
}
