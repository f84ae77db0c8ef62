package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/diff"
)

// miseFiles lists the files of a project that mise reads if the user trusts the project.
var miseFiles = []string{
	"mise.toml", ".mise.toml", "mise/config.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".tool-versions",
}

// maxToolFile limits the size of a trusted file in bytes.
const maxToolFile = 1 << 20

// toolTrust gives the trust that tools keep by path, and that the user has given to files of the main checkout, to those
// files in the worktree that are as in the base. It returns variables for programs of the task.
//
// direnv trusts a path with a content: an agent that changes the file loses the trust. mise trusts a path: the variable
// names a file only for programs that start while it is as in the base.
func (s *Workspace) toolTrust(ctx context.Context) []string {
	s.trustDirenv(ctx)
	if s.Repo.Bare || !s.miseTrusts() {
		return nil
	}
	const variable = "MISE_TRUSTED_CONFIG_PATHS"
	trusted := filepath.SplitList(s.getenv(variable))
	for _, name := range miseFiles {
		if s.asInBase(ctx, name) {
			trusted = append(trusted, filepath.Join(s.Worktree.Path, name))
		}
	}
	if len(trusted) == 0 {
		return nil
	}
	return []string{variable + "=" + strings.Join(trusted, string(filepath.ListSeparator))}
}

// asInBase reports whether a file of the worktree is the same in the base and in the main checkout.
func (s *Workspace) asInBase(ctx context.Context, name string) bool {
	content, err := regularfile.Read(filepath.Join(s.Worktree.Path, name), maxToolFile)
	if err != nil {
		return false
	}
	theirs, err := regularfile.Read(filepath.Join(s.Repo.Root, name), maxToolFile)
	if err != nil || !bytes.Equal(content, theirs) {
		return false
	}
	base, err := diff.FileIn(ctx, s.Repo, s.Base, name, maxToolFile)
	return err == nil && bytes.Equal(content, base)
}

// miseTrusts reports whether the user has run mise trust in the main checkout. mise records it as a link to the directory
// or to a file.
func (s *Workspace) miseTrusts() bool {
	state := s.getenv("MISE_STATE_DIR")
	if !filepath.IsAbs(state) {
		state = filepath.Join(s.userDir("XDG_STATE_HOME", ".local/state"), "mise")
	}
	links, _ := filepath.Glob(filepath.Join(state, "trusted-configs", "*")) // only a bad pattern is an error
	return slices.ContainsFunc(links, func(link string) bool {
		target, err := os.Readlink(link)
		if err != nil {
			return false
		}
		rel, err := filepath.Rel(s.Repo.Root, target)
		return err == nil && (rel == "." || slices.Contains(miseFiles, rel))
	})
}

const envrc = ".envrc"

// trustDirenv allows .envrc in the worktree as direnv allow does.
func (s *Workspace) trustDirenv(ctx context.Context) {
	dir := s.direnvDir()
	own, theirs := filepath.Join(s.Worktree.Path, envrc), filepath.Join(s.Repo.Root, envrc)
	content, err := regularfile.Read(own, maxToolFile)
	if err != nil || s.Repo.Bare {
		return
	}
	at := filepath.Join(dir, direnvKey(own, content))
	if _, err := os.Lstat(at); err == nil {
		return
	}
	if _, err := os.Lstat(filepath.Join(dir, direnvKey(theirs, content))); err != nil {
		return
	}
	if s.asInBase(ctx, envrc) {
		_ = os.WriteFile(at, []byte(own+"\n"), 0o644) //nolint:gosec // as direnv does; without it, direnv asks
	}
}

// direnvKey returns the name of the file with which direnv allows another one.
func direnvKey(path string, content []byte) string {
	sum := sha256.Sum256(append([]byte(path+"\n"), content...))
	return hex.EncodeToString(sum[:])
}

// distrust removes the permissions that trustDirenv gave to a worktree.
func (s *Workspace) distrust(worktree string) {
	dir := s.direnvDir()
	entries, _ := os.ReadDir(dir) // there may be none
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if path, err := regularfile.Read(file, maxToolFile); err == nil && string(path) == filepath.Join(worktree, envrc)+"\n" {
			_ = os.Remove(file) // direnv prune removes it later
		}
	}
}

func (s *Workspace) direnvDir() string {
	return filepath.Join(s.userDir("XDG_DATA_HOME", ".local/share"), "direnv", "allow")
}

// userDir returns one of the user's XDG base directories.
func (s *Workspace) userDir(variable, usual string) string {
	if dir := s.getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(s.getenv("HOME"), usual)
}

// getenv returns a variable of the user.
func (s *Workspace) getenv(name string) (value string) {
	for _, kv := range s.Environ() {
		if key, v, _ := strings.Cut(kv, "="); key == name {
			value = v
		}
	}
	return value
}
