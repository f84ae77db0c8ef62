package tempdir_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/coven-run/coven/internal/file/tempdir"
)

func TestDir(t *testing.T) {
	parent := t.TempDir()
	d, err := tempdir.New(parent)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	empty(t, parent, 0)
}

// Unlocked directories are removed; locked directories and those of other programs stay.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	dead := filepath.Join(parent, "coven-dead")
	stranger := filepath.Join(parent, "coven-stranger")
	for _, dir := range []string{dead, stranger} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dead, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := tempdir.Abandoned(parent); !slices.Equal(found, []string{dead}) {
		t.Errorf("abandoned: %v", found)
	}
	var dirs []*tempdir.Dir
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			d, err := tempdir.New(parent)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			dirs = append(dirs, d)
		})
	}
	all.Wait()
	for _, d := range dirs {
		if _, err := os.Stat(d.Path()); err != nil {
			t.Errorf("a directory in use was removed: %v", err)
		}
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("what a dead process left is still there")
	}
	if found := tempdir.Abandoned(parent); len(found) > 0 {
		t.Errorf("abandoned: %v", found)
	}
	for _, d := range dirs {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	empty(t, parent, 1) // the unrelated directory
}

func empty(t *testing.T, parent string, want int) {
	t.Helper()
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != want {
		t.Errorf("left: %v, %v", left, err)
	}
}
