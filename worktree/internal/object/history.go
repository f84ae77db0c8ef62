package object

import (
	"container/heap"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxWalk is the maximum number of commits that a history query reads in process. git answers longer ones
// faster, because it has a commit graph.
const maxWalk = 256

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
	for w.queue.unsettled() {
		v := heap.Pop(&w.queue).(*visited)
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
	queue   newestFirst
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
		heap.Push(&w.queue, v)
	}
	return nil
}

type newestFirst []*visited

func (q newestFirst) Len() int { return len(q) }

func (q newestFirst) Less(i, j int) bool { return q[i].commit.Time.After(q[j].commit.Time) }

func (q newestFirst) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *newestFirst) Push(v any) { *q = append(*q, v.(*visited)) }

func (q *newestFirst) Pop() any {
	last := len(*q) - 1
	v := (*q)[last]
	*q = (*q)[:last]
	return v
}

// unsettled reports whether a queued commit may lead to another common ancestor.
func (q newestFirst) unsettled() bool {
	for _, v := range q {
		if v.marks&below == 0 {
			return true
		}
	}
	return false
}
