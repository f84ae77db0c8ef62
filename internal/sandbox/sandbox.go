// Package sandbox decides what the programs of a task may do to the machine: which files they
// may change, which they cannot read, and where their temporary files and caches are. Agents,
// script steps, checks and commit hooks are such programs. Package process enforces the
// decision.
//
// A program may change its worktree, the worktree's own git directory, a temporary directory, a
// cache directory of its task, and what the user's settings add. It reads everything that its
// user can read, except a list of secrets that the user can extend.
package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process"
)

// Options describe the user, the machine and the repository.
type Options struct {
	Settings    config.Sandbox
	Getenv      func(string) string // of the user
	Enforcement func() process.Enforcement
	Temp        string   // where temporary files of tasks go: a private directory of this process
	Cache       string   // where caches of tasks go; empty: below Temp
	Keep        []string // variables of caches that pass from a landed task to a later one
	Root        string   // the main checkout of the repository
	GitDir      string   // its common git directory
}

// Sandbox makes the rooms of the tasks of a repository.
type Sandbox struct{ o Options }

// New returns the sandbox of a repository.
func New(o Options) *Sandbox { return &Sandbox{o: o} }

// Room is where the programs of one task run.
type Room struct {
	sandbox  *Sandbox
	worktree []string
	temp     string
	shm      string // takes the place of /dev/shm
	cache    string

	takesKept bool // caches of an earlier task
}

// Room returns the room of a task and makes its directories. worktree is what belongs to the
// task alone: its worktree and that one's git directory. name is unique in the repository and
// safe in paths.
func (s *Sandbox) Room(name string, worktree ...string) (*Room, error) {
	dir := filepath.Join(s.o.Temp, name)
	r := &Room{
		sandbox: s, worktree: worktree,
		temp: filepath.Join(dir, "tmp"), shm: filepath.Join(dir, "shm"), cache: filepath.Join(dir, "cache"),
	}
	if s.o.Cache != "" {
		r.cache = cacheOf(s.o.Cache, s.o.GitDir, name)
	}
	r.takesKept = s.o.Cache != "" && name != pluginsName
	for _, dir := range []string{r.temp, r.shm, r.cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare the sandbox of %s: %w", name, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil { // a program of the task may have taken its own right
			return nil, fmt.Errorf("prepare the sandbox of %s: %w", name, err)
		}
	}
	if r.takesKept {
		s.giveKept(r.cache)
	}
	return r, r.makeCaches()
}

// Forget removes the caches of a task. Nothing of them is kept.
func (s *Sandbox) Forget(name string) error { return Forget(s.o.Cache, s.o.GitDir, name) }

// Forget removes the caches of a task. cache and gitDir are those of Options.
func Forget(cache, gitDir, name string) error {
	if cache == "" {
		return nil // they were below Temp
	}
	return removeAll(cacheOf(cache, gitDir, name))
}

// Caches returns the directory that has the caches of a repository's tasks, one directory for
// each task; empty: they last no longer than coven.
func Caches(cache, gitDir string) string {
	if cache == "" {
		return ""
	}
	return filepath.Dir(cacheOf(cache, gitDir, "x"))
}

// Temp is the directory for temporary files of the task's programs. It lasts as long as the
// process of coven.
func (r *Room) Temp() string { return r.temp }

// Access is what a program may do.
type Access struct {
	ReadOnly bool     // the worktree cannot be changed
	Write    []string // more files and directories that may be changed; they exist
	Show     []string // files that are not hidden
	Connect  []string // sockets of coven, or directories of them
}

// Boundary returns what the kernel enforces for a program; nil if it can enforce nothing.
func (r *Room) Boundary(a Access) *process.Boundary {
	o := r.sandbox.o
	if !o.Enforcement().Any() {
		return nil
	}
	write := slices.Concat([]string{r.temp, r.cache}, a.Write, r.sandbox.writable())
	if !a.ReadOnly {
		write = append(write, r.worktree...)
	}
	needed := slices.Concat(write, r.worktree, a.Show)
	b := &process.Boundary{Write: write, Hide: r.sandbox.hidden(needed), Connect: a.Connect}
	if !slices.ContainsFunc(append(needed, o.Root, o.GitDir), inShm) {
		b.Shm = r.shm
	}
	return b
}

// inShm reports whether a path is in /dev/shm: a program that needs it has to see it.
func inShm(path string) bool { return within(path, []string{"/dev/shm"}) }

// pluginsName is the name of the room of plugins. No task has it.
const pluginsName = ".plugins"

// Plugins returns what the kernel enforces for plugins, which are trusted and serve all tasks:
// they change their own directories, and read what programs of a task can read; nil if it can
// enforce nothing. Without mounts nothing is hidden from them: they run for long, and could not
// read files that are created meanwhile.
func (s *Sandbox) Plugins(dir string) (room *Room, b *process.Boundary, err error) {
	if room, err = s.Room(pluginsName); err != nil {
		return nil, nil, err
	}
	if b = room.Boundary(Access{ReadOnly: true, Write: []string{dir}, Connect: []string{dir}}); b != nil && !s.o.Enforcement().Covers {
		b.Hide = nil
	}
	return room, b, nil
}

// Env returns the variables of a program, KEY=VALUE, given those of its user: its temporary
// directory, its caches, and settings of git that work inside.
func (r *Room) Env(user []string) []string {
	env := []string{"TMPDIR=" + r.temp}
	env = append(env, r.caches(user)...)
	return append(env, gitSettings(
		"commit.gpgSign=false", "tag.gpgSign=false", // keys are hidden
		"gc.auto=0", "maintenance.auto=false", // of a copy of the repository that does not last
	)...)
}

// gitSettings returns variables that give git settings, KEY=VALUE.
func gitSettings(settings ...string) []string {
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, value))
	}
	return env
}

// Merge joins lists of variables, KEY=VALUE. Of several values of a variable, the last one
// counts.
func Merge(lists ...[]string) []string {
	last := map[string]int{}
	all := slices.Concat(lists...)
	for i, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		last[name] = i
	}
	var merged []string
	for i, kv := range all {
		if name, _, _ := strings.Cut(kv, "="); last[name] == i {
			merged = append(merged, kv)
		}
	}
	return merged
}

// expand returns the path of a setting, in which ~ is the user's home; empty if the user has
// none.
func (s *Sandbox) expand(path string) string {
	rest, below := strings.CutPrefix(path, "~")
	if !below {
		return filepath.Clean(path)
	}
	home := s.o.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, rest)
}

// writable returns what the user's settings add to what programs may change. Paths that do not
// exist are left out.
func (s *Sandbox) writable() []string {
	var paths []string
	for _, setting := range s.o.Settings.Write {
		path := s.expand(setting)
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// within reports whether a path is one of dirs or below one of them.
func within(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// removeAll removes a directory, also if programs made parts of it read-only.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // RemoveAll reports what stays
		}
		return nil
	})
	return os.RemoveAll(dir)
}
