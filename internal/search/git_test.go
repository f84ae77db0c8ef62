package search_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/search"
)

// gitList lists files like package worktree, which this package does not import.
func gitList(t testing.TB, dir string) search.List {
	return func(context.Context) (search.Listing, error) {
		l := search.Listing{Depends: []string{filepath.Join(dir, ".git", "index"), filepath.Join(dir, ".git", "info", "exclude")}}
		l.Files = fields(git(t, dir, "ls-files", "-z", "-c", "-o", "--exclude-standard"))
		l.Ignored = fields(git(t, dir, "ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory"))
		return l, nil
	}
}

func fields(out string) []string {
	if out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}
