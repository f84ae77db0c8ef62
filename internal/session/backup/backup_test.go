package backup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func testStore(t *testing.T) (Store, string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"events.jsonl": "one\n", "plan.yaml": "grimoire: x\n", "secret.log": "not copied"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Store{
		Dir: filepath.Join(t.TempDir(), "records"), Files: []string{"events.jsonl", "plan.yaml", "messages.jsonl"},
		Repository: func() (string, error) { return "ID", nil }, Root: "/repo",
	}, dir
}

func TestWriteAndExtract(t *testing.T) {
	s, dir := testStore(t)
	for range 2 { // the second replaces the first
		if err := s.Write(dir, Header{Session: "s", Task: "t", Events: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.IDs(); err != nil || len(ids) != 1 || ids[0] != "s" {
		t.Fatal(ids, err)
	}
	for path, mode := range map[string]os.FileMode{s.Dir: os.ModeDir | 0o700, s.Path("s"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	to := t.TempDir()
	h, err := s.Extract("s", to)
	if err != nil || h.Task != "t" || h.Repository != "ID" || h.Root != "/repo" {
		t.Fatal(h, err)
	}
	if raw, err := os.ReadFile(filepath.Join(to, "plan.yaml")); string(raw) != "grimoire: x\n" || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
	if entries, _ := os.ReadDir(to); len(entries) != 2 {
		t.Error(entries)
	}
	if err := errors.Join(s.Remove("s"), s.Remove("s")); err != nil {
		t.Error(err)
	}
}

// A copy that a power failure cut off, or of which a byte changed, is recognized, wherever that is.
func TestDamage(t *testing.T) {
	s, dir := testStore(t)
	if err := s.Write(dir, Header{Session: "s", Task: "t"}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.Path("s"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(s.Path("s"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Extract("s", t.TempDir()); !errors.As(err, new(*DamagedError)) {
			t.Errorf("%d of %d bytes: %v", len(content), len(whole), err)
		}
	}
	for n := range len(whole) {
		damaged(whole[:n])
	}
	changed := append([]byte{}, whole...)
	changed[len(changed)/2] ^= 1
	damaged(changed)
	if err := os.WriteFile(s.Path("other"), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Header("other"); !errors.As(err, new(*DamagedError)) {
		t.Error("the copy of another session:", err)
	}
}
