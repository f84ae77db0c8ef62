// Package sandbox determines the access rights of a task's programs on the machine: the files that they
// may change, the files that they cannot read, and the places of their temporary files and caches. Agents,
// script steps, checks and commit hooks are such programs. Package process enforces the
// rights.
//
// A program may change its worktree, the worktree's git directory, a temporary directory, the task's
// cache directory, and the paths in the user's settings. It can read everything that its
// user can read, except a list of secrets that the user can extend, and except the files of the main checkout that
// git does not ignore: a check that read them instead of those in its worktree would prove nothing.
package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/file/tempdir"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/process/overlay"
	"github.com/coven-run/coven/internal/process/reads"
	"github.com/coven-run/coven/internal/process/relay"
)

// Options describes the user, the machine and the repository.
type Options struct {
	Settings    config.Sandbox
	Getenv      func(string) string // of the user
	Enforcement func() process.Enforcement
	// Private returns an error if programs cannot have a network of their own: process.Launcher.PrivateNetwork.
	Private func() error
	Temp    string   // private directory of this process for the tasks' temporary files
	Cache   string   // parent of the tasks' caches; defaults to a directory below Temp
	Keep    []string // variables of the caches that are passed from a landed task to a later one
	Root    string   // the main checkout of the repository
	GitDir  string   // its common git directory
	// Shared returns the paths in the main checkout and in Beside that programs can read if they are apart from it.
	Shared func() []string
	// Beside returns the directories outside of the main checkout that contain the worktrees of tasks, or are worktrees.
	Beside func() []string
	// Origin is the main checkout of another repository that this one uses, and Borrowed lists the paths of that repository that
	// programs can read, besides Shared. Both may be empty.
	Origin   string
	Borrowed []string
}

// Sandbox creates the rooms of a repository's tasks.
type Sandbox struct {
	o Options

	mu     sync.Mutex
	layers map[string]*layers // by task
}

// New returns the sandbox of a repository.
func New(o Options) *Sandbox { return &Sandbox{o: o, layers: map[string]*layers{}} }

// Room is the sandbox of one task.
type Room struct {
	Replace map[string]string // files, and the contents that programs see instead: see process.Boundary
	Link    map[string]string // directories, and those that programs see instead: see process.Boundary
	Ports   []int             // ports of this machine that programs reach also if each has a network of its own
	Trust   []string          // variables, as KEY=VALUE, that make tools trust files of the worktree

	sandbox  *Sandbox
	worktree []string
	temp     string
	shm      string // replaces /dev/shm
	cache    string

	layers *layers      // of the user's caches that programs see; nil for plugins
	caches []shownCache // those caches
}

// Room creates the room of a task and its directories. worktree lists the directories that belong only
// to the task: its worktree and git directory. name must be unique in the repository and
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
	if name != pluginsName {
		r.layers = s.layersOf(name, r.cache+LayersSuffix)
	}
	for _, dir := range []string{r.temp, r.shm, r.cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare the sandbox of %s: %w", name, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil { // a program of the task may have removed its permissions
			return nil, fmt.Errorf("prepare the sandbox of %s: %w", name, err)
		}
	}
	if s.o.Cache != "" && r.layers != nil {
		s.giveKept(r.cache, r.layers.dir)
	}
	r.caches = r.shown()
	return r, r.makeCaches()
}

// layersOf returns the layers of a task, which are in a directory.
func (s *Sandbox) layersOf(name, dir string) *layers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.layers[name] == nil {
		s.layers[name] = &layers{dir: dir}
	}
	return s.layers[name]
}

// Forget removes all caches of a task.
func (s *Sandbox) Forget(name string) error { return Forget(s.o.Cache, s.o.GitDir, name) }

// Forget removes all caches of a task. cache and gitDir are those of Options.
func Forget(cache, gitDir, name string) error {
	if cache == "" {
		return nil // the caches were below Temp
	}
	dir := cacheOf(cache, gitDir, name)
	return errors.Join(tempdir.Remove(dir+LayersSuffix), tempdir.Remove(dir))
}

// Caches returns the directory with the caches of a repository's tasks, one directory for
// each task. It is empty if the caches are temporary.
func Caches(cache, gitDir string) string {
	if cache == "" {
		return ""
	}
	return filepath.Dir(cacheOf(cache, gitDir, "x"))
}

// Temp returns the directory for temporary files of the task's programs. It exists as long as the
// coven process.
func (r *Room) Temp() string { return r.temp }

// Access describes the access rights of a program.
type Access struct {
	ReadOnly bool     // the worktree cannot be changed
	Apart    bool     // only shared paths in the main checkout can be read, and no worktrees of other tasks
	Write    []string // further existing files and directories that may be changed
	Show     []string // files that are not hidden
	Connect  []string // sockets of coven, or directories of them
	Ports    []int    // ports of coven on this machine's loopback
	// Reads receives the list of the files that the program read outside of the task's directories: see package reads. It is
	// optional.
	Reads io.Writer
	// Inputs also records everything that the result of the program may depend on, in this directory: its worktree.
	Inputs string
}

// Boundary returns the kernel limits of a program, or nil if the kernel cannot enforce any.
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
	b := &process.Boundary{
		Write: write, Hide: r.sandbox.hidden(slices.Concat(needed, a.Connect), r.sandbox.runtimeFiles()),
		Connect: slices.Concat(a.Connect, r.sandbox.shownSockets()), Replace: r.Replace, Link: r.Link,
	}
	if a.Apart && r.sandbox.separates() {
		shared := append(r.sandbox.shared(), needed...)
		b.Partial = map[string][]string{o.Root: shared}
		for _, dir := range r.sandbox.others() {
			if !slices.Contains(r.worktree, dir) {
				b.Partial[dir] = shared
			}
		}
	}
	if r.sandbox.HasPrivateNetwork() {
		ports := slices.Concat(r.Ports, a.Ports)
		slices.Sort(ports)
		b.Loopback = &process.Loopback{Ports: slices.Compact(ports), Relay: relay.New}
	}
	if caches := slices.DeleteFunc(slices.Clone(r.caches), func(c shownCache) bool { return within(c.user, a.Write) }); len(caches) > 0 {
		b.Caches = func() ([]overlay.Dir, func(), error) { return r.layers.begin(caches) }
	}
	if !slices.ContainsFunc(append(needed, o.Root, o.GitDir), inShm) {
		b.Shm = r.shm
	}
	if a.Reads != nil {
		b.Reads = &process.Reads{Scope: r.outside(), To: a.Reads}
		if a.Inputs != "" {
			b.Reads.Scope.Inputs = r.inputs(a.Inputs, b.Reads.Scope.In)
		}
	}
	return b
}

// outside returns the scope of files that do not belong to the task, but to the main checkout, to other worktrees or to
// packages that the user has installed.
func (r *Room) outside() reads.Scope {
	o := r.sandbox.o
	scope := reads.Scope{
		In: []string{realPath(o.Root)}, Bound: map[string]string{},
		Except: slices.Concat(realPaths(slices.Concat(r.worktree, []string{o.GitDir}, o.Borrowed)), r.scratch()),
	}
	if o.Beside != nil {
		scope.In = append(scope.In, realPaths(r.sandbox.others())...)
	}
	if home := r.sandbox.expand("~"); home != "" {
		scope.Packages = []string{realPath(home)}
	}
	for path, source := range r.Link {
		scope.Bound[realPath(path)] = realPath(source)
	}
	return scope
}

// inputs returns the scope of a program's inputs. The task's directory of temporary files and its caches are none.
func (r *Room) inputs(dir string, hashed []string) *reads.Inputs {
	inputs := &reads.Inputs{Dir: dir, Hashed: hashed, Except: r.scratch()}
	for path := range r.Link {
		inputs.Bound = append(inputs.Bound, realPath(path))
	}
	return inputs
}

// scratch returns the directories of the task's temporary files and caches.
func (r *Room) scratch() []string {
	dirs := realPaths([]string{r.temp, r.cache})
	for _, cache := range r.caches {
		dirs = append(dirs, cache.user)
	}
	return dirs
}

// separates reports whether programs can be apart from the main checkout: the user's settings neither show it, nor let
// them change it.
func (s *Sandbox) separates() bool {
	return s.o.Shared != nil && !within(s.o.Root, slices.Concat(s.shown(), s.writable()))
}

// shared returns the paths in the main checkout that programs can read if they are apart from it.
func (s *Sandbox) shared() []string {
	return slices.Concat(s.shown(), s.o.Shared(), []string{s.o.GitDir}, s.o.Borrowed)
}

// KeepsApart reports whether programs that are apart from the main checkout cannot read a file in it for that reason.
func (s *Sandbox) KeepsApart(path string) bool {
	_, in := s.InCheckout(path)
	return in && s.Isolates()
}

// Isolates reports whether programs that are apart from the main checkout cannot read its files. A bare repository has
// none.
func (s *Sandbox) Isolates() bool { return s.Level() != None && (s.o.Shared == nil || s.separates()) }

// others returns the directories outside of the main checkout that contain other checkouts, or are checkouts.
func (s *Sandbox) others() []string {
	if s.o.Origin == "" {
		return s.o.Beside()
	}
	return append(s.o.Beside(), s.o.Origin)
}

// InCheckout returns a path in the main checkout, or in that of Origin, relative to the checkout. ok is false for other paths, for
// those in ignored directories and in coven's own, and where the user's settings show the checkout.
func (s *Sandbox) InCheckout(path string) (inside string, ok bool) {
	if s.o.Shared == nil {
		return "", false
	}
	root := s.o.Root
	if s.o.Origin != "" && within(path, []string{s.o.Origin}) {
		root = s.o.Origin
	}
	inside, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsAbs(path) || !filepath.IsLocal(inside) || within(path, s.shared()) {
		return "", false
	}
	return inside, !within(path, []string{filepath.Join(root, ".coven")})
}

// inShm reports whether a path is in /dev/shm.
func inShm(path string) bool { return within(path, []string{"/dev/shm"}) }

// pluginsName is the name of the plugins' room. No task has this name.
const pluginsName = ".plugins"

// Plugins returns the kernel limits for plugins, which are trusted and serve all tasks, or nil if the
// kernel cannot enforce any. Plugins may change their own directories and read the same files as programs of
// a task. They are long-running and must be able to read files that are created later: hidden files that are
// replaced become visible to them, and without mounts, nothing is hidden from them.
func (s *Sandbox) Plugins(dir string) (room *Room, b *process.Boundary, err error) {
	if room, err = s.Room(pluginsName); err != nil {
		return nil, nil, err
	}
	if b = room.Boundary(Access{ReadOnly: true, Write: []string{dir}, Connect: []string{dir}}); b == nil {
		return room, nil, nil
	}
	b.Live, b.Loopback = true, nil
	if !s.o.Enforcement().Covers {
		b.Hide = nil
	}
	return room, b, nil
}

// Env returns the variables of a program, as KEY=VALUE, given those of its user: its temporary
// directory, its caches, and git settings for the sandbox.
func (r *Room) Env(user []string) []string {
	env := []string{"TMPDIR=" + r.temp}
	env = slices.Concat(env, r.cacheEnv(), r.Trust)
	return append(env, gitSettings(user,
		"commit.gpgSign=false", "tag.gpgSign=false", // keys are hidden
		"gc.auto=0", "maintenance.auto=false", // the repository is a temporary copy
	)...)
}

// gitSettings returns the variables, as KEY=VALUE, that pass settings to git. They follow, and override, those in the
// user's variables.
func gitSettings(user []string, settings ...string) []string {
	after := 0
	for _, kv := range user {
		if count, ok := strings.CutPrefix(kv, "GIT_CONFIG_COUNT="); ok {
			after, _ = strconv.Atoi(count) // git refuses other values
		}
	}
	after = max(after, 0)
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", after+len(settings))}
	for i, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", after+i, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", after+i, value))
	}
	return env
}

// Merge joins lists of variables, as KEY=VALUE. Later values override earlier ones.
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

// expand replaces a leading ~ by the user's home directory. It returns "" if the user has
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

// writable returns the paths in the user's settings that programs may change. It omits missing
// paths.
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
