package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/git"
)

// ignoredCap limits the ignored files that a rescue stores by default, in bytes.
const ignoredCap = 10 << 20

// rescueTries limits the search for a free number.
const rescueTries = 20

// An IgnoredError lists ignored files that exceed the limit for storing them. Nothing
// was removed.
type IgnoredError struct {
	Files []string // directories end in a slash
	Bytes int64
}

func (e *IgnoredError) Error() string {
	return fmt.Sprintf("ignored files of %d MB exist nowhere else: %s", e.Bytes>>20, strings.Join(e.Files, ", "))
}

// A policy selects how a rescue treats ignored files.
type policy int

const (
	capIgnored  policy = iota // store up to ignoredCap, else *IgnoredError
	keepIgnored               // store them all
	dropIgnored               // store up to ignoredCap, else none
)

// The subjects of the commits of rescues, before the task's ID.
const (
	rescueSubject  = "coven rescue of "
	changesSubject = "coven tripwire of "
)

// A RescueInfo is one stored state of a task's worktree, or changes that a Mark found.
type RescueInfo struct {
	Ref, Commit, Note string
	N                 int
	Time              time.Time
	Task              string // its ID
	Changes           bool   // it has changes: see RescuedChanges
}

// Rescue stores everything in W as a commit above the branch's tip, under
// refs/coven/rescue/<name>/<n>, and returns that ref: tracked and untracked
// files, ignored ones up to 10 MB in total (all with keepBig), and the git
// directories of repositories inside W, renamed because git stores no .git. Of W's
// own git directory it stores what is staged, a merge or rebase in progress and
// commits that no branch has. Above 10 MB it fails with *IgnoredError.
func (w *Worktree) Rescue(ctx context.Context, note string, keepBig bool) (ref string, err error) {
	p := capIgnored
	if keepBig {
		p = keepIgnored
	}
	info, err := w.rescue(ctx, note, p)
	if err != nil {
		return "", fmt.Errorf("rescue %s: %w", w.TaskID, err)
	}
	return info.Ref, nil
}

func (w *Worktree) rescue(ctx context.Context, note string, p policy) (RescueInfo, error) {
	vacant, err := w.vacant()
	if err != nil {
		return RescueInfo{}, err
	}
	if vacant {
		return w.rescueBranch(ctx, note)
	}
	ix, tree, err := w.stagedRaw(ctx, nil)
	if err != nil {
		return RescueInfo{}, err
	}
	defer ix.drop()
	hidden, err := w.hidden(ctx, ix, p)
	if err != nil {
		return RescueInfo{}, err
	}
	own, err := w.gitWork(ctx, tree)
	if err != nil {
		return RescueInfo{}, err
	}
	if err := errors.Join(ix.take(ctx, hidden.plain), ix.takeAs(ctx, hidden.renamed), ix.takeWork(ctx, own)); err != nil {
		return RescueInfo{}, err
	}
	if tree, err = ix.tree(ctx); err != nil {
		return RescueInfo{}, err
	}
	return w.saveRescue(ctx, note, tree, own.commits...)
}

// rescueBranch keeps the commits of a branch whose directory does not exist, and what W's git
// directory has, if that is there.
func (w *Worktree) rescueBranch(ctx context.Context, note string) (RescueInfo, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	return w.rescueAdmin(ctx, note, tip, nil)
}

// rescueFiles stores single files, as bytes, without the rest of W.
func (w *Worktree) rescueFiles(ctx context.Context, note string, paths []string) (RescueInfo, error) {
	g, err := w.rawGit()
	if err != nil {
		return RescueInfo{}, err
	}
	ix, err := w.openIndex(g, "none")
	if err != nil {
		return RescueInfo{}, err
	}
	defer ix.drop()
	if err := ix.take(ctx, paths); err != nil {
		return RescueInfo{}, err
	}
	tree, err := ix.tree(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	return w.saveRescue(ctx, note, tree)
}

// saveRescue creates the commit and the next free ref. It keeps the branch and other commits.
func (w *Worktree) saveRescue(ctx context.Context, note, tree string, commits ...string) (RescueInfo, error) {
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	parents := slices.DeleteFunc(slices.Clone(commits), func(oid string) bool { return oid == tip })
	if tip != "" {
		parents = slices.Insert(parents, 0, tip)
	}
	info := RescueInfo{Note: note, Time: time.Now()}
	info.Commit, err = w.repo.makeCommit(ctx, tree, rescueSubject+w.TaskID+"\n\n"+note, nil, parents...)
	if err != nil {
		return info, err
	}
	return w.repo.refRescue(ctx, w.repo.git(), w.TaskID, info)
}

// refRescue creates the next free ref for the commit of a rescue.
func (r *Repo) refRescue(ctx context.Context, g git.Repo, taskID string, info RescueInfo) (RescueInfo, error) {
	var refused error
	for range rescueTries {
		all, err := r.rescues(ctx, g, taskID)
		if err != nil {
			return info, err
		}
		info.N = 1
		if len(all) > 0 {
			info.N = all[len(all)-1].N + 1
		}
		info.Ref = rescuePrefix(taskID) + strconv.Itoa(info.N)
		refused = r.transact(ctx, g, "coven: rescue", git.Create(info.Ref, info.Commit))
		if _, busy := errors.AsType[*BusyError](refused); refused == nil || busy {
			return info, refused
		}
	}
	return info, refused
}

// Rescues lists the stored states of a task's worktrees, oldest first.
func (r *Repo) Rescues(ctx context.Context, taskID string) ([]RescueInfo, error) {
	return r.rescues(ctx, r.git(), taskID)
}

func (r *Repo) rescues(ctx context.Context, g git.Repo, taskID string) ([]RescueInfo, error) {
	refs, err := g.Refs(ctx, rescuePrefix(taskID))
	if err != nil {
		return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
	}
	var all []RescueInfo
	for _, ref := range refs {
		n, err := strconv.Atoi(strings.TrimPrefix(ref.Name, rescuePrefix(taskID)))
		if err != nil {
			continue // not one of ours
		}
		c, err := g.Commit(ctx, ref.Oid)
		if err != nil {
			return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
		}
		info := rescueInfo(ref.Name, c)
		info.N = n
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b RescueInfo) int { return a.N - b.N })
	return all, nil
}

// rescueInfo returns what the commit of a rescue says.
func rescueInfo(ref string, c git.Commit) RescueInfo {
	subject, note, _ := strings.Cut(c.Message, "\n\n")
	info := RescueInfo{Ref: ref, Commit: c.Oid, Note: strings.TrimSpace(note), Time: c.Time}
	for _, kind := range []string{rescueSubject, changesSubject} {
		if task, found := strings.CutPrefix(subject, kind); found {
			info.Task, info.Changes = task, kind == changesSubject
		}
	}
	return info
}

const rescuesPrefix = "refs/coven/rescue/"

func rescuePrefix(taskID string) string { return rescuesPrefix + SafeName(taskID) + "/" }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// AllRescues lists the rescues of all tasks, oldest first.
func (r *Repo) AllRescues(ctx context.Context) ([]RescueInfo, error) {
	refs, err := r.git().Refs(ctx, rescuesPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the rescues: %w", err)
	}
	var oids []string
	for _, ref := range refs {
		oids = append(oids, ref.Oid)
	}
	commits, err := r.git().Commits(ctx, oids...)
	if err != nil {
		return nil, fmt.Errorf("list the rescues: %w", err)
	}
	var all []RescueInfo
	for i, c := range commits {
		info := rescueInfo(refs[i].Name, c)
		if info.N, err = strconv.Atoi(info.Ref[strings.LastIndexByte(info.Ref, '/')+1:]); err == nil {
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b RescueInfo) int { return cmp.Or(a.Time.Compare(b.Time), a.N-b.N) })
	return all, nil
}

// ErrNoRescue means that there is no rescue with that ref.
var ErrNoRescue = errors.New("no such rescue")

// Rescue returns the rescue with this full ref, or ErrNoRescue.
func (r *Repo) Rescue(ctx context.Context, ref string) (RescueInfo, error) {
	if !strings.HasPrefix(ref, rescuesPrefix) {
		return RescueInfo{}, fmt.Errorf("%s: %w", ref, ErrNoRescue)
	}
	g, err := r.plainGit()
	if err != nil {
		return RescueInfo{}, err
	}
	oid, err := g.Ref(ctx, ref)
	if errors.Is(err, git.ErrNoRef) {
		return RescueInfo{}, fmt.Errorf("%s: %w", ref, ErrNoRescue)
	}
	if err != nil {
		return RescueInfo{}, fmt.Errorf("read %s: %w", ref, err)
	}
	c, err := g.Commit(ctx, oid)
	if err != nil {
		return RescueInfo{}, fmt.Errorf("read %s: %w", ref, err)
	}
	info := rescueInfo(ref, c)
	info.N, _ = strconv.Atoi(ref[strings.LastIndexByte(ref, '/')+1:]) // 0: it has another name
	return info, nil
}
