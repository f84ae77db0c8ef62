package channel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/agent/channel"
)

func now() time.Time { return time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC) }

func texts(all []channel.Message) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%d:%s:%s ", m.N, m.From, m.Text)
	}
	return strings.TrimSpace(b.String())
}

func TestSendRead(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	c := channel.New(dir, now)
	if all, last, err := c.Read(ctx, "work", 0, 0); len(all) != 0 || last != 0 || err != nil {
		t.Fatal(all, last, err)
	}
	for i, text := range []string{"one", "two\nlines", "three"} {
		if m, err := c.Send("work", "build", "implement#1", text); m.N != i+1 || err != nil {
			t.Fatal(m, err)
		}
	}
	for _, reader := range []*channel.Channels{c, channel.New(dir, now)} { // another process
		for since, want := range map[int]string{-5: "1:build:one 2:build:two\nlines 3:build:three", 0: "1:build:one 2:build:two\nlines 3:build:three", 2: "3:build:three", 3: "", 99: ""} {
			if all, last, err := reader.Read(ctx, "work", since, 0); texts(all) != want || last != 3 || err != nil {
				t.Errorf("after %d: %q %d %v", since, texts(all), last, err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(dir, channel.Dir, "work.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// C-142: agents that send and read concurrently lose nothing, and all see the same order.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const agents, each = 8, 25
	c := channel.New(t.TempDir(), now)
	seen := make([]string, agents)
	var all sync.WaitGroup
	for a := range agents {
		all.Go(func() {
			for i := range each {
				if _, err := c.Send("all", fmt.Sprint(a), "", fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			last := 0
			for last < agents*each {
				got, _, err := c.Read(t.Context(), "all", last, channel.MaxWait)
				if err != nil || len(got) == 0 {
					t.Errorf("after %d: %v", last, err)
					return
				}
				seen[a] += texts(got) + " "
				last = got[len(got)-1].N
			}
		})
	}
	all.Wait()
	next := make([]int, agents)
	for field := range strings.FieldsSeq(seen[0]) {
		var n, a, i int
		if _, err := fmt.Sscanf(field, "%d:%d:%d", &n, &a, &i); err != nil || next[a] != i {
			t.Fatalf("%s: message %d of agent %d comes next", field, next[a], a)
		}
		next[a]++
	}
	for a, n := range next {
		if n != each || seen[a] != seen[0] {
			t.Errorf("agent %d: %d of its messages, another order: %v", a, n, seen[a] != seen[0])
		}
	}
}

// A waiting reader returns when it is canceled or when no message arrived in time.
func TestWait(t *testing.T) {
	t.Parallel()
	c := channel.New(t.TempDir(), now)
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stop)
	if _, _, err := c.Read(ctx, "work", 0, channel.MaxWait); !errors.Is(err, stop) {
		t.Error(err)
	}
	if all, last, err := c.Read(t.Context(), "work", 0, time.Millisecond); len(all) != 0 || last != 0 || err != nil {
		t.Error(all, last, err)
	}
}

func TestBad(t *testing.T) {
	t.Parallel()
	c := channel.New(t.TempDir(), now)
	for name, text := range map[string]string{"": "x", "../x": "x", "A": "x", ".x": "x", "x/y": "x", "ok": "", "big": strings.Repeat("x", channel.MaxText+1), strings.Repeat("x", 65): "x"} {
		if _, err := c.Send(name, "a", "", text); err == nil {
			t.Errorf("%q took %d bytes", name, len(text))
		}
		if _, _, err := c.Read(t.Context(), name, 0, 0); (err == nil) != (name == "ok" || name == "big") {
			t.Errorf("read %q: %v", name, err)
		}
	}
}

// Long messages are read in several parts.
func TestParts(t *testing.T) {
	t.Parallel()
	c := channel.New(t.TempDir(), now)
	for range 5 {
		if _, err := c.Send("long", "a", "", strings.Repeat("x", channel.MaxText)); err != nil {
			t.Fatal(err)
		}
	}
	for since := range 5 {
		if all, last, err := c.Read(t.Context(), "long", since, 0); len(all) != 1 || all[0].N != since+1 || last != 5 || err != nil {
			t.Errorf("after %d: %d messages of %d, %v", since, len(all), last, err)
		}
	}
}

// An incomplete line after a crash is no message. A file that was changed by another program is refused.
func TestDamage(t *testing.T) {
	t.Parallel()
	line := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"time":"2026-11-25T10:00:00Z","from":"a","text":"x"}`, n)
	}
	for content, want := range map[string]string{
		"":                            "1:b:y",
		line(1) + "\n" + line(2)[:30]: "1:a:x 2:b:y",
		line(1) + "\n" + line(2):      "1:a:x 2:b:y",
		line(1)[:5]:                   "1:b:y",
		line(2) + "\n":                "",
		"no JSON\n":                   "",
		line(1) + "\n\n":              "",
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, channel.Dir, "work.jsonl")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := channel.New(dir, now).Send("work", "b", "", "y")
		all, _, readErr := channel.New(dir, now).Read(t.Context(), "work", 0, 0)
		if texts(all) != want || (err == nil) != (want != "") || (readErr == nil) != (want != "") {
			t.Errorf("%q: %q, %v, %v", content, texts(all), err, readErr)
		}
	}
}

// A link or a pipe in place of a channel is not followed.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(dir, file, outside string) error{
		"link":      func(_, file, outside string) error { return os.Symlink(outside, file) },
		"pipe":      func(_, file, _ string) error { return syscall.Mkfifo(file, 0o600) },
		"directory": func(_, file, _ string) error { return os.Mkdir(file, 0o700) },
		"linked directory": func(dir, _, outside string) error {
			return errors.Join(os.Remove(dir), os.Symlink(filepath.Dir(outside), dir))
		},
	} {
		session, outside := t.TempDir(), filepath.Join(t.TempDir(), "work.jsonl")
		if name == "linked directory" {
			if err := os.WriteFile(filepath.Join(filepath.Dir(outside), "other.jsonl"), []byte("torn"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(session, channel.Dir)
		if err := errors.Join(os.Mkdir(dir, 0o700), plant(dir, filepath.Join(dir, "work.jsonl"), outside)); err != nil {
			t.Fatal(err)
		}
		if _, err := channel.New(session, now).Send("work", "a", "", "x"); err == nil {
			t.Errorf("%s: a message was sent", name)
		}
		if _, err := os.Stat(outside); err == nil {
			t.Errorf("%s: it was written outside", name)
		}
		if name != "linked directory" {
			continue
		}
		_, _, err := channel.New(session, now).Read(t.Context(), "other", 0, 0)
		if left, _ := os.ReadFile(filepath.Join(filepath.Dir(outside), "other.jsonl")); err == nil || string(left) != "torn" {
			t.Errorf("a file outside is now %q, %v", left, err)
		}
	}
}

// The size and the number of channels are limited, also across processes, and stored messages stay readable. Reading
// does not create a channel.
func TestLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := channel.New(dir, now)
	for i := range 150 {
		if _, _, err := c.Read(t.Context(), fmt.Sprint("read-", i), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if _, err := c.Send(fmt.Sprint("sent-", i), "a", "", "x"); err != nil {
			t.Fatal(err)
		}
	}
	for _, sender := range []*channel.Channels{c, channel.New(dir, now)} {
		if _, err := sender.Send("more", "a", "", "x"); err == nil || !strings.Contains(err.Error(), "the session has 100 channels") {
			t.Error(err)
		}
	}
	if _, err := channel.New(dir, now).Send("sent-7", "a", "", "y"); err != nil {
		t.Error(err)
	}

	dir = t.TempDir()
	file := filepath.Join(dir, channel.Dir, "big.jsonl")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, 63<<20))
	if err != nil {
		t.Fatal(err)
	}
	c = channel.New(dir, now)
	sent := 0
	for escaped := strings.Repeat("\x01", channel.MaxText); err == nil && sent < 10; sent++ { // six bytes each
		_, err = c.Send("small", "a", "", escaped)
	}
	if err == nil || sent != 3 || !strings.Contains(err.Error(), "the maximum is 67108864") {
		t.Errorf("%d messages: %v", sent, err)
	}
	if all, last, err := channel.New(dir, now).Read(t.Context(), "small", 0, 0); len(all) != 1 || last != sent-1 || err != nil {
		t.Errorf("%d of %d messages, %v", len(all), last, err)
	}
}

// Changes of the files between two messages are noticed: a link in place of their directory, and the partial line of a
// failed write.
func TestChangedBetween(t *testing.T) {
	t.Parallel()
	session, outside := t.TempDir(), t.TempDir()
	dir := filepath.Join(session, channel.Dir)
	file := filepath.Join(dir, "work.jsonl")
	c := channel.New(session, now)
	send := func() error {
		_, err := c.Send("work", "a", "", "x")
		return err
	}
	if err := errors.Join(send(), os.Rename(dir, dir+".moved"), os.Symlink(outside, dir)); err != nil {
		t.Fatal(err)
	}
	if err := send(); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Error(err)
	}
	if left, err := os.ReadDir(outside); len(left) > 0 || err != nil {
		t.Errorf("it was written outside: %v, %v", left, err)
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".moved", dir), send(), os.Rename(file, file+".moved"), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	if send() == nil {
		t.Error("a message was sent to a directory")
	}
	kept, err := os.ReadFile(file + ".moved")
	if err := errors.Join(err, os.RemoveAll(file), os.WriteFile(file, append(kept, `{"n":3,`...), 0o600), send()); err != nil {
		t.Fatal(err)
	}
	if all, _, err := channel.New(session, now).Read(t.Context(), "work", 0, 0); texts(all) != "1:a:x 2:a:x 3:a:x" || err != nil {
		t.Errorf("%q, %v", texts(all), err)
	}
}

// A full channel accepts no more messages.
func TestFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&b, `{"n":%d,"time":"2026-11-25T10:00:00Z","from":"a","text":"x"}`+"\n", n+1)
	}
	file := filepath.Join(dir, channel.Dir, "work.jsonl")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(b.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := channel.New(dir, now).Send("work", "a", "", "x"); err == nil || err.Error() != "channel work has 10000 messages, the maximum" {
		t.Error(err)
	}
}
