package git

import (
	"context"
	"fmt"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
)

// MergeApart stores the tree that git merge-tree makes of two commits that have added and changed
// different files since their only merge base. ours counts as the tree of the first one. In every other
// case it fails, and git must merge: whoever removes a file may have renamed it.
func (r Repo) MergeApart(ctx context.Context, one, two, ours string) (tree string, err error) {
	edits, err := objects(ctx, r, []string{one, two, ours}, func(s *storage, ids []plumbing.Hash) ([]Entry, error) {
		bases, err := s.mergeBases(ids[0], ids[1])
		if err != nil {
			return nil, err
		}
		if len(bases) != 1 {
			return nil, errAsk
		}
		base := plumbing.NewHash(bases[0])
		theirs, err := s.peelAndCompare(base, ids[1])
		if err != nil {
			return nil, err
		}
		own, err := s.peelAndCompare(base, ids[2])
		if err != nil {
			return nil, err
		}
		return disjoint(own, theirs)
	})
	if err != nil {
		return "", fmt.Errorf("merge %s and %s: %w", one, two, err)
	}
	return r.EditTree(ctx, two, edits)
}

// disjoint returns what one side of a merge has added and changed, if the other side did that with other
// files, or did the same. It fails if a side did anything else.
func disjoint(own, others []Change) ([]Entry, error) {
	taken := map[string]Change{} // by the other side: files, and zero for the directories above them
	for _, c := range others {
		if !addsOrChanges(c) {
			return nil, errAsk
		}
		taken[c.Path] = c
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			taken[dir] = Change{}
		}
	}
	var edits []Entry
	for _, c := range own {
		if !addsOrChanges(c) {
			return nil, errAsk
		}
		if other, found := taken[c.Path]; found && c != other {
			return nil, errAsk
		} else if found {
			continue
		}
		for dir := path.Dir(c.Path); dir != "."; dir = path.Dir(dir) {
			if taken[dir].Path != "" {
				return nil, errAsk
			}
		}
		edits = append(edits, Entry{Mode: c.Mode, Oid: c.Oid, Path: c.Path})
	}
	return edits, nil
}

// addsOrChanges reports whether a change leaves a file, or a link, where none or one of the same kind was.
func addsOrChanges(c Change) bool {
	return (c.Status == 'A' || c.Status == 'M') && c.Mode != ModeSubmodule && c.OldMode != ModeSubmodule
}
