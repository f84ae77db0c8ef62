package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/lock"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/pool"
	"github.com/coven-run/coven/worktree/tripwire"
)

// The kinds of leftovers.
const (
	StaleRegistration = "registration" // in GitDir/worktrees, its directory is gone
	StaleDirectory    = "directory"    // in one of WorktreeDirs, unknown to coven and git
	StaleRecord       = "record"       // in coven/tasks, without worktree and branch
	StaleBranch       = "branch"       // without worktree and record
	StaleTemporary    = "temporary"    // files of an operation that was killed
	StaleTrash        = "trash"        // not yet deleted by a killed removal
	StaleIntegration  = "integration"  // an integration was killed and not finished
	StaleLanding      = "landing"      // a landing was killed while it changed a checkout, or a checkout is behind
)

// unexaminedDir contains worktrees that coven 0.1.0 renamed after they had landed, if it was killed before
// it had searched them for unsaved content. Refs with unexaminedPrefix point to the commits that landed.
const (
	unexaminedDir    = ".unexamined"
	unexaminedPrefix = "refs/coven/unexamined/"
)

// staleAge is the minimum age at which an operation's file counts as left over. Files in use are locked,
// but only shortly after they are created.
const staleAge = time.Minute

// A Stale is a leftover, identified by Path or Ref.
type Stale struct {
	Kind string
	Task string // the ID, or the name in Path or Ref without a record
	Path string // absolute
	Ref  string // full name
	Text string // one line for the user
}

// ErrNotStale is returned for a path or ref that is not, or no longer, left over.
var ErrNotStale = errors.New("no longer left over")

// FindStale lists leftovers, sorted by kind and name. owned reports whether a task belongs to a session.
// Files of such tasks, of those of other users and of running operations are not listed. A branch with a record is never
// listed, even without a worktree: it is work that Recreate and Leftover find.
func FindStale(ctx context.Context, r *repo.Repo, owned func(taskID string) bool) ([]Stale, error) {
	all, err := stale(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("find leftovers: %w", err)
	}
	return slices.DeleteFunc(all, func(s Stale) bool {
		return s.Task != "" && (owned(s.Task) || working(r, s.Task) || r.IsForeignTask(SafeName(s.Task)))
	}), nil
}

func stale(ctx context.Context, r *repo.Repo) ([]Stale, error) {
	look, err := lookForStale(ctx, r)
	if err != nil {
		return nil, err
	}
	var all []Stale
	for _, find := range []func(context.Context, *repo.Repo, *survey) ([]Stale, error){
		staleRegistrations, staleDirectories, staleRecords, staleBranches, staleFiles, staleLandings,
	} {
		found, err := find(ctx, r, look)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Stale) int {
		return strings.Compare(a.Kind+"\x00"+a.Path+a.Ref, b.Kind+"\x00"+b.Path+b.Ref)
	})
	return all, nil
}

// A survey lists all traces of tasks, by name.
type survey struct {
	tasks    map[string]string  // name -> ID, if known
	records  []string           // names in coven/tasks
	branches map[string]ref.Ref // the tasks' branches, by the names of the tasks
	admins   map[string]string  // registration -> its checkout
}

func lookForStale(ctx context.Context, r *repo.Repo) (*survey, error) {
	s := &survey{tasks: map[string]string{}, branches: map[string]ref.Ref{}, admins: map[string]string{}}
	claims, err := claim.List(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, claim := range claims {
		s.tasks[names.SafeName(claim.Task)] = claim.Task
	}
	if s.records, err = r.TaskNames(); err != nil {
		return nil, err
	}
	for _, name := range s.records {
		if rec, err := r.ReadRecord(name); err == nil {
			s.tasks[name] = rec.Task
		}
	}
	refs, err := r.TaskRefs(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		s.branches[ref.Task] = ref.Ref
	}
	admins, err := r.Admins()
	for _, admin := range admins {
		s.admins[admin] = r.AdminPath(admin)
	}
	return s, err
}

// task returns the ID of the task with this name, or the name if the ID is unknown.
func (s *survey) task(name string) string {
	if id := s.tasks[name]; id != "" {
		return id
	}
	return name
}

func (s *survey) recorded(name string) bool { return slices.Contains(s.records, name) }

// staleRegistrations finds registrations in coven's directories whose directory does not exist and that no user has
// locked.
func staleRegistrations(_ context.Context, r *repo.Repo, s *survey) ([]Stale, error) {
	var found []Stale
	for admin, path := range s.admins {
		dir := filepath.Join(r.GitDir, "worktrees", admin)
		if !slices.Contains(r.WorktreeDirs(), filepath.Dir(path)) || file.Exists(path) || file.Exists(filepath.Join(dir, "locked")) {
			continue
		}
		found = append(found, Stale{
			Kind: StaleRegistration, Task: s.task(filepath.Base(path)), Path: dir,
			Text: "git still has a worktree registered at " + path + ", which does not exist",
		})
	}
	return found, nil
}

func staleDirectories(_ context.Context, r *repo.Repo, s *survey) (found []Stale, err error) {
	for _, top := range r.WorktreeDirs() {
		here, err := staleDirectoriesIn(top, s)
		if err != nil {
			return nil, err
		}
		found = append(found, here...)
	}
	return found, nil
}

func staleDirectoriesIn(top string, s *survey) (found []Stale, err error) {
	entries, err := os.ReadDir(top)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	known := map[string]bool{}
	for _, path := range s.admins {
		known[path] = true
	}
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(top, entry.Name())
		switch {
		case strings.HasPrefix(name, pool.TrashPrefix):
			found = append(found, Stale{Kind: StaleTrash, Path: path, Text: "remains of a removed worktree: " + path})
		case name == pool.DirName, name == unexaminedDir: // pool.Tidy removes the former; the latter is handled below
		case entry.IsDir() && !known[path] && !s.recorded(name):
			found = append(found, Stale{
				Kind: StaleDirectory, Task: s.task(name), Path: path,
				Text: "directory without task or git worktree: " + path,
			})
		}
	}
	for _, entry := range file.Directories(filepath.Join(top, unexaminedDir)) {
		path := filepath.Join(top, unexaminedDir, entry.Name())
		found = append(found, Stale{
			Kind: StaleDirectory, Task: entry.Name(), Path: path, Text: "files of a landed worktree that coven 0.1.0 left in " + path,
		})
	}
	return found, nil
}

func staleRecords(_ context.Context, r *repo.Repo, s *survey) ([]Stale, error) {
	var found []Stale
	for _, name := range s.records {
		if s.branches[name].Oid != "" || file.Exists(r.WorktreePath(name)) {
			continue
		}
		found = append(found, Stale{
			Kind: StaleRecord, Task: s.task(name), Path: r.StatePath("tasks", name),
			Text: "task " + s.task(name) + " has a record but neither worktree nor branch",
		})
	}
	return found, nil
}

// staleBranches finds branches without worktree and record, except those that a user has checked out.
func staleBranches(ctx context.Context, r *repo.Repo, s *survey) ([]Stale, error) {
	var found []Stale
	for name, branch := range s.branches {
		if s.recorded(name) || file.Exists(r.WorktreePath(name)) || name != names.SafeName(name) {
			continue
		}
		if used, err := land.CheckoutsOf(ctx, r, branch.Name, nil); err != nil {
			return nil, err
		} else if len(used) > 0 {
			continue
		}
		found = append(found, Stale{
			Kind: StaleBranch, Task: s.task(name), Ref: branch.Name,
			Text: "branch " + strings.TrimPrefix(branch.Name, names.HeadsPrefix) + " has neither worktree nor record",
		})
	}
	return found, nil
}

// staleFiles finds files that killed operations left in coven's own directories.
func staleFiles(_ context.Context, r *repo.Repo, s *survey) ([]Stale, error) {
	var found []Stale
	tasks := map[string]string{r.StatePath("tasks", content.ScratchName): "", r.StatePath("tasks", tripwire.WatchName): "", r.StatePath("moves"): "", r.OwnStatePath("raw"): ""}
	for _, name := range s.records {
		tasks[r.StatePath("tasks", name)] = s.task(name)
	}
	for dir, task := range tasks {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			switch {
			case isOperation(entry) && !inUse(path), isUnfinished(entry) && isOld(path):
				found = append(found, Stale{
					Kind: StaleTemporary, Task: task, Path: path, Text: "a killed operation left " + path,
				})
			case entry.Name() == "integrate.json" && isOld(path):
				found = append(found, Stale{
					Kind: StaleIntegration, Task: task, Path: path, Text: "an integration of " + task + " was killed before it finished",
				})
			}
		}
	}
	return found, nil
}

// staleLandings finds checkouts that a killed landing was changing, or that are behind one.
func staleLandings(ctx context.Context, r *repo.Repo, _ *survey) ([]Stale, error) {
	all, err := land.Checkouts(r)
	if err != nil {
		return nil, err
	}
	var found []Stale
	for _, c := range all {
		if _, held := r.Locks.Holder(c.LockName()); held {
			continue // it is running
		}
		m := c.Mover()
		if _, left, err := m.Left(); err != nil {
			return nil, err
		} else if left != nil {
			found = append(found, Stale{
				Kind: StaleLanding, Task: left.Task, Path: m.State + ".json",
				Text: "a landing of " + cmp.Or(left.Task, "a task") + " was killed while it changed the checkout " + c.Path,
			})
			continue
		}
		if land.LeftByLanding(filepath.Join(c.Git.Dir, "index.lock")) {
			found = append(found, Stale{
				Kind: StaleLanding, Path: c.Path,
				Text: "a landing was killed while it had locked the index of " + c.Path,
			})
			continue
		}
		from, err := c.Behind(ctx)
		if err != nil {
			return nil, err
		}
		if from != "" {
			found = append(found, Stale{
				Kind: StaleLanding, Path: c.Path,
				Text: fmt.Sprintf("%s was checked out while a landing moved the branch: it has the files of %.10s", c.Path, from),
			})
		}
	}
	return found, nil
}

// isOperation reports whether an entry is the private directory of an index.
func isOperation(entry fs.DirEntry) bool {
	return entry.IsDir() && strings.HasPrefix(entry.Name(), content.OperationPrefix)
}

// isUnfinished reports whether an entry is a temporary file of an interrupted atomic write.
func isUnfinished(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), ".")
}

// working reports whether an operation holds the lock of a task.
func working(r *repo.Repo, taskID string) bool {
	_, held := r.Locks.Holder(names.TaskLock(names.SafeName(taskID)))
	return held
}

// inUse reports whether an operation uses this directory. A running operation holds a lock on it, which
// ends when the operation is killed.
func inUse(dir string) bool {
	file, err := os.Open(dir)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = file.Close() }()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil {
		return true
	}
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN)
	return !isOld(dir)
}

func isOld(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && lock.Age(info) >= staleAge
}

// reachableElsewhere reports whether a ref other than ref reaches commit.
func reachableElsewhere(ctx context.Context, r *repo.Repo, commit, ref string) (bool, error) {
	out, err := r.Git().Output(ctx, "for-each-ref", "--count=2", "--format=%(refname)", "--contains", commit)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(strings.Fields(string(out)), func(name string) bool { return name != ref }), nil
}

// deleteRef removes a ref if it still points to oid.
func deleteRef(ctx context.Context, r *repo.Repo, name, oid string) error {
	return r.Transact(ctx, r.Git(), "coven: clear", ref.Delete(name, oid))
}
