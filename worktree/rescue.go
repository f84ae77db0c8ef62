package worktree

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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

// A RescueInfo is one stored state of a task's worktree.
type RescueInfo struct {
	Ref, Commit, Note string
	N                 int
	Time              time.Time
}

// Rescue stores everything in W as a commit above the branch's tip, under
// refs/coven/rescue/<name>/<n>, and returns that ref: tracked and untracked
// files, ignored ones up to 10 MB in total (all with keepBig), and the git
// directories of repositories inside W, renamed because git stores no .git.
// Above 10 MB it fails with *IgnoredError.
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
	ix, _, err := w.stagedRaw(ctx, nil)
	if err != nil {
		return RescueInfo{}, err
	}
	defer ix.drop()
	hidden, err := w.hidden(ctx, ix, p)
	if err != nil {
		return RescueInfo{}, err
	}
	if err := errors.Join(ix.take(ctx, hidden.plain), ix.takeAs(ctx, hidden.renamed)); err != nil {
		return RescueInfo{}, err
	}
	tree, err := ix.tree(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	return w.saveRescue(ctx, note, tree)
}

// rescueBranch keeps the commits of a branch whose directory does not exist.
func (w *Worktree) rescueBranch(ctx context.Context, note string) (RescueInfo, error) {
	oid, err := w.Tip(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	tip, err := w.repo.git().Commit(ctx, oid)
	if err != nil {
		return RescueInfo{}, err
	}
	return w.saveRescue(ctx, note, tip.Tree)
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

// saveRescue creates the commit and the next free ref.
func (w *Worktree) saveRescue(ctx context.Context, note, tree string) (RescueInfo, error) {
	parents, err := w.rescueParents(ctx)
	if err != nil {
		return RescueInfo{}, err
	}
	info := RescueInfo{Note: note, Time: time.Now()}
	info.Commit, err = w.repo.makeCommit(ctx, tree, "coven rescue of "+w.TaskID+"\n\n"+note, nil, parents...)
	if err != nil {
		return info, err
	}
	var refused error
	for range rescueTries {
		all, err := w.repo.Rescues(ctx, w.TaskID)
		if err != nil {
			return info, err
		}
		info.N = 1
		if len(all) > 0 {
			info.N = all[len(all)-1].N + 1
		}
		info.Ref = rescuePrefix(w.TaskID) + strconv.Itoa(info.N)
		refused = w.repo.transact(ctx, w.repo.git(), "coven: rescue", git.Create(info.Ref, info.Commit))
		if _, busy := errors.AsType[*BusyError](refused); refused == nil || busy {
			return info, refused
		}
	}
	return info, refused
}

// rescueParents returns the branch's tip and, if the agent left its branch, the commit
// of HEAD, which nothing else would keep.
func (w *Worktree) rescueParents(ctx context.Context) ([]string, error) {
	tip, err := w.tipIfAny(ctx)
	if err != nil {
		return nil, err
	}
	var parents []string
	if tip != "" {
		parents = append(parents, tip)
	}
	if w.admin == "" {
		return parents, nil
	}
	head, headErr := w.repo.git().Line(ctx, "rev-parse", "--verify", "--quiet",
		"worktrees/"+filepath.Base(w.admin)+"/HEAD^{commit}")
	if headErr == nil && head != tip { // otherwise HEAD is unborn or broken: nothing to keep
		parents = append(parents, head)
	}
	return parents, nil
}

// Rescues lists the stored states of a task's worktrees, oldest first.
func (r *Repo) Rescues(ctx context.Context, taskID string) ([]RescueInfo, error) {
	refs, err := r.git().Refs(ctx, rescuePrefix(taskID))
	if err != nil {
		return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
	}
	var all []RescueInfo
	for _, ref := range refs {
		n, err := strconv.Atoi(strings.TrimPrefix(ref.Name, rescuePrefix(taskID)))
		if err != nil {
			continue // not one of ours
		}
		c, err := r.git().Commit(ctx, ref.Oid)
		if err != nil {
			return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
		}
		_, note, _ := strings.Cut(c.Message, "\n\n")
		all = append(all, RescueInfo{
			Ref: ref.Name, Commit: ref.Oid, Note: strings.TrimSpace(note), N: n, Time: c.Time,
		})
	}
	slices.SortFunc(all, func(a, b RescueInfo) int { return a.N - b.N })
	return all, nil
}

func rescuePrefix(taskID string) string { return "refs/coven/rescue/" + SafeName(taskID) + "/" }

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
