package object

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// modeNone is the mode of a path that does not exist.
const modeNone = "000000"

// treeNode is an entry of one tree object.
type treeNode struct {
	name, mode string
	oid        ID
}

// order is git's sort key for the entries of a tree.
func (n treeNode) order() string {
	if n.mode == ModeTree {
		return n.name + "/"
	}
	return n.name
}

func (s *Storage) tree(oid ID) ([]treeNode, error) {
	raw, err := s.object(oid)
	if err != nil {
		return nil, err
	}
	if raw.Type() != plumbing.TreeObject || raw.Size() > maxObject {
		return nil, ErrUnsupported
	}
	decoded, err := object.DecodeTree(nil, raw)
	if err != nil {
		return nil, err
	}
	nodes := make([]treeNode, 0, len(decoded.Entries))
	for _, e := range decoded.Entries {
		nodes = append(nodes, treeNode{name: e.Name, mode: canonical(uint32(e.Mode)), oid: e.Hash})
	}
	if !wellFormed(nodes) {
		return nil, ErrUnsupported
	}
	return nodes, nil
}

// wellFormed reports whether a tree could have been written by git: each name is a single path element and
// unique, and the names are sorted.
func wellFormed(nodes []treeNode) bool {
	for i, n := range nodes {
		if n.name == "" || strings.Contains(n.name, "/") || i > 0 && nodes[i-1].order() >= n.order() {
			return false
		}
		if n.mode != ModeTree {
			continue
		}
		if _, file := slices.BinarySearchFunc(nodes[:i], n.name, func(n treeNode, name string) int { return strings.Compare(n.order(), name) }); file {
			return false
		}
	}
	return true
}

// canonical returns a mode in the form in which git prints it. Old programs may have stored other forms.
func canonical(mode uint32) string {
	switch kind := mode & 0o170000; {
	case kind == 0o100000 && mode&0o100 != 0:
		return "100755"
	case kind == 0o100000:
		return "100644"
	case kind == 0o120000:
		return "120000"
	case kind == 0o040000:
		return ModeTree
	}
	return ModeSubmodule
}

// peel returns the tree of a commit or tree.
func (s *Storage) peel(oid ID) (ID, error) {
	kind, raw, err := s.body(oid)
	switch {
	case err != nil:
		return plumbing.ZeroHash, err
	case kind == plumbing.TreeObject:
		return oid, nil
	case kind == plumbing.CommitObject:
		return hash(ParseCommit(oid.String(), raw).Tree)
	}
	return plumbing.ZeroHash, ErrUnsupported
}

// TreeOf returns the tree of a commit or tree, which must be well-formed.
func (s *Storage) TreeOf(treeish ID) (string, error) {
	tree, err := s.peel(treeish)
	if err != nil {
		return "", err
	}
	_, err = s.tree(tree)
	return tree.String(), err
}

// Level lists the entries of one tree object. Their paths are names.
func (s *Storage) Level(tree ID) ([]Entry, error) {
	nodes, err := s.tree(tree)
	entries := make([]Entry, 0, len(nodes))
	for _, n := range nodes {
		entries = append(entries, Entry{Mode: n.mode, Oid: n.oid.String(), Path: n.name})
	}
	return entries, err
}

// TreeBody returns the content of a tree object with these entries, whose paths are names. Its IDs are SHA-1.
func TreeBody(entries []Entry) ([]byte, error) {
	var nodes []treeNode
	for _, e := range entries {
		oid, err := hash(e.Oid)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, treeNode{name: e.Path, mode: e.Mode, oid: oid})
	}
	slices.SortFunc(nodes, func(a, b treeNode) int { return strings.Compare(a.order(), b.order()) })
	if !wellFormed(nodes) {
		return nil, ErrUnsupported
	}
	var body []byte
	for _, n := range nodes {
		body = fmt.Appendf(body, "%s %s\x00", strings.TrimPrefix(n.mode, "0"), n.name)
		body = append(body, n.oid[:]...)
	}
	return body, nil
}

// Entries lists the files of a commit or tree, or only those under the given paths, if any.
func (s *Storage) Entries(treeish ID, paths []string) ([]Entry, error) {
	if slices.ContainsFunc(paths, isUnusualPath) {
		return nil, ErrUnsupported
	}
	tree, err := s.peel(treeish)
	if err != nil {
		return nil, err
	}
	found := []Entry{}
	var walk func(tree ID, dir string) error
	walk = func(tree ID, dir string) error {
		nodes, err := s.tree(tree)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			path := dir + n.name
			inside, above := selected(path, paths)
			switch {
			case n.mode == ModeTree && (inside || above):
				err = walk(n.oid, path+"/")
			case n.mode != ModeTree && inside:
				found = append(found, Entry{Mode: n.mode, Oid: n.oid.String(), Path: path})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(tree, "")
}

// selected reports whether path equals or is below one of paths, and whether it is above one.
func selected(path string, paths []string) (inside, above bool) {
	inside = len(paths) == 0
	for _, p := range paths {
		inside = inside || path == p || strings.HasPrefix(path, p+"/")
		above = above || strings.HasPrefix(p, path+"/")
	}
	return inside, above
}

// isUnusualPath reports whether git changes a path. It normalizes doubled and trailing slashes and dots.
func isUnusualPath(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return true
		}
	}
	return false
}

// Changes compares two commits or trees like `git diff-tree -r --no-renames`.
func (s *Storage) Changes(from, to ID) ([]Change, error) {
	before, err := s.peel(from)
	if err != nil {
		return nil, err
	}
	after, err := s.peel(to)
	if err != nil {
		return nil, err
	}
	if before == after {
		_, err := s.tree(before) // git reads it as well
		return nil, err
	}
	d := treeDiff{storage: s}
	err = d.compare(before, after, "")
	return d.changes, err
}

// ErrManyChanges means that two trees differ in more files than coven compares. A few trees that contain each other many
// times have more files than any disk.
var ErrManyChanges = fmt.Errorf("more than %d files differ", maxChanges)

const maxChanges = 1_000_000

type treeDiff struct {
	storage *Storage
	changes []Change
}

// compare adds the changes below a directory. The zero hash stands for an empty directory.
func (d *treeDiff) compare(from, to ID, dir string) error {
	if from == to {
		return nil
	}
	before, err := d.side(from)
	if err != nil {
		return err
	}
	after, err := d.side(to)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		if len(d.changes) > maxChanges {
			return ErrManyChanges
		}
		var old, now treeNode
		switch order := compareFirst(before, after); {
		case order == 0:
			old, now, before, after = before[0], after[0], before[1:], after[1:]
		case order < 0:
			old, before = before[0], before[1:]
		default:
			now, after = after[0], after[1:]
		}
		if err := d.pair(old, now, dir); err != nil {
			return err
		}
	}
	return nil
}

func (d *treeDiff) side(tree ID) ([]treeNode, error) {
	if tree.IsZero() {
		return nil, nil
	}
	return d.storage.tree(tree)
}

func compareFirst(before, after []treeNode) int {
	switch {
	case len(before) == 0:
		return 1
	case len(after) == 0:
		return -1
	}
	return strings.Compare(before[0].order(), after[0].order())
}

// pair adds the change between two entries of the same name, or of a missing entry to or from a present
// one.
func (d *treeDiff) pair(old, now treeNode, dir string) error {
	if old.mode == now.mode && old.oid == now.oid {
		return nil
	}
	if old.mode == ModeTree || now.mode == ModeTree {
		return d.compare(old.oid, now.oid, dir+old.name+now.nameUnless(old)+"/")
	}
	c := Change{Status: 'M', OldMode: old.mode, OldOid: old.oid.String(), Mode: now.mode, Oid: now.oid.String(), Path: dir + now.name}
	switch {
	case old.name == "":
		c.Status, c.OldMode = 'A', modeNone
	case now.name == "":
		c.Status, c.Mode, c.Path = 'D', modeNone, dir+old.name
	case kindOf(old.mode) != kindOf(now.mode):
		c.Status = 'T'
	}
	d.changes = append(d.changes, c)
	return nil
}

// nameUnless returns the name of n, or "" if other has a name.
func (n treeNode) nameUnless(other treeNode) string {
	if other.name != "" {
		return ""
	}
	return n.name
}

// kindOf returns the part of a mode that distinguishes files, links and submodules.
func kindOf(mode string) string { return mode[:3] }

// EntryAt returns the entry at a path. If a parent of the path is not a directory, it returns that parent.
func (s *Storage) EntryAt(treeish ID, path string) (Entry, error) {
	if isUnusualPath(path) {
		return Entry{}, ErrUnsupported
	}
	at, err := s.peel(treeish)
	rest, dir := path, ""
	for err == nil {
		var nodes []treeNode
		name, below, deeper := strings.Cut(rest, "/")
		if nodes, err = s.tree(at); err != nil {
			break
		}
		i := slices.IndexFunc(nodes, func(n treeNode) bool { return n.name == name })
		if i < 0 {
			return Entry{}, nil
		}
		if !deeper || nodes[i].mode != ModeTree {
			return Entry{Mode: nodes[i].mode, Oid: nodes[i].oid.String(), Path: dir + name}, nil
		}
		at, rest, dir = nodes[i].oid, below, dir+name+"/"
	}
	return Entry{}, err
}

// BlobAt reads a file in a commit or tree.
func (s *Storage) BlobAt(treeish ID, path string) ([]byte, error) {
	entry, err := s.EntryAt(treeish, path)
	if err != nil {
		return nil, err
	}
	if entry.Path != path || entry.Mode == ModeSubmodule || entry.Mode == ModeTree {
		return nil, fmt.Errorf("%s: %w", path, ErrUnsupported)
	}
	kind, content, err := s.body(plumbing.NewHash(entry.Oid))
	if err == nil && kind != plumbing.BlobObject {
		err = ErrUnsupported
	}
	return bytes.Clone(content), err
}
