package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/worktree/internal/object"
)

// Changes compares two trees.
func (r Repo) Changes(ctx context.Context, from, to string) ([]object.Change, error) {
	changes, err := objects(ctx, r, []string{from, to}, func(s *object.Storage, trees []object.ID) ([]object.Change, error) {
		return s.Changes(trees[0], trees[1])
	})
	if err == nil || errors.Is(err, object.ErrManyChanges) {
		return changes, err
	}
	out, err := r.Output(ctx, DiffArgs("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options", from, to)...)
	if err != nil {
		return nil, err
	}
	return ParseRaw(out)
}

// ParseRaw parses -z --raw output without renames. If there are several old modes, as -c prints for merges,
// it uses the last one.
func ParseRaw(out []byte) ([]object.Change, error) {
	fields := Split(out)
	var changes []object.Change
	for i := 0; i+1 < len(fields); i += 2 {
		meta := fields[i]
		parents := len(meta) - len(strings.TrimLeft(meta, ":"))
		words := strings.Fields(meta[parents:])
		if parents == 0 || len(words) != 2*(parents+1)+1 {
			return nil, fmt.Errorf("git printed an unknown change %q", meta)
		}
		changes = append(changes, object.Change{
			Status: words[len(words)-1][0], OldMode: words[parents-1], OldOid: words[2*parents], Mode: words[parents],
			Oid: words[len(words)-2], Path: fields[i+1],
		})
	}
	return changes, nil
}

// Entries lists the files of a tree, or only those under the given paths, if any.
func (r Repo) Entries(ctx context.Context, tree string, paths ...string) ([]object.Entry, error) {
	entries, err := objects(ctx, r, []string{tree}, func(s *object.Storage, trees []object.ID) ([]object.Entry, error) {
		return s.Entries(trees[0], paths)
	})
	if err == nil {
		return entries, nil
	}
	args := append([]string{"ls-tree", "-r", "-z", "--full-tree", tree, "--"}, paths...)
	fields, err := r.Fields(ctx, args...)
	if err != nil {
		return nil, err
	}
	entries = make([]object.Entry, 0, len(fields))
	for _, field := range fields {
		meta, path, _ := strings.Cut(field, "\t")
		words := strings.Fields(meta)
		if len(words) != 3 {
			return nil, fmt.Errorf("git printed an unknown tree entry %q", field)
		}
		entries = append(entries, object.Entry{Mode: words[0], Oid: words[2], Path: path})
	}
	return entries, nil
}
