package away

import (
	"os"
	"path/filepath"
	"testing"
)

// The record of another machine replaces the lines after the common ones. The others are kept in a copy. It can be repeated after a crash.
func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ here, there, kept string }{
		{"1\n2\n", "1\n2\n3\n4\n", ""},
		{"1\n2\n", "1\n2\n", ""},
		{"1\n2\nlate\n", "1\n2\n3\n", "1\n2\nlate\n"},
		{"1\n21\n", "1\n22\n", "1\n21\n"},
		{"1\n", "1\n2\n", ""},
		{"1\n2\n3\n4\n5\n", "1\n2\n", "1\n2\n3\n4\n5\n"},
	} {
		dir := t.TempDir()
		file, copied := filepath.Join(dir, "events"), filepath.Join(dir, "copy")
		if err := os.WriteFile(file, []byte(c.here), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := Rewrite(dir, "events", "copy", []byte(c.there)); err != nil {
				t.Fatal(err)
			}
		}
		kept, _ := os.ReadFile(copied)
		if got, err := os.ReadFile(file); err != nil || string(got) != c.there || string(kept) != c.kept {
			t.Errorf("%q: %q, copy %q, %v", c.here, got, kept, err)
		}
	}
}

// A session is away until its state is removed. A damaged file counts as none.
func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(dir, nil); err != nil || Read(dir) != nil || Check(dir, "t") != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		State
		text, next string
		away       bool
	}{
		{State{Tip: "0123", Machine: "pc", Remote: "origin"}, "on pc: asks", "coven cancel t", true},
		{State{Landed: "0123456789abcdef"}, "another machine has landed it as 0123456789ab", "coven resume t", false},
		{State{}, "it ended on another machine, without landing", "coven cancel t", false},
	} {
		if err := Write(dir, &c.State); err != nil {
			t.Fatal(err)
		}
		s := Read(dir)
		if s == nil || *s != c.State || s.Text("asks") != c.text || s.Next("t") != c.next || (Check(dir, "t") != nil) != c.away {
			t.Errorf("%+v: %+v", c, s)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile), []byte("{"), 0o600); err != nil || Read(dir) != nil {
		t.Error(err)
	}
	if err := Write(dir, nil); err != nil || Read(dir) != nil {
		t.Error(err)
	}
}
