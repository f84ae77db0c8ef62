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
	"strings"
)

// A cache is a directory for downloads or build results of a tool.
type cache struct {
	name     string // name in the task's cache directory
	variable string // variable that selects the directory
	value    string // value of the variable before the directory
	usual    string // default directory, below ~
}

// cacheTable lists the caches that each task has separately. Tools that follow the XDG base
// directories (pip, uv, poetry, yarn, ccache, deno) need no entry.
func cacheTable() []cache {
	return []cache{
		{name: "xdg", variable: "XDG_CACHE_HOME", usual: "~/.cache"},
		{name: "go-build", variable: "GOCACHE", usual: "~/.cache/go-build"},
		{name: "go-mod", variable: "GOMODCACHE", usual: "~/go/pkg/mod"},
		{name: "npm", variable: "npm_config_cache", usual: "~/.npm"},
		{name: "pnpm", variable: "npm_config_store_dir", usual: "~/.local/share/pnpm/store"},
		{name: "pip", variable: "PIP_CACHE_DIR", usual: "~/.cache/pip"},
		{name: "cargo", variable: "CARGO_HOME", usual: "~/.cargo"},
		{name: "gradle", variable: "GRADLE_USER_HOME", usual: "~/.gradle"},
		{name: "maven", variable: "MAVEN_ARGS", value: "-Dmaven.repo.local=", usual: "~/.m2/repository"},
		{name: "nuget", variable: "NUGET_PACKAGES", usual: "~/.nuget/packages"},
	}
}

// KeptName is the directory, next to those of the tasks, of the caches for the next task.
const KeptName = ".kept"

// kept reports whether a cache is passed from a landed task to a later one.
func (s *Sandbox) kept(c cache) bool { return slices.Contains(s.o.Keep, c.variable) }

// giveKept moves the kept caches to a task, unless the task has its own. Only one task at a time has
// them. If it fails, the task starts with empty caches.
func (s *Sandbox) giveKept(to string) {
	for _, c := range cacheTable() {
		if s.kept(c) {
			_ = os.Rename(filepath.Join(cacheOf(s.o.Cache, s.o.GitDir, KeptName), c.name), filepath.Join(to, c.name)) // does not replace a directory with content
		}
	}
}

// ForgetLanded removes the caches of a landed task, except those that are kept for later tasks.
func (s *Sandbox) ForgetLanded(name string) error {
	if s.o.Cache == "" {
		return nil
	}
	from, to := cacheOf(s.o.Cache, s.o.GitDir, name), cacheOf(s.o.Cache, s.o.GitDir, KeptName)
	for _, c := range cacheTable() {
		at := filepath.Join(from, c.name)
		info, err := os.Lstat(at)
		if !s.kept(c) || err != nil || !info.IsDir() {
			continue
		}
		// The older cache is removed with the rest of the task's caches.
		_ = os.Rename(filepath.Join(to, c.name), filepath.Join(from, c.name+".older"))
		err = errors.Join(os.MkdirAll(to, 0o700), os.Chmod(at, 0o700)) // the task may have removed its own permissions
		if err == nil {
			err = os.Rename(at, filepath.Join(to, c.name))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keep the cache %s: %w", c.variable, err), s.Forget(name))
		}
	}
	return errors.Join(s.Forget(name), s.forgetKept())
}

// forgetKept removes kept caches that are no longer configured to be kept.
func (s *Sandbox) forgetKept() (err error) {
	for _, c := range cacheTable() {
		if !s.kept(c) {
			err = errors.Join(err, removeAll(filepath.Join(cacheOf(s.o.Cache, s.o.GitDir, KeptName), c.name)))
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
	return r.linkCargoConfig(root)
}

// linkCargoConfig links the user's cargo settings into the task's cargo directory.
func (r *Room) linkCargoConfig(caches *os.Root) error {
	home := r.sandbox.o.Getenv("CARGO_HOME")
	if !filepath.IsAbs(home) {
		home = r.sandbox.expand("~/.cargo")
	}
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

// caches returns the variables for the task's caches. It omits a cache that the user's settings make
// writable, so that the task uses the user's.
func (r *Room) caches(user []string) []string {
	shared := r.sandbox.writable()
	var env []string
	for _, c := range cacheTable() {
		if dir := r.sandbox.usersCache(c, user); dir != "" && within(dir, shared) {
			continue
		}
		env = append(env, c.variable+"="+c.value+filepath.Join(r.cache, c.name))
	}
	return env
}

// usersCache returns the user's cache directory, or "".
func (s *Sandbox) usersCache(c cache, user []string) string {
	if c.value == "" {
		for _, kv := range user {
			if name, value, _ := strings.Cut(kv, "="); name == c.variable && filepath.IsAbs(value) {
				return filepath.Clean(value)
			}
		}
	}
	return s.expand(c.usual)
}
