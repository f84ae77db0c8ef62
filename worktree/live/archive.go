package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/remote"
)

// archiveTries limits the attempts to end a session while other clones on the machine add theirs to the same archive.
const archiveTries = 30

const monthForm = "2006-01"

// ArchiveRef returns the ref of the sessions that ended on a machine in the month of t. Each machine has its own, so that
// it need not fetch the sessions of others to add one.
func ArchiveRef(machine string, t time.Time) string {
	return names.ArchivePrefix + t.UTC().Format(monthForm) + "/" + names.SafeName(machine)
}

// An End has the refs of a remote that matter when a session ends.
type End struct {
	Mails []Mail // for the session, not fetched

	archive, tip string // ref of the archive, and its commit
	live, branch remote.MovedError
}

// LookAtEnd looks at the refs of a remote: the one of the session, the archive, and the branch on which the session lands, if any.
func LookAtEnd(ctx context.Context, r *repo.Repo, name, taskID, archiveRef, branch string) (End, error) {
	e := End{archive: archiveRef, live: remote.MovedError{Remote: name, Ref: Ref(taskID)}, branch: remote.MovedError{Remote: name, Ref: names.HeadsPrefix + branch}}
	found, err := remote.Refs(ctx, r, name, Timeout, e.live.Ref, mailRef(taskID, "*"), archiveRef, e.branch.Ref)
	e.Mails, e.tip, e.live.Tip, e.branch.Tip = mailsOf(taskID, found), found[archiveRef], found[e.live.Ref], found[e.branch.Ref]
	return e, err
}

// CheckBranch returns a *remote.MovedError unless the branch has a commit.
func (e End) CheckBranch(commit string) error {
	if e.branch.Tip == commit {
		return nil
	}
	return &e.branch
}

// Land moves the branch from old to commit, and ends the session as Close does, in one push. The error is a *remote.MovedError if a ref has another
// tip: the branch may contain the landing nevertheless.
func (e End) Land(ctx context.Context, r *repo.Repo, taskID, old, commit string, s State) error {
	return e.push(ctx, r, taskID, s, remote.Move{Ref: e.branch.Ref, Old: old, New: commit})
}

// Close adds a session that is over to the archive, and deletes its ref, in one push. The error is a *remote.MovedError unless s.Tip is the tip of that ref.
func (e End) Close(ctx context.Context, r *repo.Repo, taskID string, s State) error {
	return e.push(ctx, r, taskID, s)
}

// push moves the refs of moves, the one of the session, and the archive.
func (e End) push(ctx context.Context, r *repo.Repo, taskID string, s State, moves ...remote.Move) error {
	if e.live.Tip != s.Tip {
		return &e.live
	}
	moves = append(moves, remote.Move{Ref: e.live.Ref, Old: s.Tip})
	s.Tip, s.Base = "", "" // an archive without the earlier states is small, and the record contains them
	record, err := Store(ctx, r, taskID, s)
	if err != nil {
		return err
	}
	failpoint.Point("live.end.before")
	for range archiveTries {
		next, err := e.next(ctx, r, taskID, s.Session, record)
		if err != nil {
			return fmt.Errorf("archive the session of %s: %w", taskID, err)
		}
		err = remote.MoveRefs(ctx, r, e.branch.Remote, Timeout, append(moves, remote.Move{Ref: e.archive, Old: e.tip, New: next})...)
		moved := (*remote.MovedError)(nil)
		if !errors.As(err, &moved) || moved.Ref != e.archive {
			failpoint.Point("live.end.after")
			return err
		}
		e.tip = moved.Tip
	}
	return fmt.Errorf("archive the session of %s: %s keeps moving", taskID, e.archive)
}

// next returns the next commit of the archive. Its tree has a directory for each session, and its last parent is the commit of the record that is added.
func (e End) next(ctx context.Context, r *repo.Repo, taskID, session, record string) (string, error) {
	var entries []object.Entry
	var parents []string
	if e.tip != "" {
		if has, err := r.Git().HasCommit(ctx, e.tip); err != nil || !has {
			if err := remote.Fetch(ctx, r, e.branch.Remote, Timeout, e.archive); err != nil {
				return "", err
			}
		}
		tree, err := r.Git().Tree(ctx, e.tip)
		if err != nil {
			return "", err
		}
		if entries, err = r.Git().Level(ctx, tree); err != nil {
			return "", err
		}
		parents = append(parents, e.tip)
	}
	added, err := r.Git().Tree(ctx, record)
	if err != nil {
		return "", err
	}
	dir := names.SafeName(session)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e object.Entry) bool { return e.Path == dir })
	tree, err := r.Git().MakeTree(ctx, append(entries, object.Entry{Mode: object.ModeTree, Oid: added, Path: dir}))
	if err != nil {
		return "", err
	}
	return r.MakeCommit(ctx, tree, "coven: end of session "+session+" of "+taskID, nil, append(parents, record)...)
}

// Archives are archives of a remote that this repository has.
type Archives struct {
	fetched, others []string          // commits: those that the last fetch has brought, and the others
	joined          []string          // commits whose parents are archives
	tips            map[string]string // all, by ref at the remote
}

// States returns the states of a session in the archives, or why one cannot be read. The tips are the commits of the records. The archives that have changed last come first.
func (a Archives) States(ctx context.Context, r *repo.Repo, session string) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		each := func(tips []string) (more bool) {
			for _, tip := range tips {
				if s, err := archived(ctx, r, tip, session); (err != nil || len(s.Files) > 0) && !yield(s, err) {
					return false
				}
			}
			return true
		}
		if !each(a.fetched) {
			return
		}
		changed := map[string]time.Time{}
		for _, tip := range a.others {
			c, _ := r.Git().Commit(ctx, tip) // each yields the error
			changed[tip] = c.Time
		}
		if !each(slices.SortedStableFunc(slices.Values(a.others), func(one, two string) int { return changed[two].Compare(changed[one]) })) {
			return
		}
		for _, tip := range a.joined {
			c, err := r.Git().Commit(ctx, tip)
			if err != nil && !yield(State{}, err) || err == nil && !each(c.Parents) {
				return
			}
		}
	}
}

// FetchEnds fetches the branch that a remote-tracking ref follows, and the archives of its remote from the months between two times, at most a year. The refs of these
// archives stay in this repository, so that the next fetch gets only new sessions; those of other months go.
func FetchEnds(ctx context.Context, r *repo.Repo, name, target string, from, to time.Time) (up remote.Upstream, a Archives, err error) {
	l, err := r.Lock(ctx, "archives-"+names.SafeName(name), "fetch the archives of "+name)
	if err != nil {
		return up, a, err
	}
	defer l.Release()
	kept, err := r.Git().Refs(ctx, names.FetchedPrefix+name)
	if err != nil {
		return up, a, err
	}
	local := func(archive string) string {
		return names.FetchedPrefix + name + "/" + strings.TrimPrefix(archive, names.ArchivePrefix)
	}
	here := map[string]string{}
	for _, k := range kept {
		here[names.ArchivePrefix+strings.TrimPrefix(k.Name, names.FetchedPrefix+name+"/")] = k.Oid
	}
	var months []string
	for m := firstOf(to); len(months) == 0 || len(months) < 12 && !m.Before(firstOf(from)); m = m.AddDate(0, -1, 0) {
		months = append(months, names.ArchivePrefix+m.Format(monthForm)+"/*")
	}
	up, tips, err := remote.FetchUpstreamAnd(ctx, r, target, Timeout, here, months...)
	if err != nil {
		return up, a, err
	}
	var edits []ref.Edit
	for _, of := range slices.Sorted(maps.Keys(tips)) {
		tip, old := tips[of], here[of]
		switch {
		case path.Base(of) == joined:
			a.joined = append(a.joined, tip)
		case tip == old:
			a.others = append(a.others, tip)
		default:
			a.fetched = append(a.fetched, tip)
		}
		switch old {
		case tip:
		case "":
			edits = append(edits, ref.Create(local(of), tip))
		default:
			edits = append(edits, ref.Move(local(of), tip, old))
		}
	}
	a.tips = tips
	for of, old := range here {
		if tips[of] == "" {
			edits = append(edits, ref.Delete(local(of), old))
		}
	}
	if len(edits) == 0 {
		return up, a, nil
	}
	return up, a, r.Transact(ctx, r.Git(), "coven: archives", edits...)
}

// manyArchives is the number of archives of a month above which they are joined. git sends each ref of a remote to whoever pushes to it.
const manyArchives = 16

// joined is the name of the archives that are joined, in their month. No machine has it.
const joined = "+joined"

// Join replaces the archives of each month with a single ref if there are many: machines with new names add archives every day. A machine whose archive is gone begins a
// new one. The error is a *remote.MovedError if one of the archives has moved since they were fetched.
func Join(ctx context.Context, r *repo.Repo, name string, a Archives) error {
	months := map[string][]string{}
	for _, of := range slices.Sorted(maps.Keys(a.tips)) {
		months[path.Dir(of)] = append(months[path.Dir(of)], of)
	}
	for month, of := range months {
		if len(of) <= manyArchives {
			continue
		}
		if err := join(ctx, r, name, month+"/"+joined, of, a.tips); err != nil {
			return fmt.Errorf("join archives of %s: %w", name, err)
		}
	}
	return nil
}

// join replaces the archives of a month, whose refs are given, with the ref into.
func join(ctx context.Context, r *repo.Repo, name, into string, of []string, tips map[string]string) error {
	var parents []string
	var moves []remote.Move
	for _, archive := range of {
		tip := tips[archive]
		if archive != into {
			parents, moves = append(parents, tip), append(moves, remote.Move{Ref: archive, Old: tip})
			continue
		}
		before, err := r.Git().Commit(ctx, tip)
		if err != nil {
			return err
		}
		parents = append(parents, before.Parents...)
	}
	tree, err := r.Git().MakeTree(ctx, nil)
	if err != nil {
		return err
	}
	slices.Sort(parents)
	next, err := r.MakeCommit(ctx, tree, "coven: joined archives", nil, slices.Compact(parents)...)
	if err != nil {
		return err
	}
	return remote.MoveRefs(ctx, r, name, Timeout, append(moves, remote.Move{Ref: into, Old: tips[into], New: next})...)
}

// firstOf returns the beginning of a month.
func firstOf(t time.Time) time.Time {
	return time.Date(t.UTC().Year(), t.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
}

// archived reads a session in an archive. It has no files if it is not there.
func archived(ctx context.Context, r *repo.Repo, archive, session string) (State, error) {
	s := State{Session: session, Files: map[string][]byte{}}
	tree, err := r.Git().Tree(ctx, archive)
	if err != nil {
		return s, err
	}
	entries, err := r.Git().Level(ctx, tree)
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(entries, func(e object.Entry) bool { return e.Path == names.SafeName(session) })
	if i < 0 {
		return s, nil
	}
	if s.Tip, err = recordIn(ctx, r, archive, entries[i].Oid); err != nil {
		return s, err
	}
	return s, s.read(ctx, r, entries[i].Oid)
}

// recordIn returns the commit of the record with a tree in an archive, or "".
func recordIn(ctx context.Context, r *repo.Repo, archive, tree string) (string, error) {
	for {
		c, err := r.Git().Commit(ctx, archive)
		if err != nil || len(c.Parents) == 0 {
			return "", err
		}
		record := c.Parents[len(c.Parents)-1]
		if of, err := r.Git().Tree(ctx, record); err != nil || of == tree {
			return record, err
		}
		if len(c.Parents) == 1 { // the first record
			return "", nil
		}
		archive = c.Parents[0]
	}
}

// Keeps reports whether a tip of an archive keeps the branch and the snapshot of a state.
func Keeps(ctx context.Context, r *repo.Repo, tip string, s State) bool {
	for _, oid := range []string{s.Snapshot, s.Branch.Tip} {
		if oid == "" {
			continue
		}
		if in, err := r.Git().IsAncestor(ctx, oid, tip); err != nil || !in {
			return false
		}
	}
	return tip != ""
}

// Rescue stores a state of a session, which another machine has continued, at the remote, and returns its ref there. It can land no more.
func Rescue(ctx context.Context, r *repo.Repo, name, taskID string, s State) (string, error) {
	oid, err := Store(ctx, r, taskID, s)
	if err != nil {
		return "", err
	}
	ref := names.RescuePrefix(taskID) + "late-" + oid[:12]
	if err := remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: ref, New: oid}); err != nil {
		return "", fmt.Errorf("store the work of this machine: %w", err)
	}
	failpoint.Point("live.rescued")
	return ref, nil
}
