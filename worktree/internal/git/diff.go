package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coven-run/coven/worktree/internal/object"
)

// DiffArgs returns the arguments of a git command that compares trees or an index, such as diff-tree. Its output has
// every change: no configuration and no .gitmodules leaves out a submodule, and no configured program writes it.
func DiffArgs(command string, options ...string) []string {
	return append([]string{command, "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none", "--submodule=short"}, options...)
}

// maxText limits the size of a file that counts as text although it has NUL bytes, in bytes.
const maxText = 32 << 20

// Texts returns which of the blobs are text. Only the content decides: attributes, which a change could bring along,
// have no effect.
func (r Repo) Texts(ctx context.Context, oids []string) (map[string]bool, error) {
	texts := map[string]bool{}
	err := r.Objects(ctx, oids, func(o object.Object, body io.Reader) error {
		if o.Size > maxText {
			return nil
		}
		content, err := io.ReadAll(body)
		texts[o.Oid] = isText(content)
		return err
	})
	if errors.Is(err, ErrNoObject) { // git could not have shown it either
		err = nil
	}
	return texts, err
}

// isText reports whether a content is text: it has no NUL byte, or at most one byte in ten is a NUL, another control
// character or invalid UTF-8. The NULs that a change adds to a text do not hide it.
func isText(content []byte) bool {
	if bytes.IndexByte(content, 0) < 0 {
		return true
	}
	odd := 0
	for rest := content; len(rest) > 0; {
		char, size := utf8.DecodeRune(rest)
		if char == utf8.RuneError && size == 1 || char < ' ' && (char < '\b' || char > '\r') && char != '\x1b' {
			odd++
		}
		rest = rest[size:]
	}
	return odd <= len(content)/10+1
}
