package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/diff"
)

// Each file has its own part of the patch, regardless of its name, status or content, and is found by its
// current and former name.
func TestParts(t *testing.T) {
	r := sample(t)
	dir := r.Root
	write(t, filepath.Join(dir, "moves.txt"), strings.Repeat("the same line\n", 20))
	write(t, filepath.Join(dir, "becomes-a-link"), "a file\n")
	write(t, filepath.Join(dir, "picture"), "\x00\x01\x02")
	must(t, os.Symlink("file1.txt", filepath.Join(dir, "was-a-link")))
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "-qm", "second")
	w := add(t, r, "t-1")
	at := func(name string) string { return filepath.Join(w.Path, name) }
	must(t, os.Rename(at("moves.txt"), at("moved.txt")))
	must(t, os.Remove(at("becomes-a-link")))
	must(t, os.Symlink("file2.txt", at("becomes-a-link")))
	must(t, os.Remove(at("was-a-link")))
	write(t, at("was-a-link"), "a file\n")
	write(t, at("picture"), "\x00\x03")
	must(t, os.Remove(at("file3.txt")))
	must(t, os.Chmod(at("file4.txt"), 0o755))
	write(t, at("empty"), "")
	write(t, at("file5.txt"), "diff --git a/x b/x\ndiff --git a/file6.txt b/file6.txt\n--- a/x\n+++ b/x\n\ndiff --git a/y b/y")
	names := []string{"with space", `quo"te`, "line\nend", "tab\there", "Grüße-日本", "\xff\xfe", "-p", "line\ndiff --git a b"}
	for _, name := range names {
		write(t, at(name), "in "+name+"\n")
	}
	d := value[diff.Diff](t)(diff.Of(t.Context(), w, "main"))
	parts := d.Parts()
	equal(t, "files", len(d.Files), 8+len(names))
	equal(t, "parts", len(parts), len(d.Files))
	equal(t, "all of it", strings.Join(parts, ""), d.Patch)
	status := map[string]string{}
	for i, f := range d.Files {
		status[f.Path] = f.Status
		sections := 1
		if f.Status == "T" {
			sections = 2
		}
		if n := strings.Count("\n"+parts[i], "\ndiff --git "); n != sections {
			t.Errorf("%q has %d sections:\n%s", f.Path, n, parts[i])
		}
		if d.Of(f.Path) != parts[i] {
			t.Errorf("by its name %q it is\n%s", f.Path, d.Of(f.Path))
		}
		equal(t, f.Path+" is binary", f.Binary, f.Path == "picture")
	}
	for _, name := range names {
		if !strings.Contains(d.Of(name), "+in ") {
			t.Errorf("of %q:\n%s", name, d.Of(name))
		}
	}
	for path, want := range map[string]string{
		"becomes-a-link": "T", "was-a-link": "T", "picture": "M", "moved.txt": "R", "file3.txt": "D", "file4.txt": "M", "empty": "A", "file5.txt": "M",
	} {
		equal(t, path, status[path], want)
	}
	equal(t, "by its old name", d.Of("moves.txt"), d.Of("moved.txt"))
	equal(t, "of two", d.Of("picture", "empty"), d.Of("empty")+d.Of("picture"))
	equal(t, "of none", d.Of("nowhere"), "")
	if !strings.Contains(d.Of("picture"), "Binary files") || !strings.Contains(d.Of("becomes-a-link"), "+file2.txt") {
		t.Errorf("%s\n%s", d.Of("picture"), d.Of("becomes-a-link"))
	}
	equal(t, "parts of nothing", len(diff.Diff{}.Parts()), 0)
}
