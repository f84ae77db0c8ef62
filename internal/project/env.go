package project

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/internal/clock"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/worktree"
)

// Environment is what of its process an opened repository depends on.
type Environment struct {
	Getenv  func(string) string
	Environ func() []string
	Workdir func() (string, error) // the directory that the user is in
	Now     func() time.Time
	Self    func() (string, error) // path of this binary
	Version string                 // of coven
	Stopped <-chan struct{}        // closed at the first interrupt; nil: nobody interrupts
}

// NewEnv is the environment of this process. version is coven's.
func NewEnv(version string) *Environment {
	return &Environment{Version: version, Getenv: os.Getenv, Environ: os.Environ, Workdir: os.Getwd, Now: clock.Now, Self: os.Executable}
}

// cacheDir is where coven keeps what can be made again; empty when nobody says
// whose it is.
func (e *Environment) cacheDir() string {
	if dir := e.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coven")
	}
	return ""
}

// UserDir is where the user's own settings for coven are.
func (e *Environment) UserDir() string {
	if dir := e.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	return filepath.Join(e.Getenv("HOME"), ".config", "coven")
}

// SocketDir is where sockets are made: each in a private directory below it.
func (e *Environment) SocketDir() string {
	for _, dir := range []string{e.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if filepath.IsAbs(dir) && len(dir) <= longestDir {
			return dir
		}
	}
	return "/tmp"
}

// settings reads coven's settings for a repository.
func (e *Environment) settings(repo *worktree.Repo) (config.Config, error) {
	where, err := untrustedPaths(repo)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(repo.Root, where, e.Getenv)
}

// Absolute is the path of a file that was named in the user's directory.
func (e *Environment) Absolute(file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	dir, err := e.Workdir()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	return filepath.Join(dir, file), nil
}

// User is the name under which a person's decisions are on record.
func (e *Environment) User() string {
	if name := e.Getenv("USER"); name != "" {
		return name
	}
	return "a person"
}
