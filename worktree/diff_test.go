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

// Each diff has the change of a submodule, even if the configuration or .gitmodules says to ignore it.
func TestDiffOfIgnoredSubmodule(t *testing.T) {
	for name, ignore := range map[string][]string{
		".gitmodules":   {"config", "-f", ".gitmodules", "submodule.lib.ignore", "all"},
		"configuration": {"config", "submodule.lib.ignore", "all"},
		"every diff":    {"config", "diff.ignoreSubmodules", "all"},
		"log":           {"config", "diff.submodule", "log"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			r, upstream := superproject(t)
			before := gitIn(t, r.Root, "rev-parse", "HEAD")
			link := bump(t, r, upstream)
			after := gitIn(t, r.Root, "rev-parse", "HEAD")
			gitIn(t, r.Root, ignore...)
			d := value[diff.Diff](t)(diff.Between(ctx, r, before, after))
			if len(d.Files) != 1 || d.Files[0].Path != "lib" || !strings.Contains(d.Patch, "\n+Subproject commit "+link+"\n") || d.PatchID == "" {
				t.Errorf("diff: %+v", d)
			}
			equal(t, "in process", value[string](t)(diff.PatchID(ctx, r, before, after)), d.PatchID)
			without := *r
			without.Store = nil
			equal(t, "with git", value[string](t)(diff.PatchID(ctx, &without, before, after)), d.PatchID)
			equal(t, "paths", strings.Join(value[[]string](t)(diff.Paths(ctx, &without, before, after)), " "), "lib")
		})
	}
}

// Attributes and NUL bytes do not hide the lines of a text. Of a binary file, a diff has the hashes and sizes.
func TestDiffHidesNoText(t *testing.T) {
	r := sample(t)
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	hide := "* -diff\n*.bin binary\n*.rb diff=evil linguist-generated\nlate diff\n"
	for key, value := range map[string]string{"textconv": "echo harmless", "command": "echo harmless", "binary": "true", "xfuncname": "evil"} {
		gitIn(t, r.Root, "config", "diff.evil."+key, value)
	}
	for _, name := range []string{"was-binary", "picture"} {
		write(t, filepath.Join(r.Root, name), string(noise))
	}
	write(t, filepath.Join(r.Root, "gone"), string(noise[:900]))
	write(t, filepath.Join(r.Root, "moves.rb"), strings.Repeat("the same line\n", 20))
	write(t, filepath.Join(r.Root, "deleted"), "evil deleted \x00\n")
	write(t, filepath.Join(r.Root, ".gitattributes"), hide)
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-qm", "second")
	w := add(t, r, "t-1")
	at := func(name string) string { return filepath.Join(w.Path, name) }
	write(t, at(".gitattributes"), hide+"# evil attributes\n")
	texts := map[string]string{
		"file1.txt":  "one\nevil 1\n",
		"run.sh":     "#!/bin/sh\n: \x00\nevil 2\n",
		"a.bin":      "evil 3\n",
		"b.rb":       "evil 4\n",
		"late":       strings.Repeat("a line\n", 2000) + "\x00\nevil 5\n",
		"was-binary": "evil 6\n",
		"moved.rb":   strings.Repeat("the same line\n", 20) + "evil 7\n",
		"latin":      "in an old encoding \xe9\xe8 \x00\nevil 8\n",
	}
	for name, text := range texts {
		write(t, at(name), text)
	}
	must(t, os.Remove(at("moves.rb")))
	must(t, os.Remove(at("deleted")))
	must(t, os.Remove(at("gone")))
	write(t, at("picture"), string(noise[1:]))
	write(t, at("new.png"), strings.Repeat("\x00\x01", 2499))
	d := value[diff.Diff](t)(diff.Of(t.Context(), w, "main"))
	for name, text := range texts {
		lines := strings.Split(text, "\n")
		if want := "\n+" + lines[len(lines)-2] + "\n"; !strings.Contains(d.Of(name), strings.ReplaceAll(want, "\x00", `\x00`)) {
			t.Errorf("%s:\n%s", name, d.Of(name))
		}
	}
	if !strings.Contains(d.Of("deleted"), "\n-evil deleted \\x00\n") || !strings.Contains(d.Of("run.sh"), "\n+: \\x00\n") || strings.Contains(d.Patch, "\x00") {
		t.Errorf("%s\n%s", d.Of("deleted"), d.Of("run.sh"))
	}
	for name, want := range map[string]string{"gone": "900 bytes before, no file after", "picture": "5000 bytes before, 4999 bytes after", "new.png": "no file before, 4998 bytes after"} {
		hash := gitIn(t, w.Path, "hash-object", "--no-filters", at("picture"))
		if part := d.Of(name); !strings.Contains(part, "\nNot shown because it is binary: "+want+"\n") || name == "picture" && !strings.Contains(part, hash) {
			t.Errorf("%s:\n%s", name, part)
		}
	}
	equal(t, "parts", strings.Join(d.Parts(), ""), d.Patch)
	for _, f := range d.Files {
		if _, text := texts[f.Path]; text && (f.Binary || f.Added != strings.Count(d.Of(f.Path), "\n+")-1) {
			t.Errorf("%+v", f)
		}
	}
}
