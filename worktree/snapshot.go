package worktree

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
)

// ErrNoSnapshot means that a session has no snapshot with that number.
var ErrNoSnapshot = errors.New("no such snapshot")

const (
	snapshotSubject = "coven snapshot "
	snapshotTip     = "Branch-Tip: " // in the last line of the message
	snapshotOnly    = "Only: "       // before it, for each path of Only
	snapshotTries   = 20
)

// A Snapshot is a saved state of W. The snapshots of a session are numbered
// from 1 and are the commits of refs/coven/snapshots/<session>, each the
// parent of the next.
type Snapshot struct {
	N      int
	Commit string
	Tree   string // unconverted bytes: not always the tree of a commit
	Tip    string // the branch's tip at that time
	Note   string
	Time   time.Time
	Clean  bool // when it was made, a commit of W was known to have Tree; false after reading it again
	// Only are the files that it has, if a revert of named files saved it before it replaced them. Tree
	// has the others as the snapshot before. Of a snapshot of all files, it is nil.
	Only  []string
	links string // see ownLinks
}

// same reports whether a new snapshot would be this one again.
func (s Snapshot) same(next Snapshot) bool {
	return s.N > 0 && s.Only == nil && next.Only == nil && s.Tree == next.Tree && s.links == next.links && s.Tip == next.Tip
}

// Snapshot saves W: tracked files and untracked ones that are not ignored, also those
// of repositories inside W. HEAD, branch, W's index and the stash stay as they are. If
// neither W nor its branch changed since the last snapshot of the session, Snapshot
// returns that one. It fails with ErrNoWorktree if W does not exist.
func (w *Worktree) Snapshot(ctx context.Context, session, note string) (Snapshot, error) {
	s, err := w.snapshot(ctx, session, note, nil)
	if err != nil {
		return s, fmt.Errorf("snapshot %s: %w", w.TaskID, w.orGone(err))
	}
	return s, nil
}

func (w *Worktree) snapshot(ctx context.Context, session, note string, extra []string) (Snapshot, error) {
	if len(extra) == 0 {
		if tree, err := w.plainTree(ctx); err == nil {
			s, err := w.saveTree(ctx, session, note, tree)
			s.Clean = err == nil && w.cone == nil && w.isTreeOf(ctx, s.Tip, tree)
			return s, err
		}
	}
	w.seedSnapshots(ctx)
	ix, tree, err := w.stagedRaw(ctx, extra)
	if err != nil {
		return Snapshot{}, err
	}
	defer ix.drop()
	s, err := w.saveTree(ctx, session, note, tree)
	return s, errors.Join(err, ix.keep())
}

// stagedRaw opens the snapshot index and stages W in it.
func (w *Worktree) stagedRaw(ctx context.Context, extra []string) (*index, string, error) {
	g, err := w.rawGit()
	if err != nil {
		return nil, "", err
	}
	ix, err := w.openIndex(g, snapshotIndex)
	if err != nil {
		return nil, "", err
	}
	tree, err := w.stageRaw(ctx, ix, extra)
	if err != nil {
		ix.drop()
	}
	return ix, tree, err
}

// saveTree appends a tree to the session's chain.
func (w *Worktree) saveTree(ctx context.Context, session, note, tree string) (Snapshot, error) {
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	links, err := w.ownLinks(ctx, tip)
	if err != nil {
		return Snapshot{}, err
	}
	var refused error
	for range snapshotTries {
		last, err := w.repo.lastSnapshot(ctx, session)
		if err != nil {
			return last, err
		}
		next := Snapshot{N: last.N + 1, Tree: tree, Tip: tip, Note: note, Time: time.Now(), links: links}
		if last.same(next) {
			return last, nil
		}
		next, refused = w.repo.append(ctx, session, next, last)
		if _, busy := errors.AsType[*BusyError](refused); refused == nil || busy {
			return next, refused
		}
	}
	return Snapshot{}, refused // another process was faster, or the ref cannot be changed
}

func (r *Repo) append(ctx context.Context, session string, next, last Snapshot) (Snapshot, error) {
	var parents []string
	if last.N > 0 {
		parents = []string{last.Commit}
	}
	message := snapshotSubject + strconv.Itoa(next.N) + "\n\n" + next.Note + "\n\n" + onlyLines(next.Only) + next.links + snapshotTip + next.Tip
	var err error
	if next.Commit, err = r.makeCommit(ctx, next.Tree, message, nil, parents...); err != nil {
		return next, err
	}
	edit := git.Create(snapshotRef(session), next.Commit)
	if last.N > 0 {
		edit = git.Move(snapshotRef(session), next.Commit, last.Commit)
	}
	failpoint.Point("snapshot.made")
	if err := r.transact(ctx, r.git(), "coven: snapshot", edit); err != nil {
		return next, err
	}
	failpoint.Point("snapshot.moved")
	return next, nil
}

// LastSnapshot returns the newest snapshot of a session, N 0 if there is none.
func (w *Worktree) LastSnapshot(ctx context.Context, session string) (Snapshot, error) {
	return w.repo.lastSnapshot(ctx, session)
}

// lastSnapshot returns the newest snapshot of a session, N 0 if none.
func (r *Repo) lastSnapshot(ctx context.Context, session string) (Snapshot, error) {
	oid, err := r.git().Ref(ctx, snapshotRef(session))
	if errors.Is(err, git.ErrNoRef) {
		return Snapshot{}, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	commits, err := r.git().Commits(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	return parseSnapshot(commits[0])
}

// Snapshots lists a session's snapshots, oldest first.
func (w *Worktree) Snapshots(ctx context.Context, session string) ([]Snapshot, error) {
	return w.repo.Snapshots(ctx, session)
}

// Snapshots lists a session's snapshots, oldest first. They last longer than the worktree.
func (r *Repo) Snapshots(ctx context.Context, session string) ([]Snapshot, error) {
	oid, err := r.git().Ref(ctx, snapshotRef(session))
	if errors.Is(err, git.ErrNoRef) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	out, err := r.git().Output(ctx, "rev-list", "--reverse", "--first-parent", oid)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	commits, err := r.git().Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var all []Snapshot
	for _, c := range commits {
		s, err := parseSnapshot(c)
		if err != nil {
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		all = append(all, s)
	}
	return all, nil
}

// maxSteps is how many snapshots FindSnapshot reads before it asks git for one further back.
const maxSteps = 500

// FindSnapshot returns one snapshot of a session by its number. The error is ErrNoSnapshot if there
// is none.
func (r *Repo) FindSnapshot(ctx context.Context, session string, n int) (Snapshot, error) {
	none := fmt.Errorf("snapshot %d of session %s: %w", n, session, ErrNoSnapshot)
	oid, err := r.git().Ref(ctx, snapshotRef(session))
	if errors.Is(err, git.ErrNoRef) {
		return Snapshot{}, none
	}
	for steps := 0; err == nil; steps++ {
		commits, err := r.git().Commits(ctx, oid)
		if err != nil {
			return Snapshot{}, err
		}
		s, err := parseSnapshot(commits[0])
		if err != nil || s.N == n {
			return s, err
		}
		if s.N < n || len(commits[0].Parents) == 0 {
			return s, none
		}
		if oid = commits[0].Parents[0]; steps == 0 && s.N-n > maxSteps {
			if oid, err = r.git().Line(ctx, "rev-parse", "--verify", commits[0].Oid+"~"+strconv.Itoa(s.N-n)); err != nil {
				return s, err
			}
		}
	}
	return Snapshot{}, err
}

func parseSnapshot(c git.Commit) (Snapshot, error) {
	subject, note, _ := strings.Cut(c.Message, "\n")
	n, err := strconv.Atoi(strings.TrimPrefix(subject, snapshotSubject))
	if err != nil || !isSnapshot(c) {
		return Snapshot{}, fmt.Errorf("%s is not a snapshot: %w", c.Oid, ErrNoSnapshot)
	}
	s := Snapshot{N: n, Commit: c.Oid, Tree: c.Tree, Time: c.Time}
	note = strings.Trim(note, "\n")
	at := strings.LastIndex(note, "\n") + 1
	if !strings.HasPrefix(note[at:], snapshotTip) {
		return Snapshot{}, fmt.Errorf("the snapshot %s names no tip: %w", c.Oid, ErrNoSnapshot)
	}
	note, s.Tip = note[:at], strings.TrimPrefix(note[at:], snapshotTip)
	note, s.links = cutLines(note, snapshotLink)
	note, s.Only = cutOnly(note)
	s.Note = strings.Trim(note, "\n")
	return s, nil
}

// onlyLines returns lines for the message of a snapshot.
func onlyLines(paths []string) string {
	var lines strings.Builder
	for _, p := range paths {
		lines.WriteString(snapshotOnly + strconv.Quote(p) + "\n")
	}
	return lines.String()
}

// cutOnly cuts such lines off the end of a text and reads them.
func cutOnly(text string) (before string, paths []string) {
	before, lines := cutLines(text, snapshotOnly)
	for line := range strings.Lines(lines) {
		if p, err := strconv.Unquote(strings.TrimPrefix(strings.TrimSpace(line), snapshotOnly)); err == nil {
			paths = append(paths, p)
		}
	}
	return before, paths
}

func isSnapshot(c git.Commit) bool { return strings.HasPrefix(c.Message, snapshotSubject) }

const snapshotsPrefix = "refs/coven/snapshots/"

func snapshotRef(session string) string { return snapshotsPrefix + SafeName(session) }

// StateAt returns the state of a worktree that a commit holds: a snapshot of any session, or a commit
// of a branch, which is its own Tip. The error is ErrNoSnapshot if the commit or its branch's tip is
// not in the repository any more.
func (r *Repo) StateAt(ctx context.Context, oid string) (Snapshot, error) {
	has, err := r.hasCommit(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	gone := fmt.Errorf("commit %s: %w", oid, ErrNoSnapshot)
	if !has {
		return Snapshot{}, gone
	}
	c, err := r.git().Commit(ctx, oid)
	if err != nil {
		return Snapshot{}, err
	}
	if !isSnapshot(c) {
		return Snapshot{Commit: c.Oid, Tree: c.Tree, Tip: c.Oid}, nil
	}
	s, err := parseSnapshot(c)
	if err != nil {
		return s, err
	}
	if has, err = r.hasCommit(ctx, s.Tip); err == nil && !has {
		err = gone
	}
	return s, err
}
