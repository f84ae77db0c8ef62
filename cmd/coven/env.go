package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/worktree"
)

// env is what of its process an opened repository depends on.
type env struct {
	getenv  func(string) string
	environ func() []string
	workdir func() (string, error)
	now     func() time.Time
	self    func() (string, error) // path of this binary
	version string                 // of coven
	stopped <-chan struct{}        // closed at the first interrupt; nil: nobody interrupts
}

// newEnv is the environment of this process. version is coven's.
func newEnv(version string) *env {
	return &env{version: version, getenv: os.Getenv, environ: os.Environ, workdir: os.Getwd, now: clock.Now, self: os.Executable}
}

// cacheDir is where coven keeps what can be made again; empty when nobody says
// whose it is.
func (e *env) cacheDir() string {
	if dir := e.getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := e.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coven")
	}
	return ""
}

// userDir is where the user's own settings for coven are.
func (e *env) userDir() string {
	if dir := e.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	return filepath.Join(e.getenv("HOME"), ".config", "coven")
}

// socketDir is where sockets are made: each in a private directory below it.
func (e *env) socketDir() string {
	for _, dir := range []string{e.getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if filepath.IsAbs(dir) && len(dir) <= longestDir {
			return dir
		}
	}
	return "/tmp"
}

// settings reads coven's settings for a repository.
func (e *env) settings(repo *worktree.Repo) (config.Config, error) {
	where, err := territory(repo)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(repo.Root, where, e.getenv)
}

// absolute is the path of a file that was named in the user's directory.
func (e *env) absolute(file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	dir, err := e.workdir()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	return filepath.Join(dir, file), nil
}

// user is the name under which a person's decisions are on record.
func (e *env) user() string {
	if name := e.getenv("USER"); name != "" {
		return name
	}
	return "a person"
}
