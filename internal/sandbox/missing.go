package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// MissingFile is a file that a program looked for in a cache, and that is not there.
type MissingFile struct {
	File    string // path of the file in the directory of caches
	User    string // the directory of the user in which tools keep it, below ~ if possible
	Offered bool   // the user's directory contains it, and Settings.Caches can show it
}

// Missing describes a file that a program of the task named, if it is in a cache and does not exist for the program.
func (r *Room) Missing(path string) (MissingFile, bool) {
	s := r.sandbox
	home, own := s.usersCache("XDG_CACHE_HOME", "", "~/.cache"), filepath.Join(r.cache, xdgName)
	dir := home
	if within(path, []string{own}) {
		dir = own
	}
	rel, err := filepath.Rel(dir, path)
	name, rest, below := strings.Cut(rel, "/")
	if err != nil || !filepath.IsLocal(rel) || !below || name == "coven" {
		return MissingFile{}, false
	}
	m := MissingFile{File: rel, User: filepath.Join(home, name), Offered: dir == own && exists(filepath.Join(home, name, rest))}
	places := []string{path}
	for _, c := range r.caches {
		if inside, err := filepath.Rel(c.at, filepath.Join(xdgName, rel)); err == nil && c.at != "" && filepath.IsLocal(inside) {
			places, m.Offered = []string{filepath.Join(c.user, inside), filepath.Join(baseOf(r.layers.dir, c.key), inside)}, false
		}
	}
	if slices.ContainsFunc(places, exists) {
		return MissingFile{}, false
	}
	if user := s.expand("~"); user != "" && within(m.User, []string{user}) {
		m.User = "~" + strings.TrimPrefix(m.User, user)
	}
	return m, true
}
