// Package rescue stores content that exists only in a worktree before the worktree is removed, and shows it. A rescue has
// two parts. The branch, and the files that git shows, are in the repository, under refs/coven/rescue. Everything else may
// be secret: ignored files, files that are left out of a change or look like secrets, staged content, git directories, and
// commits that are on no branch, such as those of `git stash --all`.
// It is in a repository of coven's own, which no remote sees: see Private.
package rescue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// MaxIgnored limits the total size of ignored files that a rescue stores by default, in bytes.
const MaxIgnored = 10 << 20

// rescueTries limits the attempts to use a free number.
const rescueTries = 20

// An IgnoredError lists ignored files that exceed the limit for storing them. Nothing was removed.
type IgnoredError struct {
	Files []string // directories end with a slash
	Bytes int64
}

func (e *IgnoredError) Error() string {
	return fmt.Sprintf("ignored files of %d MB exist nowhere else: %s", e.Bytes>>20, strings.Join(e.Files, ", "))
}

// A Policy determines how a rescue treats ignored files.
type Policy int

// The policies.
const (
	CapIgnored  Policy = iota // store up to MaxIgnored, otherwise fail with *IgnoredError
	KeepIgnored               // store all
	DropIgnored               // store up to MaxIgnored, otherwise none
)

// The prefixes of the subjects of rescue commits. The task's ID follows.
const (
	rescueSubject  = "coven rescue of "
	ChangesSubject = "coven tripwire of "
)

// An Info describes a rescue: a stored state of a task's worktree, or stored changes that the tripwire
// found.
type Info struct {
	Ref, Commit, Note string
	Private           string // the commit of the private part, or empty
	N                 int
	Time              time.Time
	Task              string // its ID
	Changes           bool   // the rescue contains changes: see tripwire.RescuedChanges
}

// Take stores everything in the worktree as a commit on top of the branch's tip, under
// refs/coven/rescue/<name>/<n>, and returns that ref: tracked and untracked files, and in the private part ignored files
// up to 10 MB in total (all with keepBig), and the git directories of nested repositories, renamed because git does
// not store .git. From the worktree's own git directory, it stores staged content, a merge or rebase in
// progress, and commits that are on no branch, as a bundle. If there are more than 10 MB of ignored files, it fails with
// an *IgnoredError.
func Take(ctx context.Context, w *repo.Worktree, note string, keepBig bool) (ref string, err error) {
	p := CapIgnored
	if keepBig {
		p = KeepIgnored
	}
	info, err := Store(ctx, w, note, p)
	if err != nil {
		return "", fmt.Errorf("rescue %s: %w", w.TaskID, err)
	}
	return info.Ref, nil
}

// Store is Take with a policy for ignored files, for a caller that holds the worktree's lock.
func Store(ctx context.Context, w *repo.Worktree, note string, p Policy) (Info, error) {
	vacant, err := w.IsVacant()
	if err != nil {
		return Info{}, err
	}
	if vacant {
		return StoreBranch(ctx, w, note)
	}
	ix, tree, err := content.OpenStaged(ctx, w, nil)
	if err != nil {
		return Info{}, err
	}
	defer ix.Drop()
	hidden, err := FindHidden(ctx, w, ix, p)
	if err != nil {
		return Info{}, err
	}
	own, err := FindGitWork(ctx, w, tree)
	if err != nil {
		return Info{}, err
	}
	if err := content.CheckLarge(own.files); err != nil {
		return Info{}, err
	}
	for _, name := range hidden.Plain {
		hidden.Renamed[name] = filepath.Join(w.Path, name)
	}
	private, err := NewPrivate(w.Repo)
	if err != nil {
		return Info{}, err
	}
	if err := private.addFiles(ctx, w, hidden.Renamed); err != nil {
		return Info{}, err
	}
	if err := private.addWork(ctx, w, own); err != nil {
		return Info{}, err
	}
	if tree, err = private.takeSecrets(ctx, w, tree); err != nil {
		return Info{}, err
	}
	return storeParts(ctx, w, note, tree, private, own.bases)
}

// StoreStaged stores the files of a worktree, whose staged tree is given, on top of the branch's tip.
func StoreStaged(ctx context.Context, w *repo.Worktree, note, tree string) (Info, error) {
	private, err := NewPrivate(w.Repo)
	if err != nil {
		return Info{}, err
	}
	if tree, err = private.takeSecrets(ctx, w, tree); err != nil {
		return Info{}, err
	}
	return storeParts(ctx, w, note, tree, private, nil)
}

// StoreBranch stores the commits of a branch whose worktree does not exist, and the work in the worktree's
// git directory, if that exists.
func StoreBranch(ctx context.Context, w *repo.Worktree, note string) (Info, error) {
	tip, err := w.Tip(ctx)
	if err != nil {
		return Info{}, err
	}
	return rescueAdmin(ctx, w, note, tip, nil)
}

// StoreFiles stores ignored files of the worktree, beside those of the branch.
func StoreFiles(ctx context.Context, w *repo.Worktree, note string, paths []string) (Info, error) {
	files := map[string]string{}
	for _, name := range paths {
		files[name] = filepath.Join(w.Path, name)
	}
	private, err := NewPrivate(w.Repo)
	if err != nil {
		return Info{}, err
	}
	if err := private.addFiles(ctx, w, files); err != nil {
		return Info{}, err
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return Info{}, err
	}
	tree, err := w.Repo.Git().Tree(ctx, tip)
	if err != nil {
		return Info{}, err
	}
	return storeParts(ctx, w, note, tree, private, nil)
}

// StoreTree creates a commit and the next free ref. The commit's parent is the branch's tip.
func StoreTree(ctx context.Context, w *repo.Worktree, note, tree string) (Info, error) {
	return storeParts(ctx, w, note, tree, &Private{}, nil)
}

// storeParts stores the private part, then creates a commit and the next free ref. The commit's parents are the branch's
// tip and the bases of commits in the private part, which last as long as the rescue.
func storeParts(ctx context.Context, w *repo.Worktree, note, tree string, private *Private, bases []string) (Info, error) {
	part, err := private.Store(ctx)
	if err != nil {
		return Info{}, err
	}
	tip, err := w.TipIfAny(ctx)
	if err != nil {
		return Info{}, err
	}
	parents := bases
	if tip != "" {
		parents = slices.DeleteFunc(slices.Clone(bases), func(oid string) bool { return w.Repo.Git().KnownAncestor(ctx, oid, tip) })
		parents = slices.Insert(parents, 0, tip)
	}
	info := Info{Note: note, Time: time.Now(), Private: part}
	info.Commit, err = w.Repo.MakeCommit(ctx, tree, info.Message(rescueSubject, w.TaskID), nil, parents...)
	if err != nil {
		return info, err
	}
	return AddRef(ctx, w.Repo, w.Repo.Git(), w.TaskID, info)
}

// privateTrailer is the last line of the message of a rescue that has a private part. The part's commit follows.
const privateTrailer = "Private-part: "

// Message returns the message of the commit of a rescue.
func (i Info) Message(subject, taskID string) string {
	message := subject + taskID + "\n\n" + i.Note
	if i.Private != "" {
		message += "\n\n" + privateTrailer + i.Private
	}
	return message
}

// AddRef creates the next free ref for the commit of a rescue.
func AddRef(ctx context.Context, r *repo.Repo, g git.Repo, taskID string, info Info) (Info, error) {
	var refused error
	for range rescueTries {
		all, err := ListIn(ctx, g, taskID)
		if err != nil {
			return info, err
		}
		info.N = 1
		if len(all) > 0 {
			info.N = all[len(all)-1].N + 1
		}
		info.Ref = names.RescuePrefix(taskID) + strconv.Itoa(info.N)
		refused = r.Transact(ctx, g, "coven: rescue", ref.Create(info.Ref, info.Commit))
		if _, busy := errors.AsType[*lock.BusyError](refused); refused == nil || busy {
			return info, refused
		}
	}
	return info, refused
}

// List lists the stored states of a task's worktrees, oldest first.
func List(ctx context.Context, r *repo.Repo, taskID string) ([]Info, error) {
	return ListIn(ctx, r.Git(), taskID)
}

// ListIn is List with another git.Repo.
func ListIn(ctx context.Context, g git.Repo, taskID string) ([]Info, error) {
	refs, err := g.Refs(ctx, names.RescuePrefix(taskID))
	if err != nil {
		return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
	}
	var all []Info
	for _, ref := range refs {
		n, err := strconv.Atoi(strings.TrimPrefix(ref.Name, names.RescuePrefix(taskID)))
		if err != nil {
			continue // not created by coven
		}
		c, err := g.Commit(ctx, ref.Oid)
		if err != nil {
			return nil, fmt.Errorf("list rescues of %s: %w", taskID, err)
		}
		info := infoOf(ref.Name, c)
		info.N = n
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b Info) int { return a.N - b.N })
	return all, nil
}

// infoOf parses the commit of a rescue.
func infoOf(ref string, c object.Commit) Info {
	subject, note, _ := strings.Cut(strings.TrimSpace(c.Message), "\n\n")
	info := Info{Ref: ref, Commit: c.Oid, Note: note, Time: c.Time}
	if at := strings.LastIndex(note, "\n\n"+privateTrailer); at >= 0 && object.IsID(note[at+len("\n\n"+privateTrailer):]) {
		info.Note, info.Private = note[:at], note[at+len("\n\n"+privateTrailer):]
	}
	for _, kind := range []string{rescueSubject, ChangesSubject} {
		if task, found := strings.CutPrefix(subject, kind); found {
			info.Task, info.Changes = task, kind == ChangesSubject
		}
	}
	return info
}

// All lists the rescues of all tasks, oldest first.
func All(ctx context.Context, r *repo.Repo) ([]Info, error) {
	refs, err := r.Git().Refs(ctx, names.RescuesPrefix)
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
	var all []Info
	for i, c := range commits {
		info := infoOf(refs[i].Name, c)
		if info.N, err = strconv.Atoi(info.Ref[strings.LastIndexByte(info.Ref, '/')+1:]); err == nil {
			all = append(all, info)
		}
	}
	slices.SortStableFunc(all, func(a, b Info) int { return cmp.Or(a.Time.Compare(b.Time), a.N-b.N) })
	return all, nil
}

// ErrNone means that a rescue does not exist.
var ErrNone = errors.New("no such rescue")

// Find returns the rescue with this full ref, or ErrNone.
func Find(ctx context.Context, r *repo.Repo, name string) (Info, error) {
	if !strings.HasPrefix(name, names.RescuesPrefix) {
		return Info{}, fmt.Errorf("%s: %w", name, ErrNone)
	}
	g, err := r.PlainGit()
	if err != nil {
		return Info{}, err
	}
	oid, err := g.Ref(ctx, name)
	if errors.Is(err, ref.ErrNoRef) {
		return Info{}, fmt.Errorf("%s: %w", name, ErrNone)
	}
	if err != nil {
		return Info{}, fmt.Errorf("read %s: %w", name, err)
	}
	c, err := g.Commit(ctx, oid)
	if err != nil {
		return Info{}, fmt.Errorf("read %s: %w", name, err)
	}
	info := infoOf(name, c)
	info.N, _ = strconv.Atoi(name[strings.LastIndexByte(name, '/')+1:]) // 0 if the ref has another name
	return info, nil
}
