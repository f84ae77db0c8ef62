package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
)

// The path of the system's attributes file differs between builds of git.
func TestSystemAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		answer string // shell commands in place of git var
		file   string // "" is the usual file
	}{
		"another path": {`echo "$ATTRIBUTES"`, filepath.Join(t.TempDir(), "gitattributes")},
		"old git":      {"echo usage: git var >&2; exit 129", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			dir := t.TempDir()
			git := value[string](t)(exec.LookPath("git"))
			must(t, os.WriteFile(filepath.Join(dir, "git"), []byte(`#!/bin/sh
case " $* " in *" var GIT_ATTR_SYSTEM "*) `+c.answer+`; exit;; esac
exec `+git+` "$@"
`), 0o755))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			t.Setenv("ATTRIBUTES", c.file)
			if c.file == "" {
				equal(t, "converts", value[bool](t)(content.MayConvert(t.Context(), r, "HEAD")), file.Exists("/etc/gitattributes"))
				return
			}
			equal(t, "without the file", value[bool](t)(content.MayConvert(t.Context(), r, "HEAD")), false)
			write(t, c.file, "*.txt text eol=crlf\n")
			equal(t, "with the file", value[bool](t)(content.MayConvert(t.Context(), r, "HEAD")), true)
		})
	}
}
