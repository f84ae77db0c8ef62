package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
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

// archiveTries limits the attempts to add a session to an archive while other clones on the machine add theirs.
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
	branch       remote.MovedError
}

// LookAtEnd looks at the refs of a remote: the archive, and the branch on which the session lands, if any.
func LookAtEnd(ctx context.Context, r *repo.Repo, name, taskID, archiveRef, branch string) (End, error) {
	e := End{archive: archiveRef, branch: remote.MovedError{Remote: name, Ref: names.HeadsPrefix + branch}}
	found, err := remote.Refs(ctx, r, name, Timeout, mailRef(taskID, "*"), archiveRef, e.branch.Ref)
	e.Mails, e.tip, e.branch.Tip = mailsOf(taskID, found), found[archiveRef], found[e.branch.Ref]
	return e, err
}

// CheckBranch returns a *remote.MovedError unless the branch has a commit.
func (e End) CheckBranch(commit string) error {
	if e.branch.Tip == commit {
		return nil
	}
	return &e.branch
}

// Archive adds the session at a tip, which is over or about to land, to an archive at the remote: a commit whose tree has a
// directory for each session, and whose last parent is the tip. A tip without a previous one keeps the archive small.
func Archive(ctx context.Context, r *repo.Repo, name, taskID string, seen End, s State) error {
	record, err := r.Git().Tree(ctx, s.Tip)
	for range archiveTries {
		if err == nil {
			err = archive(ctx, r, name, taskID, s, record, seen)
		}
		moved := (*remote.MovedError)(nil)
		if !errors.As(err, &moved) {
			break
		}
		seen.tip, err = moved.Tip, nil
	}
	if err != nil {
		return fmt.Errorf("archive the session of %s: %w", taskID, err)
	}
	failpoint.Point("live.archived")
	return nil
}

func archive(ctx context.Context, r *repo.Repo, name, taskID string, s State, record string, seen End) error {
	archiveRef, old := seen.archive, seen.tip
	var entries []object.Entry
	var parents []string
	if old != "" {
		if has, err := r.Git().HasCommit(ctx, old); err != nil || !has {
			if err := remote.Fetch(ctx, r, name, Timeout, archiveRef); err != nil {
				return err
			}
		}
		tree, err := r.Git().Tree(ctx, old)
		if err != nil {
			return err
		}
		if entries, err = r.Git().Level(ctx, tree); err != nil {
			return err
		}
		parents = append(parents, old)
	}
	dir := names.SafeName(s.Session)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e object.Entry) bool { return e.Path == dir })
	tree, err := r.Git().MakeTree(ctx, append(entries, object.Entry{Mode: object.ModeTree, Oid: record, Path: dir}))
	if err != nil {
		return err
	}
	next, err := r.MakeCommit(ctx, tree, "coven: end of session "+s.Session+" of "+taskID, nil, append(parents, s.Tip)...)
	if err != nil {
		return err
	}
	return remote.MoveRefs(ctx, r, name, Timeout, remote.Move{Ref: archiveRef, Old: old, New: next})
}

// Archived fetches the archives of a remote from the months between two times, at most a year, and returns the states of a session in them, without their tips. Those that
// cannot be read are in the error. The refs of these archives stay in this repository, so that the next fetch gets only new sessions; those of other months go.
func Archived(ctx context.Context, r *repo.Repo, name, session string, from, to time.Time) ([]State, error) {
	l, err := r.Lock(ctx, "archives-"+names.SafeName(name), "fetch the archives of "+name)
	if err != nil {
		return nil, err
	}
	defer l.Release()
	tips, err := fetchArchives(ctx, r, name, from, to)
	if err != nil {
		return nil, fmt.Errorf("fetch the archives of %s: %w", name, err)
	}
	var states []State
	for _, ref := range slices.Sorted(maps.Keys(tips)) {
		s, problem := archived(ctx, r, tips[ref], session)
		if err = errors.Join(err, problem); problem == nil && len(s.Files) > 0 {
			states = append(states, s)
		}
	}
	return states, err
}

// fetchArchives is Archived for all sessions. It returns the tips of the archives, by ref.
func fetchArchives(ctx context.Context, r *repo.Repo, name string, from, to time.Time) (map[string]string, error) {
	var months, missing []string
	for m := firstOf(to); len(months) == 0 || len(months) < 12 && !m.Before(firstOf(from)); m = m.AddDate(0, -1, 0) {
		months = append(months, names.ArchivePrefix+m.Format(monthForm)+"/*")
	}
	tips, err := remote.Refs(ctx, r, name, Timeout, months...)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(tips, func(ref, _ string) bool { return !strings.HasPrefix(ref, names.ArchivePrefix) }) // git compares only the ends of names
	for ref, tip := range tips {
		if has, err := r.Git().HasCommit(ctx, tip); err != nil || !has {
			missing = append(missing, ref)
		}
	}
	if len(missing) > 0 {
		if err := remote.Fetch(ctx, r, name, Timeout, missing...); err != nil {
			return nil, err
		}
	}
	kept, err := r.Git().Refs(ctx, names.FetchedPrefix+name)
	if err != nil {
		return nil, err
	}
	wanted, edits := maps.Clone(tips), []ref.Edit(nil)
	for _, k := range kept {
		of := names.ArchivePrefix + strings.TrimPrefix(k.Name, names.FetchedPrefix+name+"/")
		if tip := tips[of]; tip == "" {
			edits = append(edits, ref.Delete(k.Name, k.Oid))
		} else if tip != k.Oid {
			edits = append(edits, ref.Move(k.Name, tip, k.Oid))
		}
		delete(wanted, of)
	}
	for of, tip := range wanted {
		edits = append(edits, ref.Create(names.FetchedPrefix+name+"/"+strings.TrimPrefix(of, names.ArchivePrefix), tip))
	}
	if len(edits) == 0 {
		return tips, nil
	}
	return tips, r.Transact(ctx, r.Git(), "coven: archives", edits...)
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
	return s, s.read(ctx, r, entries[i].Oid)
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
