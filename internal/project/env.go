package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/process/checklock"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
)

// Environment provides the process state that an opened repository depends on. All fields
// except Version, Stopped and Cache must be set.
type Environment struct {
	Getenv  func(string) string
	Environ func() []string
	Workdir func() (string, error) // the user's working directory
	Now     func() time.Time
	Self    func() (string, error) // the path of this executable
	Version string                 // of coven
	Stopped <-chan struct{}        // closed at the first interrupt; may be nil
	Cache   string                 // replaces the user's cache directory; optional
}

// NewEnv returns the environment of this process. version is coven's version.
func NewEnv(version string) *Environment {
	return &Environment{Version: version, Getenv: os.Getenv, Environ: os.Environ, Workdir: os.Getwd, Now: clock.Now, Self: os.Executable}
}

// CacheDir returns coven's cache directory. It is empty if the environment has no home directory.
func (e *Environment) CacheDir() string {
	if e.Cache != "" {
		return e.Cache
	}
	if dir := e.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coven")
	}
	return ""
}

// StateDir returns the directory for coven's data about the user. It is empty if the environment
// has no home directory.
func (e *Environment) StateDir() string {
	if dir := e.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	if home := e.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "coven")
	}
	return ""
}

// CheckLocks returns the directory of the locks of checks, which all repositories share. A coven that a program of a
// task starts has its own: a check would otherwise wait for itself.
func (e *Environment) CheckLocks() checklock.Dir {
	dir := e.StateDir()
	if dir == "" {
		return ""
	}
	return checklock.Dir(filepath.Join(dir, "locks", filepath.Base(e.Getenv("COVEN_STEP_KEY"))))
}

// UserDir returns the directory of the user's coven settings.
func (e *Environment) UserDir() string {
	if dir := e.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coven")
	}
	return filepath.Join(e.Getenv("HOME"), ".config", "coven")
}

// SocketDir returns the parent of the private directories for sockets.
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
	dir, err := e.Workdir()
	if err != nil {
		return config.Config{}, fmt.Errorf("find the current directory: %w", err)
	}
	return config.Sources{Root: repo.Root, Untrusted: where, Getenv: e.Getenv, Dir: dir}.Load()
}

// SettingsFiles returns the locations of the settings: the user's file
// and, in a repository, the project's.
func (e *Environment) SettingsFiles(ctx context.Context) (config.Sources, error) {
	s := config.Sources{Getenv: e.Getenv}
	dir, err := e.Workdir()
	if err != nil {
		return s, fmt.Errorf("find the current directory: %w", err)
	}
	s.Dir = dir
	repo, err := worktree.Open(ctx, dir)
	if errors.Is(err, worktree.ErrNotRepository) {
		return s, nil
	}
	if err == nil {
		err = checkPlaces(repo.Root)
	}
	if err == nil {
		s.Root = repo.Root
		s.Untrusted, err = untrustedPaths(repo)
	}
	return s, err
}

// Set changes a setting and returns the name of the changed file.
func (e *Environment) Set(ctx context.Context, r config.SetRequest) (string, error) {
	files, err := e.SettingsFiles(ctx)
	if err != nil {
		return "", err
	}
	if files.Root != "" && !r.User {
		if err := worktree.EnsureCovenDir(files.Root); err != nil {
			return "", err
		}
	}
	return files.Set(r)
}

// expand replaces a leading ~ by the user's home directory.
func (e *Environment) expand(path string) string {
	if rest, below := strings.CutPrefix(path, "~/"); below {
		return filepath.Join(e.Getenv("HOME"), rest)
	}
	return path
}

// branchTemplate returns the template of worktree.branch with the name of the user. It is empty for the default.
func (e *Environment) branchTemplate(template string) string {
	if template == config.DefaultBranch {
		return ""
	}
	return strings.ReplaceAll(template, "{user}", session.Slug(e.User()))
}

// Absolute returns the absolute path of a file named by the user.
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

// User returns the user name to record for decisions.
func (e *Environment) User() string {
	for _, variable := range []string{"USER", "LOGNAME"} {
		if name := e.Getenv(variable); name != "" {
			return name
		}
	}
	if known, err := user.Current(); err == nil && known.Username != "" {
		return known.Username
	}
	return fmt.Sprintf("user %d", os.Getuid())
}
