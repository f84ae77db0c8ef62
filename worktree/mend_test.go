package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/isolation"
)

// Before git reads the worktree's HEAD, coven replaces it if it is not readable for git, and otherwise does
// not change it.
func TestMendHead(t *testing.T) {
	const branch = "ref: refs/heads/coven/T\n"
	outside := filepath.Join(t.TempDir(), "outside")
	for name, c := range map[string]struct {
		put  func(head string) error
		want string
	}{
		"a pipe":      {func(head string) error { return syscall.Mkfifo(head, 0o644) }, branch},
		"a link":      {func(head string) error { return os.Symlink(outside, head) }, branch},
		"a directory": {func(head string) error { return os.MkdirAll(filepath.Join(head, "below"), 0o755) }, branch},
		"too much":    {func(head string) error { return os.WriteFile(head, make([]byte, object.MaxGitFile+1), 0o644) }, branch},
		"nothing":     {func(string) error { return nil }, branch},
		"detached": {
			func(head string) error { return os.WriteFile(head, []byte(strings.Repeat("1", 40)+"\n"), 0o644) },
			strings.Repeat("1", 40) + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, outside, "others'")
			w := isolated(t, sample(t), "T")
			head := filepath.Join(w.Admin, "HEAD")
			must(t, os.Remove(head))
			must(t, c.put(head))
			must(t, isolation.RepairLinks(w))
			info, err := os.Lstat(head)
			must(t, err)
			if !info.Mode().IsRegular() {
				t.Fatalf("HEAD is %s", info.Mode())
			}
			equal(t, "HEAD", read(t, head), c.want)
			equal(t, "what a link led to", read(t, outside), "others'")
		})
	}
}
