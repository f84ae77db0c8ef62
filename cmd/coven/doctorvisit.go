package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/worktree"
)

// visit is one look of the doctor's at everything. What is broken is a finding:
// nothing of it ends the visit.
type visit struct {
	env       *env
	parking   func() (done func()) // marks work that an interrupt does not cut off
	house     *house               // nil: there is no repository, says houseErr
	houseErr  error
	configErr error
	keeper    *keeper

	// What several checkups ask for, once it was read.
	views    []session.View
	viewsErr error // names sessions that cannot be read
	viewed   bool
	tasks    []task.Task
	tasksErr error
	listed   bool
}

// newVisit opens what is there. Wrong settings are passed over here.
func newVisit(ctx context.Context, e *env, parking func() (done func())) *visit {
	v := &visit{env: e, parking: parking}
	if v.house, v.configErr, v.houseErr = openAnyway(ctx, e); v.house != nil {
		v.keeper = &keeper{house: v.house}
	}
	return v
}

// leave ends the visit.
func (v *visit) leave() {
	if v.keeper != nil {
		v.keeper.close()
	}
}

// forget drops what was read: something was mended.
func (v *visit) forget() { v.viewed, v.listed = false, false }

// sessionViews are the sessions that can be read; the error names the others.
func (v *visit) sessionViews() ([]session.View, error) {
	if !v.viewed {
		v.views, v.viewsErr = session.List(v.house.repo.Root)
		v.viewed = true
	}
	return v.views, v.viewsErr
}

// allTasks are the tasks of the tracker.
func (v *visit) allTasks(ctx context.Context) ([]task.Task, error) {
	if !v.listed {
		v.tasks, v.tasksErr = nil, v.house.noTasks
		if v.house.tracker != nil {
			v.tasks, v.tasksErr = v.house.tracker.List(ctx)
		}
		v.listed = true
	}
	return v.tasks, v.tasksErr
}

func (v *visit) repository(ctx context.Context) []finding {
	if v.house == nil {
		return bad(exit.Next(v.houseErr), "%v", v.houseErr)
	}
	repo := v.house.repo
	found := lockFiles(repo.GitDir, v.env.now())
	target, err := repo.Target(ctx, "")
	switch {
	case err != nil:
		return append(found, odd(exit.Next(err), "%s: %v", repo.Root, err)...)
	case len(found) > 0:
		return found
	}
	return good("%s, landing on %s", repo.Root, target.Branch)
}

// patience with a lock file: no git that is at work has one for so long.
const lockAge = time.Minute

// lockFiles finds locks that a git has left in a git directory when it died.
func lockFiles(dir string, now time.Time) []finding {
	var files []string
	for _, name := range []string{"index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"} {
		files = append(files, filepath.Join(dir, name))
	}
	_ = filepath.WalkDir(filepath.Join(dir, "refs"), func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".lock") {
			files = append(files, file)
		}
		return nil // what cannot be read has no lock that we could name
	})
	var found []finding
	for _, file := range files {
		info, err := os.Lstat(file)
		if err != nil || now.Sub(info.ModTime()) < lockAge || worktree.LeftByLanding(file) {
			continue // of a landing: its session, or what it has left, says what to do
		}
		busy := &worktree.BusyError{File: file, Age: now.Sub(info.ModTime())}
		found = append(found, bad(exit.Next(busy), "%v", busy)...)
	}
	return found
}

func (v *visit) config(context.Context) []finding {
	if v.configErr != nil {
		return bad(exit.Next(v.configErr), "%v", v.configErr)
	}
	var read []string
	project := filepath.Join(".coven", "config.yaml")
	user := filepath.Join(v.env.userDir(), "config.yaml")
	for name, file := range map[string]string{project: filepath.Join(v.house.repo.Root, project), user: user} {
		if _, err := os.Stat(file); err == nil {
			read = append(read, name)
		}
	}
	if len(read) == 0 {
		return good("the defaults: neither %s nor %s is there", project, user)
	}
	if len(read) == 2 {
		return good("%s over %s", project, user)
	}
	return good("%s", read[0])
}

func (v *visit) tracker(ctx context.Context) []finding {
	h := v.house
	if h.noTasks != nil {
		return bad(exit.Next(h.noTasks), "%v", h.noTasks)
	}
	ready, err := h.tracker.Ready(ctx)
	if err != nil {
		return bad(exit.Next(err), "%s: %v", h.tracker.Where(), err)
	}
	all, err := v.allTasks(ctx)
	if err != nil {
		return bad(exit.Next(err), "%s: %v", h.tracker.Where(), err)
	}
	var found []finding
	for _, t := range all {
		if err := t.Usable(); err != nil && t.Status != task.StatusClosed {
			found = append(found, odd("coven task show "+shellword.Word(t.ID), "%v", err)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	return good("%d ready in %s (%s)", len(ready), h.tracker.Where(), h.tracker.Kind())
}

func (v *visit) checks(context.Context) []finding {
	checks, found := v.house.checks()
	switch {
	case len(checks) > 0 && len(found) > 0:
		return good("found: %s", strings.Join(found, "; "))
	case len(checks) > 0:
		return good("%s", strings.Join(checks, "; "))
	}
	next := "coven init"
	if _, err := os.Stat(filepath.Join(v.house.repo.Root, ".coven", "config.yaml")); err == nil {
		next = shellword.Edit(".coven/config.yaml", 0)
	}
	return odd(next, "none: nothing is tested before it lands")
}

// littleDisk is how many bytes are few for worktrees and their builds.
const littleDisk = 1 << 30

func (v *visit) disk(context.Context) []finding {
	dirs := []string{v.house.repo.GitDir}
	var disks [2]syscall.Statfs_t
	if err := syscall.Statfs(dirs[0], &disks[0]); err != nil {
		return bad("df -h "+shellword.Word(dirs[0]), "%s: %v", dirs[0], err)
	}
	// .coven may be on another disk.
	coven := filepath.Join(v.house.repo.Root, ".coven")
	if err := syscall.Statfs(coven, &disks[1]); err == nil && disks[1].Fsid != disks[0].Fsid {
		dirs = append(dirs, coven)
	}
	var found []finding
	for i, dir := range dirs {
		found = append(found, room(dir, disks[i].Bavail*uint64(disks[i].Bsize)))
	}
	return found
}

// room says what free bytes where dir is mean.
func room(dir string, free uint64) finding {
	f := finding{State: stateOK, Text: fmt.Sprintf("%s free where %s is", terminal.Size(int64(min(free, 1<<62))), dir)}
	if free < littleDisk {
		f.State, f.Next = stateWarn, "df -h "+shellword.Word(dir)
	}
	if free < fullDisk {
		f.State = stateFail
	}
	return f
}

func (v *visit) sessions(context.Context) []finding {
	views, broken := v.sessionViews()
	damaged, broken := session.DamagedIn(broken)
	var found []finding
	if broken != nil {
		found = bad("ls -l "+session.Dir, "cannot be read: %v", broken)
	}
	for _, d := range damaged {
		found = append(found, v.damaged(d))
	}
	onTheWay := 0
	for _, s := range views {
		if s.Live() {
			onTheWay++
		}
		if s.Status == session.Interrupted {
			found = append(found, odd(nextOf(s), "task %s was interrupted: %s", s.Task, s.Detail)...)
		}
	}
	if len(found) > 0 {
		return found
	}
	return good("%d, of which %d can go on", len(views), onTheWay)
}

// damaged is the finding of a damaged record. --fix sets it aside, whole, unless it
// can be read by another coven or after a chmod.
func (v *visit) damaged(d *session.DamagedError) finding {
	text := d.Error()
	if d.Task != "" {
		text = fmt.Sprintf("task %s: %s", d.Task, text)
	}
	f := bad(d.NextCommand(), "%s", text)[0]
	if f.Next != "coven doctor --fix" {
		return f
	}
	f.mend = func(context.Context) (string, error) {
		to, err := session.SetAside(v.house.repo.Root, d)
		return "the record is set aside as " + to + "; what its task has left is cleared away below", err
	}
	return f
}

func (v *visit) refs(ctx context.Context) []finding {
	accounts, err := v.house.repo.Account(ctx)
	if err != nil {
		return bad("git fsck --connectivity-only", "%v", err)
	}
	if found := v.unkept(ctx); len(found) > 0 {
		return found
	}
	var parts []string
	for _, a := range accounts {
		if a.Count > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d (%s)", a.Kind, a.Count, terminal.Size(a.Bytes)))
		}
	}
	if len(parts) == 0 {
		return good("coven keeps none")
	}
	return good("%s", strings.Join(parts, ", "))
}

// unkept finds landings of earlier covens whose commit no ref keeps: git gc would
// take it before coven resume finishes the landing.
func (v *visit) unkept(ctx context.Context) []finding {
	views, _ := v.sessionViews() // the checkup of sessions names those that cannot be read
	var found []finding
	for _, s := range views {
		id, commit := s.Task, s.Landing.New
		if commit == "" || session.IsOver(v.house.repo.Root, s.ID) {
			continue
		}
		kept, err := v.house.repo.LandingKept(ctx, id, commit)
		if err != nil || kept {
			continue
		}
		f := odd("coven doctor --fix", "task %s is landing commit %.10s, and no ref keeps it from git gc", id, commit)[0]
		f.mend = func(ctx context.Context) (string, error) {
			return "refs/coven/keep holds it", v.house.repo.KeepLanding(ctx, id, commit)
		}
		found = append(found, f)
	}
	return found
}
