package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/diff"
)

// A file in a commit is read through links inside the tree, within a bound, and whatever the worktree has.
func TestFileIn(t *testing.T) {
	r := sample(t)
	at := func(name string) string { return filepath.Join(r.Root, name) }
	must(t, os.MkdirAll(at("docs/deep"), 0o755))
	write(t, at("docs/deep/rules"), "be fair\n")
	write(t, at("large"), strings.Repeat("x", 101))
	for name, to := range map[string]string{
		"link": "docs/deep/rules", "docs/back": "../link", "elsewhere": "docs/deep", "nowhere": "missing", "itself": "itself",
		"outside": "../secret", "absolute": at("large"), "tolarge": "large", "todir": "docs",
	} {
		must(t, os.Symlink(to, at(name)))
	}
	write(t, filepath.Join(filepath.Dir(r.Root), "secret"), "secret\n")
	gitIn(t, r.Root, "add", "-A")
	gitIn(t, r.Root, "commit", "-qm", "links")
	tip := gitIn(t, r.Root, "rev-parse", "HEAD")
	write(t, at("docs/deep/rules"), "changed\n")
	for name, want := range map[string]any{
		"docs/deep/rules": "be fair\n", "link": "be fair\n", "docs/back": "be fair\n", "elsewhere/rules": "be fair\n",
		"none": fs.ErrNotExist, "docs": regularfile.ErrNotFile, "todir": regularfile.ErrNotFile, "nowhere": regularfile.ErrNotFile,
		"itself": regularfile.ErrNotFile, "outside": regularfile.ErrNotFile, "absolute": regularfile.ErrNotFile,
		"large": &regularfile.SizeError{Max: 100}, "tolarge": &regularfile.SizeError{Max: 100}, "large/none": regularfile.ErrNotFile,
	} {
		got, err := diff.FileIn(t.Context(), r, strings.TrimSpace(tip), name, 100)
		switch want := want.(type) {
		case string:
			if err != nil || string(got) != want {
				t.Errorf("%s: %q %v", name, got, err)
			}
		case *regularfile.SizeError:
			if !errors.As(err, &want) {
				t.Errorf("%s: %v", name, err)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s: %q %v, want %v", name, got, err, want)
			}
		}
	}
}
