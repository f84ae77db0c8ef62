package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/internal/file/tempdir"
)

// A cache is a directory for downloads or build results of a tool.
type cache struct {
	name     string // name in the task's cache directory
	variable string // variable that selects the directory
	value    string // value of the variable before the directory
	usual    string // default directory, below ~
	// parts lists the directories in it that programs see of the user's. It is nil if they see all of it. Settings,
	// programs and records of running daemons beside the parts stay the user's.
	parts []string
}

// xdgName is the name of the cache for tools that follow the XDG base directories.
const xdgName = "xdg"

// cacheTable lists the caches that each task has separately. Tools that follow the XDG base
// directories (pip, uv, poetry, yarn, ccache, deno) need no entry.
func cacheTable() []cache {
	return []cache{
		{name: xdgName, variable: "XDG_CACHE_HOME", usual: "~/.cache", parts: []string{}},
		{name: "go-build", variable: "GOCACHE", usual: "~/.cache/go-build"},
		{name: "go-mod", variable: "GOMODCACHE", usual: "~/go/pkg/mod"},
		{name: "npm", variable: "npm_config_cache", usual: "~/.npm", parts: []string{"_cacache", "_npx"}},
		{name: "pnpm", variable: "npm_config_store_dir", usual: "~/.local/share/pnpm/store"},
		{name: "pip", variable: "PIP_CACHE_DIR", usual: "~/.cache/pip"},
		{name: "cargo", variable: "CARGO_HOME", usual: "~/.cargo", parts: []string{"registry", "git"}},
		{name: "gradle", variable: "GRADLE_USER_HOME", usual: "~/.gradle", parts: []string{"caches", "wrapper"}},
		{name: "maven", variable: "MAVEN_ARGS", value: "-Dmaven.repo.local=", usual: "~/.m2/repository"},
		{name: "nuget", variable: "NUGET_PACKAGES", usual: "~/.nuget/packages"},
	}
}

// KeptName is the directory, next to those of the tasks, of the caches for the next task.
const KeptName = ".kept"

// kept reports whether a cache is passed from a landed task to a later one.
func (s *Sandbox) kept(c cache) bool { return slices.Contains(s.o.Keep, c.variable) }

// A passedCache is a directory that passes from a landed task to a later one.
type passedCache struct{ path, name string }

// passed returns the directories of the kept caches of a task. name is that in the directory of kept caches, and cache and
// layers are the task's directories.
func (s *Sandbox) passed(cache, layers string) []passedCache {
	var all []passedCache
	for _, c := range cacheTable() {
		if s.kept(c) {
			all = append(all, passedCache{filepath.Join(cache, c.name), c.name})
		}
	}
	for _, c := range s.usersCaches() {
		if s.keepsShown(c) {
			all = append(all, passedCache{baseOf(layers, c.key), baseName + "-" + c.key})
		}
	}
	return all
}

// keepsShown reports whether the task's changes to a cache of the user are passed to a later task.
func (s *Sandbox) keepsShown(c shownCache) bool {
	return slices.ContainsFunc(cacheTable(), func(of cache) bool { return s.kept(of) && within(c.at, []string{of.name}) })
}

// giveKept moves the kept caches to a task, unless the task has its own. Only one task at a time has
// them. If it fails, the task starts with empty caches.
func (s *Sandbox) giveKept(to, layers string) {
	from := cacheOf(s.o.Cache, s.o.GitDir, KeptName)
	for _, c := range s.usersCaches() { // the user had none when the earlier task began
		if s.keepsShown(c) && isDir(c.user) && isDirBelow(from, c.at) && hasEntries(filepath.Join(from, c.at)) {
			_ = os.MkdirAll(filepath.Dir(baseOf(layers, c.key)), 0o700)
			_ = os.Rename(filepath.Join(from, c.at), baseOf(layers, c.key))
		}
	}
	for _, c := range s.passed(to, layers) {
		if kept := filepath.Join(from, c.name); exists(kept) {
			_ = os.MkdirAll(filepath.Dir(c.path), 0o700)
			_ = os.Rename(kept, c.path) // does not replace a directory with content
		}
	}
}

// ForgetLanded removes the caches of a landed task, except those that are kept for later tasks.
func (s *Sandbox) ForgetLanded(name string) error {
	if s.o.Cache == "" {
		return nil
	}
	from, to := cacheOf(s.o.Cache, s.o.GitDir, name), cacheOf(s.o.Cache, s.o.GitDir, KeptName)
	for _, c := range s.passed(from, from+LayersSuffix) {
		if !isDir(c.path) {
			continue
		}
		// The older cache is removed with the rest of the task's caches.
		_ = os.Rename(filepath.Join(to, c.name), c.path+".older")
		err := errors.Join(os.MkdirAll(to, 0o700), os.Chmod(c.path, 0o700)) // the task may have removed its own permissions
		if err == nil {
			err = os.Rename(c.path, filepath.Join(to, c.name))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keep the cache %s: %w", c.name, err), s.Forget(name))
		}
	}
	return errors.Join(s.Forget(name), s.forgetKept())
}

// forgetKept removes kept caches that are no longer configured to be kept.
func (s *Sandbox) forgetKept() (err error) {
	dir := cacheOf(s.o.Cache, s.o.GitDir, KeptName)
	entries, _ := os.ReadDir(dir) // there may be none
	for _, entry := range entries {
		if !slices.ContainsFunc(s.passed("", ""), func(c passedCache) bool { return c.name == entry.Name() }) {
			err = errors.Join(err, tempdir.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// cacheOf returns the cache directory of a task. It is outside of every
// repository, so that git does not find one when it runs in an unpacked dependency.
func cacheOf(cache, gitDir, name string) string {
	sum := sha256.Sum256([]byte(gitDir))
	return filepath.Join(cache, "tasks", hex.EncodeToString(sum[:6]), name)
}

// makeCaches creates the cache directories. Programs of the task may have replaced them by anything:
// it removes files and links, and does not follow links.
func (r *Room) makeCaches() error {
	root, err := os.OpenRoot(r.cache)
	if err != nil {
		return fmt.Errorf("prepare the caches: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for _, c := range cacheTable() {
		if info, err := root.Lstat(c.name); err == nil && !info.IsDir() {
			_ = root.Remove(c.name) // MkdirAll reports leftovers
		}
		if err := root.MkdirAll(c.name, 0o700); err != nil {
			return fmt.Errorf("prepare the caches: %w", err)
		}
	}
	r.makePlaces(root)
	return r.linkCargoConfig(root)
}

// linkCargoConfig links the user's cargo settings into the task's cargo directory.
func (r *Room) linkCargoConfig(caches *os.Root) error {
	home := r.sandbox.usersCache("CARGO_HOME", "", "~/.cargo")
	settings := filepath.Join(home, "config.toml")
	if _, err := os.Stat(settings); home == "" || err != nil {
		return nil //nolint:nilerr // the user has no settings
	}
	err := caches.Symlink(settings, filepath.Join("cargo", "config.toml"))
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) { // the task removed its own permissions
		return fmt.Errorf("prepare the caches: %w", err)
	}
	return nil
}

// makePlaces creates the directories where programs also see the user's caches. It omits those that programs of the task
// have replaced.
func (r *Room) makePlaces(root *os.Root) {
	for i, c := range r.caches {
		if c.at == "" {
			continue
		}
		if info, err := root.Lstat(c.at); err == nil && !info.IsDir() {
			_ = root.Remove(c.at) // MkdirAll reports leftovers
		}
		if root.MkdirAll(c.at, 0o700) == nil {
			r.caches[i].places = append(c.places, filepath.Join(r.cache, c.at))
		}
	}
}

// cacheEnv returns the variables for the caches. It omits a cache that the user's settings make writable, so that the task
// uses the user's.
func (r *Room) cacheEnv() []string {
	shared := r.sandbox.writable()
	var env []string
	seen := map[string]bool{}
	for _, c := range r.caches {
		theirs := r.sandbox.o.Getenv(c.variable)
		if seen[c.variable] = true; c.variable != "" && (c.value != "" || theirs == "" || filepath.IsAbs(theirs)) {
			env = append(env, c.variable+"="+c.value+c.user)
		}
	}
	for _, c := range cacheTable() {
		dir := r.sandbox.usersCache(c.variable, c.value, c.usual)
		if seen[c.variable] || dir != "" && within(dir, shared) {
			continue
		}
		env = append(env, c.variable+"="+c.value+filepath.Join(r.cache, c.name))
	}
	return env
}

// usersCache returns the user's cache directory, or "". value is that of cache.
func (s *Sandbox) usersCache(variable, value, usual string) string {
	if dir := s.o.Getenv(variable); value == "" && filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if moved := s.movedPaths(usual); len(moved) > 0 {
		return moved[0]
	}
	return s.expand(usual)
}
