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

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
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

// TakeRescue stores everything in W as a commit above the branch's tip, under
// refs/coven/rescue/<name>/<n>, and returns that ref: tracked and untracked
// files, ignored ones up to 10 MB in total (all with keepBig), and the git
// directories of repositories inside W, renamed because git stores no .git. Of W's
// own git directory it stores what is staged, a merge or rebase in progress and
// commits that no branch has. Above 10 MB it fails with *IgnoredError.
func TakeRescue(ctx context.Context, w *repo.Worktree, note string, keepBig bool) (ref string, err error) {
	p := capIgnored
	if keepBig {
		p = keepIgnored
	}
	info, err := rescue(ctx, w, note, p)
	if err != nil {
		return "", fmt.Errorf("rescue %s: %w", w.TaskID, err)
	}
	return info.Ref, nil
}

func rescue(ctx context.Context, w *repo.Worktree, note string, p policy) (RescueInfo, error) {
	vacant, err := w.IsVacant()
	if err != nil {
		return RescueInfo{}, err
	}
	if vacant {
		return rescueBranch(ctx, w, note)
	}
	ix, tree, err := content.OpenStaged(ctx, w, nil)
	if err != nil {
		return RescueInfo{}, err
	}
	defer ix.Drop()
	hidden, err := hidden(ctx, w, ix, p)
	if err != nil {
		return RescueInfo{}, err
	}
	own, err := findGitWork(ctx, w, tree)
	if err != nil {
		return RescueInfo{}, err
	}
	if err := errors.Join(ix.Update(ctx, hidden.plain), takeAs(ctx, ix, hidden.renamed), takeWork(ctx, ix, own)); err != nil {
		return RescueInfo{}, err
	}
	if tree, err = ix.WriteTree(ctx); err != nil {
		return RescueInfo{}, err
	}
	return saveRescue(ctx, w, note, tree, own.commits...)
}

// rescueBranch keeps the commits of a branch whose directory does not exist, and what W's git
// directory has, if that is there.
func rescueBranch(ctx context.Context, w *repo.Worktree, note string) (RescueInfo, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	return rescueAdmin(ctx, w, note, tip, nil)
}

// rescueFiles stores single files, as bytes, without the rest of W.
func rescueFiles(ctx context.Context, w *repo.Worktree, note string, paths []string) (RescueInfo, error) {
	g, err := content.RawGit(w)
	if err != nil {
		return RescueInfo{}, err
	}
	ix, err := content.Open(w, g, "none")
	if err != nil {
		return RescueInfo{}, err
	}
	defer ix.Drop()
	if err := ix.Update(ctx, paths); err != nil {
		return RescueInfo{}, err
	}
	tree, err := ix.WriteTree(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	return saveRescue(ctx, w, note, tree)
}

// saveRescue creates the commit and the next free ref. It keeps the branch and other commits.
func saveRescue(ctx context.Context, w *repo.Worktree, note, tree string, commits ...string) (RescueInfo, error) {
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	parents := slices.DeleteFunc(slices.Clone(commits), func(oid string) bool { return oid == tip })
	if tip != "" {
		parents = slices.Insert(parents, 0, tip)
	}
	info := RescueInfo{Note: note, Time: time.Now()}
	info.Commit, err = w.Repo.MakeCommit(ctx, tree, rescueSubject+w.TaskID+"\n\n"+note, nil, parents...)
	if err != nil {
		return info, err
	}
	return refRescue(ctx, w.Repo, w.Repo.Git(), w.TaskID, info)
}

// refRescue creates the next free ref for the commit of a rescue.
func refRescue(ctx context.Context, r *repo.Repo, g git.Repo, taskID string, info RescueInfo) (RescueInfo, error) {
	var refused error
	for range rescueTries {
		all, err := rescues(ctx, g, taskID)
		if err != nil {
			return info, err
		}
		info.N = 1
		if len(all) > 0 {
			info.N = all[len(all)-1].N + 1
		}
		info.Ref = repo.RescuePrefix(taskID) + strconv.Itoa(info.N)
		refused = r.Transact(ctx, g, "coven: rescue", git.Create(info.Ref, info.Commit))
		if _, busy := errors.AsType[*repo.BusyError](refused); refused == nil || busy {
			return info, refused
		}
	}
	return info, refused
}

// ListRescues lists the stored states of a task's worktrees, oldest first.
func ListRescues(ctx context.Context, r *repo.Repo, taskID string) ([]RescueInfo, error) {
	return rescues(ctx, r.Git(), taskID)
}

func rescues(ctx context.Context, g git.Repo, taskID string) ([]RescueInfo, error) {
	refs, err := g.Refs(ctx, repo.RescuePrefix(taskID))
	if err != nil {
		return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
	}
	var all []RescueInfo
	for _, ref := range refs {
		n, err := strconv.Atoi(strings.TrimPrefix(ref.Name, repo.RescuePrefix(taskID)))
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

// AllRescues lists the rescues of all tasks, oldest first.
func AllRescues(ctx context.Context, r *repo.Repo) ([]RescueInfo, error) {
	refs, err := r.Git().Refs(ctx, repo.RescuesPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the rescues: %w", err)
	}
	var oids []string
	for _, ref := range refs {
		oids = append(oids, ref.Oid)
	}
	commits, err := r.Git().Commits(ctx, oids...)
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

// FindRescue returns the rescue with this full ref, or ErrNoRescue.
func FindRescue(ctx context.Context, r *repo.Repo, ref string) (RescueInfo, error) {
	if !strings.HasPrefix(ref, repo.RescuesPrefix) {
		return RescueInfo{}, fmt.Errorf("%s: %w", ref, ErrNoRescue)
	}
	g, err := r.PlainGit()
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
