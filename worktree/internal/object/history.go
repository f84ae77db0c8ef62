package object

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxWalk is the maximum number of commits that a history query reads in process. git answers longer ones
// faster, because it has a commit graph.
const maxWalk = 256

// Commit reads a commit.
func (s *Storage) Commit(oid ID) (Commit, error) {
	kind, raw, err := s.body(oid)
	if err != nil {
		return Commit{}, err
	}
	if kind != plumbing.CommitObject {
		return Commit{}, ErrUnsupported
	}
	return ParseCommit(oid.String(), raw), nil
}

// Commits reads commits.
func (s *Storage) Commits(oids []ID) ([]Commit, error) {
	var commits []Commit
	for _, oid := range oids {
		c, err := s.Commit(oid)
		if err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// IsAncestor reports whether a commit is reachable from another, or from itself.
func (s *Storage) IsAncestor(ancestor, of ID) (bool, error) {
	bases, err := s.MergeBases(ancestor, of)
	return slices.Contains(bases, ancestor.String()), err
}

// MergeBases returns the common ancestors of two commits that git's walk finds. If there are several, some
// may be ancestors of others.
func (s *Storage) MergeBases(one, two ID) ([]string, error) {
	w := walk{storage: s, seen: map[string]*visited{}}
	if err := w.reach(one.String(), fromOne); err != nil {
		return nil, err
	}
	if err := w.reach(two.String(), fromTwo); err != nil {
		return nil, err
	}
	var found []*visited
	for w.unsettled() {
		v := w.next()
		marks := v.marks
		if marks == fromOne|fromTwo {
			if !slices.Contains(found, v) { // otherwise it was reached again
				found = append(found, v)
			}
			marks |= below
		}
		for _, parent := range v.commit.Parents {
			if err := w.reach(parent, marks); err != nil {
				return nil, err
			}
		}
	}
	var bases []string
	for _, v := range found {
		if v.marks&below == 0 {
			bases = append(bases, v.commit.Oid)
		}
	}
	return bases, nil
}

// Marks of a commit in a walk.
const (
	fromOne = 1 << iota
	fromTwo
	below // reachable from a common ancestor
)

type visited struct {
	commit Commit
	marks  int
}

// walk visits commits, newest first.
type walk struct {
	storage *Storage
	seen    map[string]*visited
	queue   []*visited
}

// reach adds marks to a commit, and queues it if some of them are new.
func (w *walk) reach(oid string, marks int) error {
	v, known := w.seen[oid]
	if !known {
		if len(w.seen) == maxWalk {
			return ErrUnsupported
		}
		id, err := hash(oid)
		if err != nil {
			return err
		}
		c, err := w.storage.Commit(id)
		if err != nil {
			return err
		}
		v = &visited{commit: c}
		w.seen[oid] = v
	}
	if v.marks&marks != marks {
		v.marks |= marks
		w.queue = append(w.queue, v)
	}
	return nil
}

// next removes the newest commit from the queue.
func (w *walk) next() *visited {
	v := slices.MaxFunc(w.queue, func(a, b *visited) int { return a.commit.Time.Compare(b.commit.Time) })
	i := slices.Index(w.queue, v)
	w.queue = slices.Delete(w.queue, i, i+1)
	return v
}

// unsettled reports whether a queued commit may lead to another common ancestor.
func (w *walk) unsettled() bool {
	return slices.ContainsFunc(w.queue, func(v *visited) bool { return v.marks&below == 0 })
}
