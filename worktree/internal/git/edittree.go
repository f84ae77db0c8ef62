package git

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// EditTree stores a tree with some entries changed, and returns its oid. It is what git
// update-index --replace --index-info makes of the entries: mode "0" removes a file, and a file
// replaces a directory, or a directory a file, of the same name. The objects of the entries must
// exist. There is no other way to do it here: if the repository is not read in process, or the
// entries contradict each other, it fails, and an index of git's must be used.
func (r Repo) EditTree(ctx context.Context, tree string, edits []Entry) (string, error) {
	seen := map[string]bool{}
	for _, e := range edits {
		again := seen[e.Path]
		seen[e.Path] = true
		if again || !isPlainPath(e.Path) || hasDotGit(e.Path) {
			return "", fmt.Errorf("change %q in a tree: %w", e.Path, errAsk)
		}
	}
	var stored [][]byte
	edited, err := objects(ctx, r, []string{tree}, func(s *storage, ids []plumbing.Hash) (plumbing.Hash, error) {
		ed := treeEditor{storage: s}
		top, err := s.peel(ids[0])
		if err != nil {
			return top, err
		}
		nodes, err := ed.edit(top, edits)
		if err != nil {
			return top, err
		}
		top = ed.keep(nodes)
		stored = ed.stored
		return top, nil
	})
	if err != nil {
		return "", fmt.Errorf("change a tree: %w", err)
	}
	for _, body := range stored {
		if _, err := r.writeLoose(ctx, "tree", body); err != nil {
			return "", fmt.Errorf("store a tree: %w", err)
		}
	}
	return edited.String(), nil
}

// hasDotGit reports whether a path has a part that git accepts in no tree.
func hasDotGit(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// A treeEditor changes a tree and collects the trees that must be stored, those of directories
// before those that contain them.
type treeEditor struct {
	storage *storage
	stored  [][]byte
}

// edit returns the changed entries of a tree; the zero hash is an empty one.
func (ed *treeEditor) edit(tree plumbing.Hash, edits []Entry) ([]treeNode, error) {
	nodes, err := (&treeDiff{storage: ed.storage}).side(tree)
	if err != nil {
		return nil, err
	}
	nodes = slices.Clone(nodes)
	for name, at := range byFirst(edits) {
		i := slices.IndexFunc(nodes, func(n treeNode) bool { return n.name == name })
		var old treeNode
		if i >= 0 {
			old = nodes[i]
			nodes = slices.Delete(nodes, i, i+1)
		}
		now, err := ed.child(old, at)
		if err != nil {
			return nil, err
		}
		if now.mode != "" {
			now.name = name
			nodes = append(nodes, now)
		}
	}
	return nodes, nil
}

// editsAt are the edits of one name of a directory.
type editsAt struct {
	itself *Entry  // of the name
	below  []Entry // of what is in it, if it is a directory
}

// byFirst groups edits by the first part of their paths.
func byFirst(edits []Entry) map[string]editsAt {
	all := map[string]editsAt{}
	for _, e := range edits {
		name, rest, deeper := strings.Cut(e.Path, "/")
		at := all[name]
		if deeper {
			e.Path = rest
			at.below = append(at.below, e)
		} else {
			at.itself = &e
		}
		all[name] = at
	}
	return all
}

const removed = "0" // the mode of an entry to remove

// child returns what becomes of an entry; without a mode, nothing.
func (ed *treeEditor) child(old treeNode, at editsAt) (treeNode, error) {
	adds := slices.ContainsFunc(at.below, func(e Entry) bool { return e.Mode != removed })
	switch {
	case at.itself != nil && at.itself.Mode != removed:
		if adds {
			return old, errAsk
		}
		oid, err := hash(at.itself.Oid)
		return treeNode{mode: at.itself.Mode, oid: oid}, err
	case at.itself != nil && old.mode != modeTree:
		old = treeNode{}
	}
	if len(at.below) == 0 || old.mode != modeTree && !adds {
		return old, nil
	}
	if old.mode != modeTree {
		old = treeNode{mode: modeTree}
	}
	nodes, err := ed.edit(old.oid, at.below)
	if err != nil || len(nodes) == 0 {
		return treeNode{}, err
	}
	old.oid = ed.keep(nodes)
	return old, nil
}

// keep notes a tree to store and returns its oid.
func (ed *treeEditor) keep(nodes []treeNode) plumbing.Hash {
	slices.SortFunc(nodes, func(a, b treeNode) int { return strings.Compare(a.order(), b.order()) })
	var body []byte
	for _, n := range nodes {
		body = fmt.Appendf(body, "%s %s\x00%s", strings.TrimPrefix(n.mode, "0"), n.name, n.oid[:])
	}
	ed.stored = append(ed.stored, body)
	oid, _ := objectID("tree", body)
	raw, _ := hex.DecodeString(oid) // cannot fail
	return plumbing.Hash(raw)
}
