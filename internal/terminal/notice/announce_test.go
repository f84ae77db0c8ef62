package notice

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Of several processes, one tells of a state. After a day, and where nothing can be recorded, it is told again.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var first atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if Announce(root, "one") {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if first.Load() != 1 || !Announce(root, "two") || Announce(root, "two") {
		t.Errorf("%d told of the same state", first.Load())
	}
	entries, err := os.ReadDir(filepath.Join(root, announcedDir))
	if err := err; err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-25 * time.Hour)
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(root, announcedDir, e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if !Announce(root, "one") {
		t.Error("an old state")
	}
	if entries, err := os.ReadDir(filepath.Join(root, announcedDir)); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	if err := os.RemoveAll(filepath.Join(root, announcedDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, announcedDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !Announce(root, "one") {
			t.Error("without a record")
		}
	}
}
