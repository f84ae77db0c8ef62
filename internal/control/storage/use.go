// Package storage measures coven's disk usage, and deletes old data.
package storage

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/file/diskusage"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree"
)

// The kinds of data that coven stores on disk.
const (
	KindWorktree  = "worktree"  // of a task
	KindCache     = "cache"     // of the programs of a task
	KindSessions  = "sessions"  // without their logs
	KindLogs      = "logs"      // of all sessions
	KindSnapshots = "snapshots" // of all sessions
	KindRescues   = "rescues"   // of all tasks
	KindRecords   = "records"   // locks, indexes and other internal files of coven
	KindPool      = "pool"      // files of landed worktrees, for later ones
	KindLeftovers = "leftovers" // of removed worktrees
)

// Item is data that coven stores on disk.
type Item struct {
	Kind        string `json:"kind"`
	Task        string `json:"task,omitempty"`
	State       string `json:"state,omitempty"` // of the task
	Count       int    `json:"count,omitempty"` // number of sessions, snapshots, and so on
	Bytes       int64  `json:"bytes"`
	Approximate bool   `json:"approximate,omitempty"`
	Path        string `json:"path,omitempty"`
	Error       string `json:"error,omitempty"` // why it was not measured
	Next        string `json:"next,omitempty"`  // the command that frees the space or decides about it
}

// Use is coven's disk usage.
type Use struct {
	Items  []Item `json:"items"` // largest first
	Bytes  int64  `json:"bytes"`
	Unread int    `json:"unread"` // files and directories that cannot be read
}

// survey measures coven's disk usage.
type survey struct {
	project *project.Project
	meter   diskusage.Meter
	use     Use
}

// Measure measures coven's disk usage. It changes nothing, and ignores files that vanish while it runs.
func Measure(ctx context.Context, p *project.Project) (Use, error) {
	s := &survey{project: p, use: Use{Items: []Item{}}}
	for _, measure := range []func(context.Context) error{s.worktrees, s.sessions, s.refs, s.records} {
		if err := measure(ctx); err != nil {
			return Use{}, err
		}
	}
	slices.SortStableFunc(s.use.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Task, b.Task))
	})
	for _, item := range s.use.Items {
		s.use.Bytes += item.Bytes
	}
	s.use.Unread = s.meter.Unread
	return s.use, nil
}

func (s *survey) add(item Item) { s.use.Items = append(s.use.Items, item) }

// of measures directories.
func (s *survey) of(ctx context.Context, paths ...string) (int64, error) {
	total := int64(0)
	for _, path := range paths {
		n, err := s.meter.Of(ctx, path)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// worktrees measures the worktrees of tasks, and the caches of their programs.
func (s *survey) worktrees(ctx context.Context) error {
	infos, err := worktree.List(ctx, s.project.Repo)
	if err != nil {
		return err
	}
	tasks := map[string]Item{} // by name
	for _, info := range infos {
		item := s.taskOf(info)
		tasks[info.Name] = item
		if !info.Present {
			continue
		}
		item.Kind, item.Path = KindWorktree, info.Path
		if item.Bytes, err = s.of(ctx, worktree.Disk(s.project.Repo, info)...); err != nil {
			return err
		}
		s.add(item)
	}
	if err := s.leftovers(ctx); err != nil {
		return err
	}
	caches := sandbox.Caches(s.project.Env.CacheDir(), s.project.Repo.GitDir)
	entries, _ := os.ReadDir(caches) // there are none, or they cannot be read
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), sandbox.LayersSuffix) {
			continue // measured with the task's
		}
		item := tasks[entry.Name()]
		item.Kind, item.Path = KindCache, filepath.Join(caches, entry.Name())
		switch {
		case entry.Name() == sandbox.KeptName:
			item.State, item.Next = "for later tasks", "rm -rf "+shellword.Word(item.Path)
		case strings.HasPrefix(entry.Name(), "."):
			item.State = "of plugins"
		case item.Task == "":
			item.State, item.Next = "of a task that is gone", "rm -rf "+shellword.Word(item.Path)
		}
		if item.Bytes, err = s.of(ctx, item.Path, item.Path+sandbox.LayersSuffix); err != nil {
			return err
		}
		s.add(item)
	}
	return nil
}

// leftovers measures the remains of removed worktrees, and the pool.
func (s *survey) leftovers(ctx context.Context) error {
	if parked := worktree.PoolDisk(s.project.Repo); len(parked) > 0 {
		bytes, err := s.of(ctx, parked...)
		if err != nil {
			return err
		}
		s.add(Item{Kind: KindPool, Count: len(parked), Bytes: bytes, Path: filepath.Dir(parked[0]), Next: "rm -rf " + shellword.Word(filepath.Dir(parked[0]))})
	}
	paths, err := worktree.OtherDisk(s.project.Repo)
	if err != nil || len(paths) == 0 {
		return err
	}
	bytes, err := s.of(ctx, paths...)
	s.add(Item{Kind: KindLeftovers, Count: len(paths), Bytes: bytes, Next: "coven doctor --fix"})
	return err
}

// taskOf returns the task of a worktree, its state, and the command that removes the worktree or leads to
// that.
func (s *survey) taskOf(info worktree.Info) Item {
	item := Item{Task: cmp.Or(info.TaskID, info.Name)}
	remove := "coven worktree remove " + shellword.Word(item.Task)
	v, err := s.project.Finder.OfTask(item.Task)
	damaged := (*session.DamagedError)(nil)
	switch {
	case errors.As(err, &damaged):
		item.State, item.Next = string(session.Damaged), damaged.NextCommand()
	case err != nil:
		item.State, item.Next = "no session", remove
	case v.Live():
		item.State, item.Next = control.StateOf(v), cmp.Or(control.NextOf(v), "coven why "+shellword.Word(item.Task))
	case v.Commit != "":
		item.State, item.Next = "landed", remove
	default:
		item.State, item.Next = control.StateOf(v)+", unlanded", remove
	}
	return item
}

// sessions measures the sessions and their logs. Links among them are not followed.
func (s *survey) sessions(ctx context.Context) error {
	ids, err := session.IDs(s.project.Repo.Root)
	if err != nil || len(ids) == 0 {
		return err
	}
	dir := filepath.Join(s.project.Repo.Root, session.Dir)
	records, logs := int64(0), int64(0)
	for _, id := range ids {
		n, err := s.meter.Of(ctx, filepath.Join(dir, id), session.LogsDir)
		if err != nil {
			return err
		}
		records += n
		if info, err := os.Lstat(filepath.Join(dir, id)); err != nil || !info.IsDir() {
			continue // a link, or gone
		}
		if n, err = s.of(ctx, filepath.Join(dir, id, session.LogsDir)); err != nil {
			return err
		}
		logs += n
	}
	s.add(Item{Kind: KindSessions, Count: len(ids), Bytes: records, Path: dir})
	s.add(Item{Kind: KindLogs, Bytes: logs, Path: dir})
	return nil
}

// refs measures the objects of snapshots and rescues.
func (s *survey) refs(ctx context.Context) error {
	for _, of := range []struct {
		kind, next string
		measure    func(context.Context, *worktree.Repo) (worktree.RefDisk, error)
	}{
		{KindSnapshots, "coven gc", worktree.SnapshotDisk},
		{KindRescues, "coven rescue list", worktree.RescueDisk},
	} {
		found, err := of.measure(ctx, s.project.Repo)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		item := Item{Kind: of.kind, Count: found.Refs, Bytes: found.Bytes, Approximate: true, Next: of.next}
		if err != nil {
			item.Error = err.Error() // a repository with missing objects
		}
		if err != nil || found.Refs > 0 {
			s.add(item)
		}
	}
	return nil
}

// records measures coven's own files.
func (s *survey) records(ctx context.Context) error {
	bytes, err := s.of(ctx, filepath.Join(s.project.Repo.Root, ".coven", "run"), worktree.RecordDisk(s.project.Repo))
	if bytes > 0 {
		s.add(Item{Kind: KindRecords, Bytes: bytes})
	}
	return err
}
