package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/process/overlay"
)

// shownCache is a cache of the user whose files programs see. They can change it, and the changes go to the task.
type shownCache struct {
	key      string   // name of its directory in layers
	variable string   // variable that selects it, or empty
	value    string   // value of the variable before the directory
	user     string   // the user's directory, without symbolic links
	at       string   // path below the task's cache directory where tools also look for it, or empty
	places   []string // where programs see it
	hidden   []string // paths in it that they do not see
}

// belowXDG lists the directories in XDG_CACHE_HOME that programs see of the user's, each with the variable that selects
// it, if there is one. The whole directory also contains the caches of browsers, and coven's own.
func belowXDG() [][2]string {
	return [][2]string{
		{"ms-playwright", "PLAYWRIGHT_BROWSERS_PATH"},
		{"Cypress", "CYPRESS_CACHE_FOLDER"},
		{"puppeteer", "PUPPETEER_CACHE_DIR"},
		{"pre-commit", "PRE_COMMIT_HOME"},
		{"huggingface", "HF_HOME"},
		{"uv", "UV_CACHE_DIR"},
		{"pypoetry", "POETRY_CACHE_DIR"},
		{"yarn", ""},
		{"deno", "DENO_DIR"},
		{"node/corepack", ""},
		{"torch", "TORCH_HOME"},
		{"golangci-lint", "GOLANGCI_LINT_CACHE"},
		{"ccache", ""},
	}
}

// usersCaches returns the caches of the user that programs see if they exist.
func (s *Sandbox) usersCaches() []shownCache {
	var all []shownCache
	add := func(at, dir, variable, value string) {
		all = append(all, shownCache{key: strings.ReplaceAll(at, "/", "+"), variable: variable, value: value, user: dir, at: at})
	}
	for _, c := range cacheTable() {
		dir := s.usersCache(c.variable, c.value, c.usual)
		for _, part := range c.parts {
			add(filepath.Join(c.name, part), filepath.Join(dir, part), "", "")
		}
		if c.parts == nil {
			add(c.name, dir, c.variable, c.value)
		}
	}
	for _, c := range belowXDG() {
		add(filepath.Join(xdgName, c[0]), s.usersCache(c[1], "", "~/.cache/"+c[0]), c[1], "")
	}
	for _, setting := range s.o.Settings.Caches {
		c := shownCache{user: s.expand(setting)}
		sum := sha256.Sum256([]byte(c.user))
		c.key = "user+" + hex.EncodeToString(sum[:6])
		if rel, err := filepath.Rel(s.usersCache("XDG_CACHE_HOME", "", "~/.cache"), c.user); err == nil && filepath.IsLocal(rel) {
			c.at = filepath.Join(xdgName, rel)
		}
		all = append(all, c)
	}
	return all
}

// shown returns the user's caches that exist and that programs of the room see. The kernel must be able to combine
// directories. A cache that the task has filled without the user's remains as it is.
func (r *Room) shown() []shownCache {
	s := r.sandbox
	if !s.o.Enforcement().Covers || s.Level() == None || r.layers == nil {
		return nil
	}
	var shown []shownCache
	for _, c := range s.usersCaches() {
		if dir, err := filepath.EvalSymlinks(c.user); err == nil && isDir(dir) && r.canShow(c, dir, shown) {
			c.user, c.places = dir, []string{dir}
			shown = append(shown, c)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	hidden := realPaths(s.hidden(r.worktree, nil))
	shown = slices.DeleteFunc(shown, func(c shownCache) bool { return within(c.user, hidden) })
	for i := range shown {
		shown[i].hidden = below(shown[i].user, hidden)
	}
	return shown
}

// canShow reports whether programs can see the user's cache in a directory, beside those that they already see. It must
// not overlap one of them, and must not contain a directory of the task or the repository.
func (r *Room) canShow(c shownCache, dir string, shown []shownCache) bool {
	s := r.sandbox
	if strings.ContainsAny(dir+r.layers.dir, overlay.Special) || !utf8.ValidString(dir+r.layers.dir) {
		return false
	}
	var used []string
	for _, other := range shown {
		used = append(used, other.user)
	}
	inside := slices.Concat(r.worktree, s.writable(), []string{s.o.Root, s.o.GitDir}, used)
	if within(dir, inside) || within(c.user, inside) {
		return false
	}
	apart := slices.Concat(r.worktree, []string{r.temp, r.shm, r.cache, r.layers.dir, s.o.Root, s.o.GitDir, s.expand("~")}, used)
	if len(below(dir, apart)) > 0 {
		return false
	}
	return exists(baseOf(r.layers.dir, c.key)) || c.at == "" || !hasEntries(filepath.Join(r.cache, c.at))
}

// below returns those of the paths that are a directory or in it, relative to it.
func below(dir string, paths []string) (inside []string) {
	for _, path := range paths {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			inside = append(inside, rel)
		}
	}
	return inside
}

// realPaths returns paths, and the same without symbolic links in the directories that exist.
func realPaths(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if real := realPath(path); real != path {
			all = append(all, real)
		}
	}
	return all
}

// realPath returns a path without symbolic links in the directories that exist. The path itself may be a link.
func realPath(path string) string {
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	real, err := filepath.EvalSymlinks(parent)
	if err != nil {
		real = realPath(parent)
	}
	return filepath.Join(real, filepath.Base(path))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// isDir reports whether a path is a directory, and not a link to one.
func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// isDirBelow reports whether a path below a directory is a directory, and no part of it is a link, which programs of a task
// may have made.
func isDirBelow(dir, path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if dir = filepath.Join(dir, part); !isDir(dir) {
			return false
		}
	}
	return true
}

// hasEntries reports whether a directory is not empty.
func hasEntries(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}
