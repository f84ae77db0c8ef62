// Package snapshot saves the content of a worktree under refs/coven/snapshots, lists the snapshots,
// restores them, and removes old ones.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/internal/submodule"
)

// ErrNone means that a session has no snapshot with that number.
var ErrNone = errors.New("no such snapshot")

const (
	subjectPrefix = "coven snapshot "
	tipPrefix     = "Branch-Tip: " // prefix of the last line of the message
	onlyPrefix    = "Only: "       // prefix of a line for each path in Only, before the last line
	maxTries      = 20
)

// A Snapshot is a saved state of a worktree. The snapshots of a session are numbered from 1 and are the
// commits of refs/coven/snapshots/<session>, each the parent of the next.
type Snapshot struct {
	N      int
	Commit string
	Tree   string // of unconverted files, so not always the tree of a commit
	Tip    string // the branch's tip at the time of the snapshot
	Note   string
	Time   time.Time
	Clean  bool // Take found that a commit of the worktree has Tree; false for a snapshot read from the repository
	// Only lists the files and directories that a revert of single paths replaced after taking this
	// snapshot. A revert to this snapshot restores only these. It is nil if a revert restores everything.
	Only  []string
	links string // see submodule.OwnLinks
}

// covers reports whether next would add nothing to s.
func (s Snapshot) covers(next Snapshot) bool {
	return s.N > 0 && s.Only == nil && next.Only == nil && s.Tree == next.Tree && s.links == next.links && s.Tip == next.Tip
}

// Take saves the worktree: tracked files, and untracked files that are not ignored, including those in
// nested repositories. It does not change HEAD, the branch, the worktree's index, or the stash. If neither
// the worktree nor its branch has changed since the last snapshot of the session, Take returns that
// snapshot. It fails with ErrNoWorktree if the worktree does not exist.
func Take(ctx context.Context, w *repo.Worktree, session, note string) (Snapshot, error) {
	s, err := snapshot(ctx, w, session, note, nil)
	if err != nil {
		return s, fmt.Errorf("snapshot %s: %w", w.TaskID, w.OrMissing(err))
	}
	return s, nil
}

func snapshot(ctx context.Context, w *repo.Worktree, session, note string, extra []string) (Snapshot, error) {
	if len(extra) == 0 {
		if tree, ok := content.UnchangedTree(ctx, w); ok {
			s, err := saveTree(ctx, w, session, tree, Snapshot{Note: note})
			s.Clean = err == nil && w.Cone == nil && content.IsTreeOf(ctx, w, s.Tip, tree)
			return s, err
		}
	}
	content.SeedSnapshots(ctx, w)
	ix, tree, err := content.OpenStaged(ctx, w, extra)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.Drop()
	s, err := saveTree(ctx, w, session, tree, Snapshot{Note: note})
	return s, errors.Join(err, ix.Keep())
}

// saveTree appends a snapshot of a tree to the session's chain, with the Note and Only of next.
func saveTree(ctx context.Context, w *repo.Worktree, session, tree string, next Snapshot) (Snapshot, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	links, err := submodule.OwnLinks(ctx, w, tip)
	if err != nil {
		return Snapshot{}, err
	}
	var refused error
	for range maxTries {
		last, err := Last(ctx, w.Repo, session)
		if err != nil {
			return last, err
		}
		next.N, next.Tree, next.Tip, next.Time, next.links = last.N+1, tree, tip, time.Now(), links
		if last.covers(next) {
			return last, nil
		}
		made, err := Append(ctx, w.Repo, session, next, last)
		if _, busy := errors.AsType[*lock.BusyError](err); err == nil || busy {
			return made, err
		}
		refused = err
	}
	return Snapshot{}, refused // another process was faster, or the ref cannot be changed
}

// Append stores a snapshot after last, the last one of the session. It fails if another snapshot has been
// added since.
func Append(ctx context.Context, r *repo.Repo, session string, next, last Snapshot) (Snapshot, error) {
	var parents []string
	if last.N > 0 {
		parents = []string{last.Commit}
	}
	message := subjectPrefix + strconv.Itoa(next.N) + "\n\n" + next.Note + "\n\n" + onlyLines(next.Only) + next.links + tipPrefix + next.Tip
	var err error
	if next.Commit, err = r.MakeCommit(ctx, next.Tree, message, nil, parents...); err != nil {
		return next, err
	}
	edit := ref.Create(names.SnapshotRef(session), next.Commit)
	if last.N > 0 {
		edit = ref.Move(names.SnapshotRef(session), next.Commit, last.Commit)
	}
	failpoint.Point("snapshot.made")
	if err := r.Transact(ctx, r.Git(), "coven: snapshot", edit); err != nil {
		return next, err
	}
	failpoint.Point("snapshot.moved")
	return next, nil
}

// Last returns the newest snapshot of a session. Its N is 0 if there is none.
func Last(ctx context.Context, r *repo.Repo, session string) (Snapshot, error) {
	oid, err := r.Git().Ref(ctx, names.SnapshotRef(session))
	if errors.Is(err, ref.ErrNoRef) {
		return Snapshot{}, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	commits, err := r.Git().Commits(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	return parse(commits[0])
}

// List lists a session's snapshots, oldest first. They outlast the worktree.
func List(ctx context.Context, r *repo.Repo, session string) ([]Snapshot, error) {
	oid, err := r.Git().Ref(ctx, names.SnapshotRef(session))
	if errors.Is(err, ref.ErrNoRef) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	out, err := r.Git().Output(ctx, "rev-list", "--reverse", "--first-parent", oid)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	commits, err := r.Git().Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []Snapshot
	for _, c := range commits {
		s, err := parse(c)
		if err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

// maxSteps is the distance in snapshots from which Find asks git instead of reading every snapshot on the
// way.
const maxSteps = 500

// Find returns the snapshot of a session with this number, or ErrNone.
func Find(ctx context.Context, r *repo.Repo, session string, n int) (Snapshot, error) {
	none := fmt.Errorf("snapshot %d of session %s: %w", n, session, ErrNone)
	oid, err := r.Git().Ref(ctx, names.SnapshotRef(session))
	if errors.Is(err, ref.ErrNoRef) {
		return Snapshot{}, none
	}
	for steps := 0; err == nil; steps++ {
		commits, err := r.Git().Commits(ctx, oid)
		if err != nil {
			return Snapshot{}, err
		}
		s, err := parse(commits[0])
		if err != nil || s.N == n {
			return s, err
		}
		if s.N < n || len(commits[0].Parents) == 0 {
			return s, none
		}
		if oid = commits[0].Parents[0]; steps == 0 && s.N-n > maxSteps {
			if oid, err = r.Git().Line(ctx, "rev-parse", "--verify", commits[0].Oid+"~"+strconv.Itoa(s.N-n)); err != nil {
				return s, err
			}
		}
	}
	return Snapshot{}, err
}

func parse(c object.Commit) (Snapshot, error) {
	subject, note, _ := strings.Cut(c.Message, "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(subject, subjectPrefix))
	if err != nil || !isSnapshot(c) {
		return Snapshot{}, fmt.Errorf("%s is not a snapshot: %w", c.Oid, ErrNone)
	}
	s := Snapshot{N: n, Commit: c.Oid, Tree: c.Tree, Time: c.Time}
	note = strings.Trim(note, "\n")
	at := strings.LastIndex(note, "\n") + 1
	if !strings.HasPrefix(note[at:], tipPrefix) {
		return Snapshot{}, fmt.Errorf("the snapshot %s names no tip: %w", c.Oid, ErrNone)
	}
	note, s.Tip = note[:at], strings.TrimPrefix(note[at:], tipPrefix)
	note, s.links = submodule.CutLines(note, submodule.LinkPrefix)
	note, s.Only = cutOnly(note)
	s.Note = strings.Trim(note, "\n")
	return s, nil
}

// onlyLines returns the lines for paths in the message of a snapshot.
func onlyLines(paths []string) string {
	var lines strings.Builder
	for _, p := range paths {
		lines.WriteString(onlyPrefix + strconv.Quote(p) + "\n")
	}
	return lines.String()
}

// cutOnly cuts the lines of onlyLines off the end of text and parses them.
func cutOnly(text string) (before string, paths []string) {
	before, lines := submodule.CutLines(text, onlyPrefix)
	for line := range strings.Lines(lines) {
		if p, err := strconv.Unquote(strings.TrimPrefix(strings.TrimSpace(line), onlyPrefix)); err == nil {
			paths = append(paths, p)
		}
	}
	return before, paths
}

func isSnapshot(c object.Commit) bool { return strings.HasPrefix(c.Message, subjectPrefix) }

// StateAt returns the state of a worktree that a commit contains. The commit may be a snapshot of any
// session, or a commit of a branch, which is its own Tip. The error is ErrNone if the commit or its Tip is
// no longer in the repository.
func StateAt(ctx context.Context, r *repo.Repo, oid string) (Snapshot, error) {
	has, err := r.Git().HasCommit(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	gone := fmt.Errorf("commit %s: %w", oid, ErrNone)
	if !has {
		return Snapshot{}, gone
	}
	c, err := r.Git().Commit(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	if !isSnapshot(c) {
		return Snapshot{Commit: c.Oid, Tree: c.Tree, Tip: c.Oid}, nil
	}
	s, err := parse(c)
	if err != nil {
		return s, err
	}
	if has, err = r.Git().HasCommit(ctx, s.Tip); err == nil && !has {
		err = gone
	}
	return s, err
}

// restoreSubmodules makes submodules count as their commits in a snapshot. If there are paths, it changes only
// submodules at or below these.
func restoreSubmodules(ctx context.Context, w *repo.Worktree, snapshot object.Commit, paths []string) error {
	s, err := parse(snapshot)
	if err != nil {
		return err
	}
	if has, err := w.Repo.Git().HasCommit(ctx, s.Tip); err != nil || !has {
		return err
	}
	candidates, err := submodule.Links(ctx, w)
	if err != nil {
		return err
	}
	goals, own := map[string]string{}, submodule.ParseLinks(s.links)
	for _, p := range candidates {
		if len(paths) > 0 && !slices.ContainsFunc(paths, func(asked string) bool { return asked == p || strings.HasPrefix(p, asked+"/") }) {
			continue
		}
		goals[p] = own[p]
		if goals[p] != "" {
			continue
		}
		if goals[p], err = submodule.LinkIn(ctx, w, s.Tip, p); err != nil {
			return err
		}
	}
	return submodule.SetLeft(w, goals)
}
