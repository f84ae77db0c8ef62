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

// A cache is a directory in which tools keep what they downloaded or built.
type cache struct {
	name     string // in the cache directory of a task
	variable string // selects the directory
	value    string // of the variable, in front of the directory
	usual    string // the directory without the variable, below ~
}

// cacheTable lists the caches that each task has for itself. Tools that follow the XDG base
// directories (pip, uv, poetry, yarn, ccache, deno) need no row.
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

// KeptName is the directory, beside those of the tasks, of the caches that the next task gets.
const KeptName = ".kept"

// kept reports whether a cache passes from a landed task to a later one.
func (s *Sandbox) kept(c cache) bool { return slices.Contains(s.o.Keep, c.variable) }

// giveKept moves the kept caches to a task that has none yet: one task at a time has them. Whatever
// fails, the task only starts with an empty cache.
func (s *Sandbox) giveKept(to string) {
	for _, c := range cacheTable() {
		if s.kept(c) {
			_ = os.Rename(filepath.Join(cacheOf(s.o.Cache, s.o.GitDir, KeptName), c.name), filepath.Join(to, c.name)) // it replaces nothing
		}
	}
}

// ForgetLanded removes the caches of a task that has landed, except those that later tasks get.
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
		// The older one goes with the rest of the task's caches.
		_ = os.Rename(filepath.Join(to, c.name), filepath.Join(from, c.name+".older"))
		err = errors.Join(os.MkdirAll(to, 0o700), os.Chmod(at, 0o700)) // the task may have taken its own right
		if err == nil {
			err = os.Rename(at, filepath.Join(to, c.name))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("keep the cache %s: %w", c.variable, err), s.Forget(name))
		}
	}
	return errors.Join(s.Forget(name), s.forgetKept())
}

// forgetKept removes kept caches that are no longer kept.
func (s *Sandbox) forgetKept() (err error) {
	for _, c := range cacheTable() {
		if !s.kept(c) {
			err = errors.Join(err, removeAll(filepath.Join(cacheOf(s.o.Cache, s.o.GitDir, KeptName), c.name)))
		}
	}
	return err
}

// cacheOf returns the cache directory of a task of a repository. It is outside of every
// repository: git, run in a dependency that was unpacked there, must find none.
func cacheOf(cache, gitDir, name string) string {
	sum := sha256.Sum256([]byte(gitDir))
	return filepath.Join(cache, "tasks", hex.EncodeToString(sum[:6]), name)
}

// makeCaches makes the directories of the caches. Programs of the task may have put anything in
// their place: what is not a directory is removed, and links lead nowhere.
func (r *Room) makeCaches() error {
	root, err := os.OpenRoot(r.cache)
	if err != nil {
		return fmt.Errorf("prepare the caches: %w", err)
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	for _, c := range cacheTable() {
		if info, err := root.Lstat(c.name); err == nil && !info.IsDir() {
			_ = root.Remove(c.name) // Mkdir reports what stays
		}
		if err := root.MkdirAll(c.name, 0o700); err != nil {
			return fmt.Errorf("prepare the caches: %w", err)
		}
	}
	return r.linkCargoConfig(root)
}

// linkCargoConfig lets cargo find the user's settings, which are in its cache directory.
func (r *Room) linkCargoConfig(caches *os.Root) error {
	home := r.sandbox.o.Getenv("CARGO_HOME")
	if !filepath.IsAbs(home) {
		home = r.sandbox.expand("~/.cargo")
	}
	settings := filepath.Join(home, "config.toml")
	if _, err := os.Stat(settings); home == "" || err != nil {
		return nil //nolint:nilerr // the user has none
	}
	err := caches.Symlink(settings, filepath.Join("cargo", "config.toml"))
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) { // the task took its own right
		return fmt.Errorf("prepare the caches: %w", err)
	}
	return nil
}

// caches returns the variables of the task's caches. A cache that the user's settings make
// writable stays the user's.
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

// usersCache returns the directory of a user's cache, or "".
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
