package plugins_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins/reviewer"
)

func newFakeServices(t *testing.T) *fakeServices {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return &fakeServices{root: root}
}

// A token is valid for a single call.
func TestTokens(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	defer c.accompany(t)()
	got, err := c.ask(t, "thief", titled(""), newFakeServices(t))
	must(t, err)
	if n := strings.Count(got.Summary, "unknown or expired call token"); n != 2 {
		t.Errorf("the thief was told %q", got.Summary)
	}
	for _, want := range []string{"nothing yet", "unknown or expired call token"} {
		got, err := c.ask(t, "hoarder", titled(""), newFakeServices(t))
		if err != nil || !strings.Contains(got.Summary, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// A plugin cannot read files outside the worktree, and gets the reason.
func TestBurglar(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	change := titled("")
	for _, path := range []string{"file", "../../etc/passwd", "/etc/passwd", "link", "missing"} {
		change.Files = append(change.Files, reviewer.File{Path: path, Status: "M"})
	}
	got, err := c.ask(t, "burglar", change, newFakeServices(t))
	must(t, err)
	want := "file: read content\n../../etc/passwd: forbidden\n/etc/passwd: forbidden\nlink: forbidden\nmissing: not there"
	if got.Summary != want {
		t.Errorf("the burglar was told\n%s", got.Summary)
	}
}

func TestCrowd(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	d := newFakeServices(t)
	change := titled("crowd")
	change.Files = []reviewer.File{{Path: "file", Status: "M"}}
	_, err := c.ask(t, "crowd", change, d)
	must(t, err)
	slices.Sort(d.log)
	if len(d.log) != 10 || d.log[0] != "place 0" || d.log[9] != "place 9" {
		t.Errorf("logged: %q", d.log)
	}
}

// A plugin gets an error if coven offers no services.
func TestNoServices(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	change := titled("")
	change.Files = []reviewer.File{{Path: "file", Status: "M"}}
	got, err := c.ask(t, "burglar", change, nil)
	if err != nil || got.Summary != "file: coven: read file: coven offers no services in this call: not supported" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Requests to coven's services end with the call.
func TestServicesEnd(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	d := newFakeServices(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	d.wait = begun
	d.run = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	_, err := c.ask(t, "asker", titled(""), d)
	must(t, err)
	select {
	case <-ended:
	default:
		t.Error("the agent is still at work")
	}
}

// Services that a plugin offers without a request are rejected.
func TestHawker(t *testing.T) {
	t.Parallel()
	c := newCage(t)
	defer c.accompany(t)()
	got, err := c.ask(t, "hawker", titled(""), nil)
	if err != nil || got.Summary != "turned away" {
		t.Errorf("%+v, %v", got, err)
	}
}
