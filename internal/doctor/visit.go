package doctor

import (
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

	"github.com/coven-run/coven/internal/config/check"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/backup"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
)

// Examination is one run of all checkups. Problems become findings and do not end the run.
type Examination struct {
	env        *project.Environment
	parking    func() (done func()) // marks work that an interrupt does not stop
	project    *project.Project     // nil without a repository; see projectErr
	projectErr error
	configErr  error
	claimer    *claimer

	// Cached for several checkups.
	views    []session.View
	viewsErr error // names sessions that cannot be read
	viewed   bool
	tasks    []task.Task
	tasksErr error
	listed   bool
	uses     map[string]string // see providerUses
}

// Open opens the repository, if there is one, even if its settings are invalid.
func Open(ctx context.Context, e *project.Environment, parking func() (done func())) *Examination {
	v := &Examination{env: e, parking: parking}
	if v.project, v.configErr, v.projectErr = project.OpenLenient(ctx, e); v.project != nil {
		v.claimer = &claimer{project: v.project}
	}
	return v
}

// close ends the examination.
func (v *Examination) close() {
	if v.claimer != nil {
		v.claimer.close()
	}
}

// forget drops cached data after a fix has changed it.
func (v *Examination) forget() { v.viewed, v.listed, v.uses = false, false, nil }

// sessionViews returns the sessions that can be read. The error names the others.
func (v *Examination) sessionViews() ([]session.View, error) {
	if !v.viewed {
		v.views, v.viewsErr = session.List(v.project.Repo.Root)
		v.viewed = true
	}
	return v.views, v.viewsErr
}

// allTasks returns the tasks of the tracker.
func (v *Examination) allTasks(ctx context.Context) ([]task.Task, error) {
	if !v.listed {
		v.tasks, v.tasksErr = nil, v.project.NoTasks
		if v.project.Tracker != nil {
			v.tasks, v.tasksErr = v.project.Tracker.List(ctx)
		}
		v.listed = true
	}
	return v.tasks, v.tasksErr
}

func (v *Examination) repository(ctx context.Context) []Finding {
	if v.project == nil {
		return fail(exit.Next(v.projectErr), "%v", v.projectErr)
	}
	repo := v.project.Repo
	found := slices.Concat(lockFiles(repo.GitDir, v.env.Now()), lockFiles(privateParts(repo), v.env.Now()))
	target, err := repo.Target(ctx, "")
	switch {
	case err != nil:
		return append(found, warn(exit.Next(err), "%s: %v", repo.Root, err)...)
	case len(found) > 0:
		return found
	}
	err = worktree.CheckBranches(ctx, repo)
	if err == nil {
		err = worktree.CheckPlace(repo)
	}
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	return ok("%s, landing on %s", repo.Root, target.Branch)
}

// identity checks that commits are in the user's name.
func (v *Examination) identity(ctx context.Context) []Finding {
	known, err := v.project.Repo.HasIdentity(ctx)
	switch {
	case err != nil:
		return warn("coven doctor", "%v", err)
	case !known:
		return warn(`git config --global user.name "Your Name"`, "git has no user.name or user.email: changes land in the name of coven")
	}
	return ok("changes land in your name")
}

// lockAge is the age from which a lock file is stale: no running git holds a lock that long.
const lockAge = time.Minute

// lockFiles finds the locks of killed git processes in a git directory.
func lockFiles(dir string, now time.Time) []Finding {
	var files []string
	for _, name := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"} {
		files = append(files, filepath.Join(dir, name))
	}
	_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".lock") {
			files = append(files, file)
		}
		return nil // unreadable
	})
	var found []Finding
	for _, file := range files {
		info, err := os.Lstat(file)
		if err != nil || now.Sub(info.ModTime()) < lockAge || land.LeftByLanding(file) {
			continue // of a landing: other checkups report it
		}
		busy := &worktree.BusyError{File: file, Age: now.Sub(info.ModTime())}
		found = append(found, fail(exit.Next(busy), "%v", busy)...)
	}
	return found
}

func (v *Examination) config(context.Context) []Finding {
	if v.configErr != nil {
		return fail(exit.Next(v.configErr), "%v", v.configErr)
	}
	var read []string
	project := filepath.Join(".coven", "config.yaml")
	user := filepath.Join(v.env.UserDir(), "config.yaml")
	for name, file := range map[string]string{project: filepath.Join(v.project.Repo.Root, project), user: user} {
		if _, err := os.Stat(file); err == nil {
			read = append(read, name)
		}
	}
	if len(read) == 0 {
		return ok("the defaults: neither %s nor %s exists", project, user)
	}
	if len(read) == 2 {
		return ok("%s over %s", project, user)
	}
	return ok("%s", read[0])
}

func (v *Examination) tracker(ctx context.Context) []Finding {
	p := v.project
	if p.NoTasks != nil {
		return fail(exit.Next(p.NoTasks), "%v", p.NoTasks)
	}
	ready, err := p.Tracker.Ready(ctx)
	if err != nil {
		return fail(exit.Next(err), "%s: %v", p.Tracker.Where(), err)
	}
	all, err := v.allTasks(ctx)
	if err != nil {
		return fail(exit.Next(err), "%s: %v", p.Tracker.Where(), err)
	}
	var found []Finding
	for _, t := range all {
		if err := t.Usable(); err != nil && t.Status != task.StatusClosed {
			found = append(found, warn("coven task show "+shellword.Word(t.ID), "%v", err)...)
		}
	}
	kind, old := v.bdVersion(ctx)
	if found = append(old, found...); len(found) > 0 {
		return found
	}
	return ok("%d ready in %s (%s)", len(ready), p.Tracker.Where(), kind)
}

// bdVersion returns the kind of the tracker with the version of its program, and a warning if coven is not tested with bd of
// that version. There is none about newer ones, which read older databases.
func (v *Examination) bdVersion(ctx context.Context) (kind string, found []Finding) {
	kind = v.project.Tracker.Kind()
	bd, is := v.project.Tracker.(*task.CLI)
	if !is || kind != task.BD {
		return kind, nil
	}
	version, outdated, err := bd.Version(ctx)
	switch {
	case err != nil:
		return kind, fail(exit.Next(err), "%v", err)
	case version == "":
		return kind, warn("bd version", "the version of bd is unknown: coven is tested with bd %s", task.TestedVersion)
	case outdated:
		return kind, warn(bd.Upgrade(), "bd %s is older than %s, with which coven is tested", version, task.TestedVersion)
	}
	return kind + " " + version, nil
}

func (v *Examination) checks(context.Context) []Finding {
	checks, found := v.project.Checks()
	if program, command := v.project.MissingProgram(); program != "" {
		return warn("install "+program+", or: "+check.Change, "%s is not installed: %s cannot run", program, command)
	}
	switch {
	case len(checks) > 0 && len(found) > 0:
		return ok("found: %s", strings.Join(found, "; "))
	case len(checks) > 0:
		return ok("%s", strings.Join(check.Commands(checks), "; "))
	}
	next := "coven init"
	if _, err := os.Stat(filepath.Join(v.project.Repo.Root, ".coven", "config.yaml")); err == nil {
		next = shellword.Edit(".coven/config.yaml", 0)
	}
	return warn(next, "none: changes land untested")
}

// lowDisk is the number of free bytes below which doctor warns.
const lowDisk = 1 << 30

func (v *Examination) disk(context.Context) []Finding {
	dirs := []string{v.project.Repo.GitDir}
	var disks [2]syscall.Statfs_t
	if err := syscall.Statfs(dirs[0], &disks[0]); err != nil {
		return fail("df -h "+shellword.Word(dirs[0]), "%s: %v", dirs[0], err)
	}
	// .coven may be on another disk.
	coven := filepath.Join(v.project.Repo.Root, ".coven")
	if err := syscall.Statfs(coven, &disks[1]); err == nil && disks[1].Fsid != disks[0].Fsid {
		dirs = append(dirs, coven)
	}
	var found []Finding
	for i, dir := range dirs {
		found = append(found, room(dir, disks[i].Bavail*uint64(disks[i].Bsize)))
	}
	return found
}

// room returns the finding for the free bytes of the disk of dir.
func room(dir string, free uint64) Finding {
	f := Finding{State: StateOK, Text: fmt.Sprintf("%s free on the disk of %s", terminal.Size(int64(min(free, 1<<62))), dir)}
	if free < lowDisk {
		f.State, f.Next = StateWarn, "df -h "+shellword.Word(dir)
	}
	if free < control.FullDisk {
		f.State = StateFail
	}
	return f
}

func (v *Examination) sessions(ctx context.Context) []Finding {
	views, broken := v.sessionViews()
	damaged, broken := session.DamagedIn(broken)
	var found []Finding
	if broken != nil {
		found = fail("ls -l "+session.Dir, "cannot be read: %v", broken)
	}
	for _, d := range damaged {
		found = append(found, v.damaged(d))
	}
	found = append(found, v.lost(ctx)...)
	onTheWay := 0
	for _, s := range views {
		if s.Live() {
			onTheWay++
		}
		if s.Status == session.Interrupted {
			found = append(found, warn(control.NextOf(s), "task %s was interrupted: %s", s.Task, s.Detail)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	if len(views) == 0 {
		return ok("none yet")
	}
	return ok("%d, %d can continue", len(views), onTheWay)
}

// lost returns the findings for sessions whose record was removed. A claim without a session is that of the next
// checkup.
func (v *Examination) lost(ctx context.Context) []Finding {
	all, err := v.project.Lost(ctx)
	if err != nil {
		return fail(exit.Next(err), "%v", err)
	}
	store, copies := v.project.Backups(), v.lostCopies(ctx)
	var found []Finding
	for _, l := range all {
		view := l.View()
		f := fail(view.Next, "session %s%s: %s", l.ID, ofTask(l.Task), view.Detail)[0]
		f.fix = func(context.Context) (string, error) { return "restored from its copy", v.project.Restore(l) }
		if l.Err != nil {
			f.Next, f.fix = "ls -l "+shellword.Word(store.Path(l.ID)), nil
			if damaged, ok := errors.AsType[*backup.DamagedError](l.Err); ok {
				f.Next = damaged.NextCommand()
			}
		}
		if copies[l.ID] {
			found = append(found, f)
		}
	}
	return found
}

// lostCopies returns the IDs of the lost sessions that have a copy. Their claims and worktrees stay until the copy is restored
// or removed.
func (v *Examination) lostCopies(ctx context.Context) map[string]bool {
	all, err := v.project.Lost(ctx)
	if err != nil {
		return nil // lost reports it
	}
	copies := map[string]bool{}
	for _, l := range all {
		if _, err := os.Lstat(v.project.Backups().Path(l.ID)); err == nil {
			copies[l.ID] = true
		}
	}
	return copies
}

func ofTask(id string) string {
	if id == "" {
		return ""
	}
	return " of task " + id
}

// damaged returns the finding for a damaged record. --fix moves it aside, unless another coven or a chmod
// makes it readable.
func (v *Examination) damaged(d *session.DamagedError) Finding {
	text := d.Error()
	if d.Task != "" {
		text = fmt.Sprintf("task %s: %s", d.Task, text)
	}
	f := fail(d.NextCommand(), "%s", text)[0]
	if f.Next != "coven doctor --fix" {
		return f
	}
	f.fix = func(context.Context) (string, error) {
		to, err := session.SetAside(v.project.Repo.Root, d)
		return "moved the record to " + to + "; leftovers of its task are removed below", err
	}
	return f
}

func (v *Examination) refs(ctx context.Context) []Finding {
	missing, err := worktree.MissingObjects(ctx, v.project.Repo)
	if err != nil {
		return fail("git fsck --connectivity-only", "%v", err)
	}
	if len(missing) > 0 {
		return v.missing(missing)
	}
	incomplete, err := rescue.WithoutPart(ctx, v.project.Repo)
	if err != nil {
		return fail("ls -la "+shellword.Word(privateParts(v.project.Repo)), "%v", err)
	}
	if len(incomplete) > 0 {
		return v.incomplete(incomplete)
	}
	accounts, err := worktree.Account(ctx, v.project.Repo)
	if err != nil {
		return fail("git fsck --connectivity-only", "%v", err)
	}
	var parts []string
	for _, a := range accounts {
		if a.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d (%s)", a.Kind, a.Count, terminal.Size(a.Bytes)))
		}
	}
	if len(parts) == 0 {
		return ok("none")
	}
	return ok("%s", strings.Join(parts, ", "))
}

// privateParts returns the repository with the private parts of rescues.
func privateParts(r *worktree.Repo) string { return filepath.Join(r.GitDir, "coven", "private") }

// incomplete returns the findings for rescues without their private parts.
func (v *Examination) incomplete(rescues []rescue.Info) []Finding {
	next := "git --git-dir=" + shellword.Word(privateParts(v.project.Repo)) + " fsck"
	var found []Finding
	for _, info := range rescues {
		found = append(found, warn(next, "the private part of %s is missing or damaged; without a backup of .git/coven/private, only the other files can be restored", info.Ref)...)
	}
	return found
}

// missing finds refs whose objects are missing.
func (v *Examination) missing(missing []worktree.MissingObject) []Finding {
	var found []Finding
	for _, m := range missing {
		f := fail("coven doctor --fix", "%s names the missing object %.10s", m.Ref, m.Oid)[0]
		f.fix = func(ctx context.Context) (string, error) {
			now, err := worktree.Heal(ctx, v.project.Repo, m)
			if now == "" {
				return "removed", err
			}
			return fmt.Sprintf("moved to %.10s, its last commit that exists", now), err
		}
		found = append(found, f)
	}
	return found
}
