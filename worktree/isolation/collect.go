package isolation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// A CommitsError means that the commits of an agent in an isolated worktree cannot be taken into the
// repository. They stay in the worktree's git directory.
type CommitsError struct {
	Task   string
	Reason error
}

// Error names the task and the reason.
func (e *CommitsError) Error() string {
	return fmt.Sprintf("cannot take the agent's commits for %s into the repository: %v", e.Task, e.Reason)
}

// Unwrap returns the reason.
func (e *CommitsError) Unwrap() error { return e.Reason }

// TakeCommits ends the isolation that Begin started: it takes the commits on the task's branch into the
// repository and makes the worktree an ordinary linked worktree again. The branch may have moved to any
// commit; other refs stay in the private common directory. No program of the task may still be running.
//
// Objects are transferred by a single fetch, which checks them. git never reads the agent's configuration,
// and reads only objects from the worktree's git directory. If the commits cannot be taken, the error is a
// *CommitsError, the branch does not move, and the worktree is an ordinary one. TakeCommits can be repeated
// after a kill, and does nothing if the worktree is not isolated.
func TakeCommits(ctx context.Context, w *repo.Worktree) error {
	l, err := w.Lock(ctx, "collect")
	if err != nil {
		return err
	}
	defer l.Release()
	since, err := ReadRecord(w)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = end(ctx, w, since, l)
	}
	if err != nil {
		return fmt.Errorf("collect %s: %w", w.TaskID, err)
	}
	return nil
}

// end ends an isolation. Its record stays until the worktree is an ordinary one.
func end(ctx context.Context, w *repo.Worktree, since Record, l *lock.Lock) error {
	if err := errors.Join(regainOwn(w), RepairLinks(w), takeLFS(w)); err != nil {
		return err
	}
	taken := takeCommits(ctx, w, since.Tip, l)
	if refused := (*CommitsError)(nil); taken != nil && !errors.As(taken, &refused) {
		return taken // it can be repeated
	}
	return errors.Join(taken, Rejoin(ctx, w, since))
}

// RepairLinks repairs the links and HEAD in the worktree's git directory, which a program of the task may have
// replaced. git reads those of all worktrees, even during a fetch into the repository, and would block on a pipe.
func RepairLinks(w *repo.Worktree) error {
	head := filepath.Join(w.Admin, "HEAD")
	if _, err := file.Read(head, object.MaxGitFile); err != nil {
		if err := putFile(w, head, "ref: "+names.HeadsPrefix+w.Branch+"\n"); err != nil {
			return err
		}
	}
	return putLinks(w, names.PrivateDir)
}

// Rejoin makes an isolated worktree an ordinary linked worktree again, in which git runs no program of the agent's.
func Rejoin(ctx context.Context, w *repo.Worktree, since Record) error {
	removeLeftLocks(w)
	if err := errors.Join(regainOwn(w), putLinks(w, filepath.Join("..", "..")), settleHead(ctx, w, since)); err != nil {
		return err
	}
	if err := disarm(ctx, w); err != nil {
		return fmt.Errorf("check the worktree's git configuration: %w", err)
	}
	failpoint.Point("collect.disarmed")
	if err := openGit(w); err != nil {
		return err
	}
	failpoint.Point("collect.linked")
	return os.Remove(isolationPath(w))
}

// takeCommits takes the commits that were made since the branch was at tip.
func takeCommits(ctx context.Context, w *repo.Worktree, tip string, l *lock.Lock) error {
	made, err := privateTip(w)
	if errors.Is(err, ref.ErrNoRef) || err == nil && made == tip {
		return nil
	}
	if err == nil {
		err = checkPrivateObjects(w)
	}
	if err != nil {
		return &CommitsError{w.TaskID, err}
	}
	if err := fetchPrivate(ctx, w, made, l); err != nil {
		return err
	}
	failpoint.Point("collect.fetched")
	if err := checkChanges(ctx, w, tip, made); err != nil {
		return err
	}
	refs, err := refs(ctx, w.Repo)
	if err != nil {
		return err
	}
	edits := []ref.Edit{ref.Drop(IncomingRef(w))}
	if refs[names.HeadsPrefix+w.Branch] != made { // otherwise coven was killed after the branch had moved
		edits = append(edits, ref.Move(names.HeadsPrefix+w.Branch, made, tip))
	}
	err = w.Repo.Transact(ctx, w.Repo.Git(), "coven: collect", edits...)
	failpoint.Point("collect.moved")
	return err
}

// checkChanges refuses commits that change too many files.
func checkChanges(ctx context.Context, w *repo.Worktree, from, to string) error {
	_, err := w.Repo.Git().Changes(ctx, from, to)
	if !errors.Is(err, object.ErrManyChanges) {
		return err
	}
	return errors.Join(&CommitsError{w.TaskID, err}, w.Repo.Transact(ctx, w.Repo.Git(), "coven: collect", ref.Drop(IncomingRef(w))))
}

// MaxHeadLog limits the size of the reflog of the worktree's HEAD, in bytes.
const MaxHeadLog = 16 << 20

// settleHead makes the worktree's HEAD and its reflog refer only to objects in the repository. It takes the
// commit of a detached HEAD into the repository. If HEAD is on a branch that stayed in the private common
// directory, it returns HEAD to the task's branch. It removes reflog entries whose commits stayed there.
func settleHead(ctx context.Context, w *repo.Worktree, since Record) error {
	branch := "ref: " + names.HeadsPrefix + w.Branch + "\n"
	head := filepath.Join(w.Admin, "HEAD")
	raw, err := file.Read(head, object.MaxGitFile)
	if text := string(raw); err != nil || text != branch && !resolves(ctx, w.Repo, text) && !takeHead(ctx, w, text) {
		if err := putFile(w, head, branch); err != nil {
			return err
		}
	}
	if since.Log != "" && headLogSum(w) == since.Log {
		return nil
	}
	log := headLog(w)
	if err := clearParents(w, log); err != nil {
		return err
	}
	raw, err = file.Read(log, MaxHeadLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return SetAsidePrivate(w, log)
	}
	kept, err := knownEntries(ctx, w.Repo, lastLines(string(raw), maxHeadEntries))
	if err != nil || kept == string(raw) {
		return err
	}
	return putFile(w, log, kept)
}

// maxHeadEntries limits the entries of the reflog that are kept: git needs some milliseconds for a missing object.
const maxHeadEntries = 1000

// lastLines returns the last n lines of a text.
func lastLines(text string, n int) string {
	for at := len(text); at > 0; n-- {
		if n == 0 {
			return text[at:]
		}
		at = strings.LastIndexByte(text[:at-1], '\n') + 1
	}
	return text
}

// leftHead is the private ref for the commit of a HEAD that could not be taken into the repository.
const leftHead = "refs/coven/left"

// takeHead takes the commit of a detached HEAD into the repository, and reports whether it did. If that
// fails, leftHead preserves the commit.
func takeHead(ctx context.Context, w *repo.Worktree, head string) bool {
	oid := strings.TrimSuffix(head, "\n")
	if !object.IsID(oid) {
		return false
	}
	kinds, err := TakePrivate(ctx, w, []string{oid})
	if err == nil && kinds[oid] == "commit" {
		return true
	}
	_ = putPrivateRef(w, leftHead, oid) // fails only for a damaged private directory
	return false
}

// resolves reports whether the content of a HEAD file refers to a commit in the repository.
func resolves(ctx context.Context, r *repo.Repo, head string) bool {
	name, symbolic := strings.CutPrefix(strings.TrimSuffix(head, "\n"), "ref: ")
	if symbolic {
		_, err := r.Git().Ref(ctx, name)
		return err == nil
	}
	if !object.IsID(name) {
		return false
	}
	has, err := r.Git().Has(ctx, name, "commit")
	return err == nil && has
}

// knownEntries returns the entries of a reflog whose commits are in the repository.
func knownEntries(ctx context.Context, r *repo.Repo, log string) (string, error) {
	var asked []string
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); len(fields) > 1 {
			asked = append(asked, fields[0], fields[1])
		}
	}
	kinds, err := r.Git().Kinds(ctx, asked)
	if err != nil {
		return "", err
	}
	known := func(oid string) bool { return kinds[oid] != "" || strings.Trim(oid, "0") == "" }
	var kept strings.Builder
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); len(fields) > 1 && known(fields[0]) && known(fields[1]) {
			kept.WriteString(line)
		}
	}
	return kept.String(), nil
}

// IncomingRef returns the ref of the fetched commits until the branch reaches them.
func IncomingRef(w *repo.Worktree) string { return "refs/coven/in/" + w.Name }

// privateTip returns the tip of the task's branch in the private common directory, or ref.ErrNoRef. It only
// reads files.
func privateTip(w *repo.Worktree) (string, error) {
	oid, err := object.ReadRef(PrivatePath(w), names.HeadsPrefix+w.Branch, nil)
	if err == nil && !object.IsID(oid) {
		err = fmt.Errorf("the branch %s is not a commit", w.Branch)
	}
	return oid, err
}

// checkPrivateObjects returns an error if the private object directory contains anything but files and
// directories: links could transfer objects of other repositories. It also restores the list of alternates.
func checkPrivateObjects(w *repo.Worktree) error {
	objects := PrivatePath(w, "objects")
	for _, dir := range []string{PrivatePath(w), objects} {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(fmt.Errorf("%s is not a directory", dir), err)
		}
	}
	err := filepath.WalkDir(objects, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !entry.Type().IsRegular() {
			err = fmt.Errorf("%s is not a file", path)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(objects, "info"), 0o755); err != nil {
		return err
	}
	return putFile(w, filepath.Join(objects, "info", "alternates"), string(alternates(w)))
}

// fetchPrivate fetches a commit from the private objects to IncomingRef. It fetches from a repository that
// consists of only this commit and these objects.
func fetchPrivate(ctx context.Context, w *repo.Worktree, oid string, l *lock.Lock) error {
	from, err := exportIndex(w, oid)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(from) }() // otherwise the next call replaces it
	// The HEAD of another worktree may be a commit in its private directory, which git would not find.
	// PlainGit has no worktrees.
	g, err := w.Repo.PlainGit()
	if err != nil {
		return err
	}
	g.Hold = l.File()
	g.Env = []string{"GIT_NO_LAZY_FETCH=1"}
	g.Settings = append(g.Settings,
		git.Setting{Key: "fetch.fsckObjects", Value: "true"}, git.Setting{Key: "protocol.file.allow", Value: "always"},
		git.Setting{Key: "fetch.writeCommitGraph", Value: "false"},
	)
	if err := w.Repo.RefLog().Begin(ref.Set(IncomingRef(w), oid)); err != nil {
		return err
	}
	ref := names.HeadsPrefix + w.Branch
	err = g.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules",
		from, "+"+ref+":"+IncomingRef(w))
	if err != nil && ctx.Err() == nil {
		return &CommitsError{w.TaskID, err}
	}
	return err
}

// exportIndex creates a repository for one fetch, where the agent cannot write.
func exportIndex(w *repo.Worktree, oid string) (string, error) {
	dir := w.StatePath("export")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(dir, "refs"), 0o755); err != nil {
		return "", err
	}
	return dir, git.PrepareDir(dir, git.MinimalConfig(w.Repo.Format, true), map[string]string{
		"packed-refs":             oid + " " + names.HeadsPrefix + w.Branch + "\n",
		"objects/info/alternates": PrivatePath(w, "objects") + "\n",
	})
}
