package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
)

// A CommitsError means that commits which an agent made in an isolated W cannot be taken into
// the repository. They stay in W's git directory.
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

// Collect ends Isolate: it takes the commits on the task's branch into the repository and
// makes W an ordinary linked worktree again. The branch may point elsewhere than before; other
// refs stay in the private common directory. No program of the task may run any more.
//
// Objects cross by one fetch, which checks them. git never reads the agent's configuration,
// and reads nothing but objects of W's git directory. If they cannot be taken, the error is a
// *CommitsError, the branch stays as it was, and W is an ordinary worktree. Collect can be
// repeated after a kill, and does nothing if W is not isolated.
func (w *Worktree) Collect(ctx context.Context) error {
	l, err := w.lock(ctx, "collect")
	if err != nil {
		return err
	}
	defer l.Release()
	since, err := w.isolation()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = w.end(ctx, since, l)
	}
	if err != nil {
		return fmt.Errorf("collect %s: %w", w.TaskID, err)
	}
	return nil
}

// end is Collect for an isolation. Its record stays until W is an ordinary worktree.
func (w *Worktree) end(ctx context.Context, since isolation, l *lock.Lock) error {
	if err := errors.Join(w.regainOwn(), w.mend()); err != nil {
		return err
	}
	taken := w.collect(ctx, since.Tip, l)
	if refused := (*CommitsError)(nil); taken != nil && !errors.As(taken, &refused) {
		return taken // it can be repeated
	}
	return errors.Join(taken, w.rejoin(ctx, since))
}

// mend replaces what a program of the task put in the place of W's links and HEAD: git reads
// those of all worktrees, also in a fetch into the repository, and would wait for a pipe.
func (w *Worktree) mend() error {
	head := filepath.Join(w.admin, "HEAD")
	if _, err := file.Read(head, maxGitFile); err != nil {
		if err := w.putFile(head, "ref: "+headsPrefix+w.Branch+"\n"); err != nil {
			return err
		}
	}
	return w.putLinks(privateDir)
}

// rejoin makes W an ordinary linked worktree again.
func (w *Worktree) rejoin(ctx context.Context, since isolation) error {
	w.removeLeftLocks()
	if err := errors.Join(w.regainOwn(), w.putLinks(filepath.Join("..", "..")), w.settleHead(ctx, since)); err != nil {
		return err
	}
	failpoint.Point("collect.linked")
	return os.Remove(w.isolationPath())
}

// collect takes over what was committed since the branch was at tip.
func (w *Worktree) collect(ctx context.Context, tip string, l *lock.Lock) error {
	made, err := w.privateTip()
	if errors.Is(err, git.ErrNoRef) || err == nil && made == tip {
		return nil
	}
	if err == nil {
		err = w.checkPrivateObjects()
	}
	if err != nil {
		return &CommitsError{w.TaskID, err}
	}
	if err := w.fetchPrivate(ctx, made, l); err != nil {
		return err
	}
	failpoint.Point("collect.fetched")
	refs, err := w.repo.refs(ctx)
	if err != nil {
		return err
	}
	edits := []git.Edit{git.Drop(w.incomingRef())}
	if refs[headsPrefix+w.Branch] != made { // otherwise it was killed after the branch had moved
		edits = append(edits, git.Move(headsPrefix+w.Branch, made, tip))
	}
	err = w.repo.transact(ctx, w.repo.git(), "coven: collect", edits...)
	failpoint.Point("collect.moved")
	return err
}

// maxHeadLog limits the log of W's HEAD, in bytes.
const maxHeadLog = 16 << 20

// settleHead makes HEAD of W and its log refer to what the repository has: the commit of a HEAD
// that has left all branches is taken into the repository; HEAD returns to the task's branch if its
// own branch stayed in the private common directory, and entries of the log whose commits did are
// removed.
func (w *Worktree) settleHead(ctx context.Context, since isolation) error {
	branch := "ref: " + headsPrefix + w.Branch + "\n"
	head := filepath.Join(w.admin, "HEAD")
	raw, err := file.Read(head, maxGitFile)
	if text := string(raw); err != nil || text != branch && !w.repo.resolves(ctx, text) && !w.takeHead(ctx, text) {
		if err := w.putFile(head, branch); err != nil {
			return err
		}
	}
	if since.Log != "" && w.headLogSum() == since.Log {
		return nil
	}
	log := w.headLog()
	if err := w.clearWay(log); err != nil {
		return err
	}
	raw, err = file.Read(log, maxHeadLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return w.setAside(log)
	}
	kept, err := w.repo.knownEntries(ctx, string(raw))
	if err != nil || kept == string(raw) {
		return err
	}
	return w.putFile(log, kept)
}

// leftHead is the private ref of a commit of HEAD that cannot be taken into the repository.
const leftHead = "refs/coven/left"

// takeHead takes the commit of a detached HEAD into the repository, where HEAD keeps it. If it
// cannot be taken, leftHead does, and it reports false.
func (w *Worktree) takeHead(ctx context.Context, head string) bool {
	oid := strings.TrimSuffix(head, "\n")
	if !oidRE.MatchString(oid) {
		return false
	}
	kinds, err := w.takePrivate(ctx, []string{oid})
	if err == nil && kinds[oid] == "commit" {
		return true
	}
	_ = w.putPrivateRef(leftHead, oid) // only a damaged private directory prevents it
	return false
}

// resolves reports whether the content of a HEAD refers to a commit of the repository.
func (r *Repo) resolves(ctx context.Context, head string) bool {
	name, symbolic := strings.CutPrefix(strings.TrimSuffix(head, "\n"), "ref: ")
	if symbolic {
		_, err := r.git().Ref(ctx, name)
		return err == nil
	}
	if !oidRE.MatchString(name) {
		return false
	}
	has, err := r.git().Has(ctx, name, "commit")
	return err == nil && has
}

// knownEntries returns the entries of a ref's log whose commits the repository has.
func (r *Repo) knownEntries(ctx context.Context, log string) (string, error) {
	var asked strings.Builder
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); len(fields) > 1 {
			asked.WriteString(fields[0] + "\n" + fields[1] + "\n")
		}
	}
	answers, err := r.git().Feed(ctx, []byte(asked.String()), "cat-file", "--batch-check")
	if err != nil {
		return "", err
	}
	missing := map[string]bool{}
	for line := range strings.Lines(string(answers)) {
		if oid, ok := strings.CutSuffix(strings.TrimSuffix(line, "\n"), " missing"); ok && strings.Trim(oid, "0") != "" {
			missing[oid] = true
		}
	}
	var kept strings.Builder
	for line := range strings.Lines(log) {
		if fields := strings.Fields(line); len(fields) > 1 && !missing[fields[0]] && !missing[fields[1]] {
			kept.WriteString(line)
		}
	}
	return kept.String(), nil
}

// incomingRef points to the fetched commits until the branch does.
func (w *Worktree) incomingRef() string { return "refs/coven/in/" + w.name }

// privateTip returns the commit of the task's branch in the private common directory, or
// git.ErrNoRef. It only reads files.
func (w *Worktree) privateTip() (string, error) {
	name := headsPrefix + w.Branch
	raw, err := file.Read(w.private(name), maxGitFile)
	switch {
	case err == nil:
		oid := strings.TrimSuffix(string(raw), "\n")
		if !oidRE.MatchString(oid) {
			return "", fmt.Errorf("the branch %s is not a commit", w.Branch)
		}
		return oid, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	packed, err := packedRefs(w.private())
	if err != nil {
		return "", err
	}
	if oid, found := packed[name]; found {
		return oid, nil
	}
	return "", fmt.Errorf("%s: %w", name, git.ErrNoRef)
}

// checkPrivateObjects returns an error if the private objects contain anything but files and
// directories: links could make objects of other repositories cross. It restores the list of
// other object directories.
func (w *Worktree) checkPrivateObjects() error {
	objects := w.private("objects")
	for _, dir := range []string{w.private(), objects} {
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
	return w.putFile(filepath.Join(objects, "info", "alternates"), string(w.alternates()))
}

// fetchPrivate fetches a commit of the private objects to incomingRef, from a repository that
// consists of this commit and those objects.
func (w *Worktree) fetchPrivate(ctx context.Context, oid string, l *lock.Lock) error {
	from, err := w.exported(oid)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(from) }() // the next one replaces it
	// The HEAD of another worktree may name a commit that is in its private directory, which git
	// would not find. plainGit knows no worktrees.
	g, err := w.repo.plainGit()
	if err != nil {
		return err
	}
	g.Hold = l.File()
	g.Env = []string{"GIT_NO_LAZY_FETCH=1"}
	g.Settings = append(g.Settings,
		git.Setting{Key: "fetch.fsckObjects", Value: "true"}, git.Setting{Key: "protocol.file.allow", Value: "always"},
		git.Setting{Key: "fetch.writeCommitGraph", Value: "false"},
	)
	if err := w.repo.logRefs(git.Set(w.incomingRef(), oid)); err != nil {
		return err
	}
	ref := headsPrefix + w.Branch
	err = g.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-auto-gc", "--no-prune", "--no-write-fetch-head", "--no-recurse-submodules",
		from, "+"+ref+":"+w.incomingRef())
	if err != nil && ctx.Err() == nil {
		return &CommitsError{w.TaskID, err}
	}
	return err
}

// exported makes a repository for one fetch, where the agent cannot write.
func (w *Worktree) exported(oid string) (string, error) {
	dir := w.ours("export")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, sub := range []string{"refs", "objects/info"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return "", err
		}
	}
	config := "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
	if len(oid) == 64 {
		config = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
	}
	for name, text := range map[string]string{
		"HEAD": "ref: " + headsPrefix + w.Branch + "\n", "config": config, "packed-refs": oid + " " + headsPrefix + w.Branch + "\n",
		"objects/info/alternates": w.private("objects") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
