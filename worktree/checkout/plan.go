package checkout

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// plan determines the steps of the move.
func (m *Move) plan(have map[string]fingerprint, before *index) error {
	leaf, files := map[string]bool{}, []string{}
	for unit := range have {
		leaf[unit] = true
	}
	touched := map[string]bool{}
	for _, c := range m.rec.Changes {
		path := string(c.Path)
		touched[unitOf(leaf, path)] = true
		if m.merged.entries[path].file() {
			files = append(files, path)
		}
	}
	if err := m.recordStats(files); err != nil {
		return err
	}
	p := &planning{m: m, have: have, before: before}
	for _, unit := range sorted(touched) {
		if err := p.unit(unit); err != nil {
			return err
		}
	}
	if err := p.checkAdditions(); err != nil {
		return err
	}
	if len(p.blocking) > 0 {
		return m.c.inTheWay(p.blocking...)
	}
	m.rec.Steps = p.ordered()
	m.rec.Dirs = p.missing()
	var err error
	m.rec.Index, err = nodeOf(m.mergedPath())
	return err
}

// planning is the state of plan, which converts units to steps.
type planning struct {
	m        *Move
	have     map[string]fingerprint
	before   *index
	steps    []step
	blocking []string
	occupied []step // additions at paths that already exist
	folded   bool   // some names differ only in case, and the file system is case-insensitive
}

// unit plans the step for one path.
func (p *planning) unit(path string) error {
	b, a := p.before.entries[path], p.m.merged.entries[path]
	have := p.have[path]
	if a.link() {
		if isDir(have) && !p.holds(path) { // a submodule's checkout does not move
			return nil
		}
		if err := os.MkdirAll(filepath.Join(p.m.fresh(), path), 0o777); err != nil {
			return err
		}
	}
	staged := filepath.Join(p.m.fresh(), path)
	want, err := fingerprintOf(staged)
	if err != nil {
		return err
	}
	at, err := nodeOf(staged)
	s := step{Path: name(path), Have: have, Want: want, Node: at}
	switch {
	case have == "" && want == "":
	case have == "" && b.file() && a.file():
		p.blocking = append(p.blocking, path) // deleted by the user
	case have == "":
		p.add(s)
	case want == "":
		p.drop(s, b)
	case b.file():
		p.steps = append(p.steps, s)
	default:
		p.occupied = append(p.occupied, s)
	}
	return err
}

// holds reports whether the move changes files below a path that are in the old index.
func (p *planning) holds(path string) bool {
	for _, c := range p.m.rec.Changes {
		if strings.HasPrefix(string(c.Path), path+"/") && p.before.entries[string(c.Path)].file() {
			return true
		}
	}
	return false
}

func (p *planning) add(s step) {
	if file, blocked := p.m.c.blocked(string(s.Path)); blocked {
		p.blocking = append(p.blocking, file)
		return
	}
	p.steps = append(p.steps, s)
}

// drop plans the removal of a tracked file, or of a submodule's directory if it is empty.
func (p *planning) drop(s step, b entry) {
	switch {
	case b.file():
	case p.holds(string(s.Path)):
		if others := p.m.untracked(string(s.Path), p.before); len(others) > 0 {
			p.blocking = append(p.blocking, others...)
			return
		}
	case !b.link() || s.Have != emptyDir():
		return
	}
	p.steps = append(p.steps, s)
}

// checkAdditions checks additions at paths that already exist: directories that become files, empty directories, or
// the user's files.
func (p *planning) checkAdditions() error {
	for _, s := range p.occupied {
		path := string(s.Path)
		if other, err := p.caseVariant(path); err != nil {
			return err
		} else if other {
			p.folded = true
			s.Have = ""
			p.steps = append(p.steps, s)
			continue
		}
		others := p.m.untracked(path, p.before)
		if isDir(s.Have) && len(others) == 0 && !p.before.entries[path].link() || s.Have == emptyDir() {
			p.steps = append(p.steps, s)
			continue
		}
		if len(others) == 0 || p.before.entries[path].link() {
			others = []string{path}
		}
		p.blocking = append(p.blocking, others...)
	}
	return nil
}

// caseVariant reports whether the file at a path is also removed under another name, which differs only in case.
func (p *planning) caseVariant(path string) (bool, error) {
	at, err := nodeOf(filepath.Join(p.m.c.top(), path))
	for _, s := range p.steps {
		other := string(s.Path)
		if err == nil && s.Want == "" && other != path && strings.EqualFold(other, path) {
			there, err := nodeOf(filepath.Join(p.m.c.top(), other))
			return there == at, err
		}
	}
	return false, err
}

// untracked lists the untracked files at or below a path. If a parent of the path is an untracked file, it
// returns that file.
func (m *Move) untracked(path string, known *index) []string {
	if file, blocked := m.c.blocked(path); blocked {
		path = file
	}
	var found []string
	top := filepath.Join(m.c.top(), path)
	_ = filepath.WalkDir(top, func(file string, entry fs.DirEntry, err error) error {
		if entry == nil || entry.IsDir() {
			return err // an unreadable file is not removed, because the step fails
		}
		relative := path + filepath.ToSlash(strings.TrimPrefix(file, top))
		if _, tracked := known.entries[relative]; !tracked {
			found = append(found, relative)
		}
		return nil
	})
	return found
}

// ordered sorts the steps: exchanges first, then additions, then removals, so that a renamed file exists
// all the time. If names are folded, additions are last.
func (p *planning) ordered() []step {
	rank := func(s step) int {
		switch {
		case s.Have == "" && p.folded:
			return 3
		case s.Have == "":
			return 1
		case s.Want == "":
			return 2
		}
		return 0
	}
	slices.SortStableFunc(p.steps, func(a, b step) int {
		if r := rank(a) - rank(b); r != 0 {
			return r
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	return p.steps
}

// missing lists the directories to create for additions, parents first.
func (p *planning) missing() []name {
	set := map[string]bool{}
	for _, s := range p.steps {
		if s.Have != "" {
			continue
		}
		for i, r := range string(s.Path) {
			if r != '/' {
				continue
			}
			if _, err := os.Lstat(filepath.Join(p.m.c.top(), string(s.Path[:i]))); err != nil {
				set[string(s.Path[:i])] = true
			}
		}
	}
	var dirs []name
	for _, dir := range sorted(set) {
		dirs = append(dirs, name(dir))
	}
	return dirs
}

func isDir(f fingerprint) bool { return strings.HasPrefix(string(f), "dir ") }

// emptyDir returns the fingerprint of an empty directory.
func emptyDir() fingerprint {
	return fingerprint(fmt.Sprintf("dir %x", sha256.Sum256(nil)))
}
