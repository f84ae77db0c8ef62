package object

import (
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/ref"
)

// Refs lists the refs below one directory, such as "refs/heads/".
func (s *Store) Refs(dirs []string) ([]ref.Ref, error) {
	if len(dirs) != 1 || !strings.HasPrefix(dirs[0], "refs/") || !strings.HasSuffix(dirs[0], "/") || strings.ContainsAny(dirs[0], "*?[\\") {
		return nil, ErrUnsupported
	}
	names, err := s.loose(dirs[0])
	if err != nil {
		return nil, err
	}
	// Read packed-refs after the loose refs: git removes a loose ref only after packing it.
	packed, err := s.packed(dirs[0])
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		packed[name] = ""
	}
	var refs []ref.Ref
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		oid := packed[name]
		if oid == "" {
			if oid, err = s.Ref(name); err != nil {
				return nil, err // also if it was removed after the listing
			}
		}
		refs = append(refs, ref.Ref{Name: name, Oid: oid})
	}
	return refs, nil
}

// loose lists the loose refs.
func (s *Store) loose(dir string) (names []string, err error) {
	err = filepath.WalkDir(filepath.Join(s.dir, dir), func(file string, entry fs.DirEntry, err error) error {
		switch {
		case isAbsent(err):
			return nil
		case err != nil:
			return err
		case entry.IsDir() || strings.HasSuffix(file, ".lock"):
			return nil
		case !entry.Type().IsRegular():
			return ErrUnsupported
		}
		name, err := filepath.Rel(s.dir, file)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	return names, err
}

// packed returns the refs in packed-refs and their values.
func (s *Store) packed(dir string) (map[string]string, error) {
	refs := map[string]string{}
	err := s.use(func(*Storage) error { // check that the repository is readable in process
		content, err := readRegular(filepath.Join(s.dir, "packed-refs"))
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			oid, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if !found || line[0] == '#' || line[0] == '^' || !strings.HasPrefix(name, dir) {
				continue
			}
			if _, err := hash(oid); err != nil {
				return err
			}
			refs[name] = oid
		}
		return nil
	})
	return refs, err
}
