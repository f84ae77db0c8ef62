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

// Environment is the part of the process that an opened repository depends on. All fields
// but Version and Stopped must be set.
type Environment struct {
	Getenv  func(string) string
	Environ func() []string
	Workdir func() (string, error) // the directory that the user is in
	Now     func() time.Time
	Self    func() (string, error) // the path of this executable
	Version string                 // of coven
	Stopped <-chan struct{}        // closed at the first interrupt; may be nil
}

// NewEnv returns the environment of this process. version is coven's.
func NewEnv(version string) *Environment {
	return &Environment{Version: version, Getenv: os.Getenv, Environ: os.Environ, Workdir: os.Getwd, Now: clock.Now, Self: os.Executable}
}

// cacheDir returns coven's cache directory; empty if the environment names no home.
func (e *Environment) cacheDir() string {
	if dir := e.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coven")
	}
	return ""
}

// UserDir returns the directory of the user's own settings for coven.
func (e *Environment) UserDir() string {
	if dir := e.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	return filepath.Join(e.Getenv("HOME"), ".config", "coven")
}

// SocketDir returns the directory for sockets. Each is in a private directory below it.
func (e *Environment) SocketDir() string {
	for _, dir := range []string{e.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if filepath.IsAbs(dir) && len(dir) <= maxSocketDir {
			return dir
		}
	}
	return "/tmp"
}

// settings reads the settings of a repository.
func (e *Environment) settings(repo *worktree.Repo) (config.Config, error) {
	where, err := untrustedPaths(repo)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(repo.Root, where, e.Getenv)
}

// Absolute returns the absolute path of a file that the user named.
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

// User returns the name under which the decisions of the user are recorded.
func (e *Environment) User() string {
	if name := e.Getenv("USER"); name != "" {
		return name
	}
	return "a person"
}
