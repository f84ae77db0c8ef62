package channel_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/agent/channel"
)

// A session that begins with the channels of another session continues their numbers. The other session stays
// unchanged, even if a message is just being written.
func TestBegin(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := channel.New(from, func() time.Time { return now })
	for _, text := range []string{"one", "two", "three"} {
		if _, err := c.Send("ping", "build", "", text); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	now = now.Add(-time.Hour) // the clock was set back
	if _, err := c.Send("ping", "build", "", "four"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := c.Send("later", "build", "", "x"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(from, channel.Dir, "ping.jsonl")
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"n":5,`); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := channel.Until(from, now.Add(-2*time.Second)) // when the second message was sent
	if err != nil || len(all) != 1 || len(all["ping"]) != 2 {
		t.Fatal(all, err)
	}
	if err := channel.Begin(to, all); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(name); err != nil || !slices.Equal(before, after) {
		t.Errorf("%q, before %q, %v", after, before, err)
	}
	m, err := channel.New(to, time.Now).Send("ping", "build", "", "another")
	if err != nil || m.N != 3 {
		t.Error(m, err)
	}
}

func TestUntilHostile(t *testing.T) {
	none := t.TempDir()
	if all, err := channel.Until(none, time.Now()); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	linked := t.TempDir()
	if err := os.Symlink(none, filepath.Join(linked, channel.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := channel.Until(linked, time.Now()); err == nil {
		t.Error("a link out of the session was read")
	}
	damaged := t.TempDir()
	if err := os.Mkdir(filepath.Join(damaged, channel.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, channel.Dir, "x.jsonl"), []byte("{\"n\":2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := channel.Until(damaged, time.Now()); err == nil {
		t.Error("a damaged channel was copied")
	}
}
