package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Modes of entries that are not files.
const (
	ModeSubmodule = "160000"
	ModeTree      = "040000" // only At returns it
)

// A Change is a path that differs between two trees. Mode and Oid are from the second tree, and all zeros
// for a deleted path.
type Change struct {
	Status                     byte // A, D, M or T; renames are not detected
	OldMode, OldOid, Mode, Oid string
	Path                       string
}

// Changes compares two trees.
func (r Repo) Changes(ctx context.Context, from, to string) ([]Change, error) {
	changes, err := objects(ctx, r, []string{from, to}, func(s *storage, trees []plumbing.Hash) ([]Change, error) {
		return s.peelAndCompare(trees[0], trees[1])
	})
	if err == nil {
		return changes, nil
	}
	out, err := r.Output(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	return ParseRaw(out)
}

// ParseRaw parses -z --raw output without renames. If there are several old modes, as -c prints for merges,
// it uses the last one.
func ParseRaw(out []byte) ([]Change, error) {
	fields := Split(out)
	var changes []Change
	for i := 0; i+1 < len(fields); i += 2 {
		meta := fields[i]
		parents := len(meta) - len(strings.TrimLeft(meta, ":"))
		words := strings.Fields(meta[parents:])
		if parents == 0 || len(words) != 2*(parents+1)+1 {
			return nil, fmt.Errorf("git printed an unknown change %q", meta)
		}
		changes = append(changes, Change{
			Status: words[len(words)-1][0], OldMode: words[parents-1], OldOid: words[2*parents], Mode: words[parents],
			Oid: words[len(words)-2], Path: fields[i+1],
		})
	}
	return changes, nil
}

// An Entry is one file of a tree or an index.
type Entry struct{ Mode, Oid, Path string }

// Entries lists the files of a tree, or only those under the given paths, if any.
func (r Repo) Entries(ctx context.Context, tree string, paths ...string) ([]Entry, error) {
	entries, err := objects(ctx, r, []string{tree}, func(s *storage, trees []plumbing.Hash) ([]Entry, error) {
		return s.peelAndList(trees[0], paths)
	})
	if err == nil {
		return entries, nil
	}
	args := append([]string{"ls-tree", "-r", "-z", "--full-tree", tree, "--"}, paths...)
	fields, err := r.Fields(ctx, args...)
	if err != nil {
		return nil, err
	}
	entries = make([]Entry, 0, len(fields))
	for _, field := range fields {
		meta, path, _ := strings.Cut(field, "\t")
		words := strings.Fields(meta)
		if len(words) != 3 {
			return nil, fmt.Errorf("git printed an unknown tree entry %q", field)
		}
		entries = append(entries, Entry{Mode: words[0], Oid: words[2], Path: path})
	}
	return entries, nil
}
