package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// firstPages are the pages that the site begins with. They lead to the others.
var firstPages = []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/*/*.md"}

// site is the documentation: pages, and the files that they show or link to. Its keys are paths in the
// repository, with slashes. The list of a directory has the path of the directory with /index.md.
type site struct {
	root  fs.FS
	pages map[string]*page
	files map[string]bool
}

// write writes the documentation in a repository into a directory and returns the number of pages. It fails if a
// link leads nowhere.
func write(root, dir string) (int, error) {
	s, err := read(os.DirFS(root))
	if err != nil {
		return 0, err
	}
	if err := s.check(); err != nil {
		return 0, err
	}
	for _, p := range s.pages {
		html, err := s.render(p)
		if err != nil {
			return 0, err
		}
		if err := writeFile(dir, address(p.path), html); err != nil {
			return 0, err
		}
	}
	for file := range s.files {
		text, err := fs.ReadFile(s.root, file)
		if err != nil {
			return 0, fmt.Errorf("read a file that is linked: %w", err)
		}
		if err := writeFile(dir, file, text); err != nil {
			return 0, err
		}
	}
	index, err := s.index()
	if err != nil {
		return 0, err
	}
	for name, text := range map[string][]byte{"style.css": style, "search.js": searchScript, "search-index.js": index} {
		if err := writeFile(dir, name, text); err != nil {
			return 0, err
		}
	}
	return len(s.pages), nil
}

func writeFile(dir, name string, text []byte) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a site is public
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// read reads the first pages and everything that pages link to.
func read(root fs.FS) (*site, error) {
	s := &site{root: root, pages: map[string]*page{}, files: map[string]bool{}}
	for _, pattern := range firstPages {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, fmt.Errorf("find the pages: %w", err)
		}
		for _, file := range found {
			if err := s.add(file); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// add adds a page and the targets of its links.
func (s *site) add(file string) error {
	if s.pages[file] != nil {
		return nil
	}
	text, err := s.source(file)
	if err != nil {
		return err
	}
	p := parse(file, text, s.resolve)
	s.pages[file] = p
	for _, l := range p.links {
		switch {
		case path.Ext(l.target) == ".md":
			if err := s.add(l.target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		case s.isFile(l.target):
			s.files[l.target] = true
		}
	}
	return nil
}

// resolve returns the page or file that a link to a path leads to: the page of a directory is its list.
func (s *site) resolve(target string) string {
	if info, err := fs.Stat(s.root, target); err == nil && info.IsDir() {
		return path.Join(target, "index.md")
	}
	return target
}

func (s *site) isFile(name string) bool {
	info, err := fs.Stat(s.root, name)
	return err == nil && info.Mode().IsRegular()
}

// source returns the Markdown of a page: of a file, or the list of a directory.
func (s *site) source(file string) ([]byte, error) {
	dir, list := strings.CutSuffix(file, "/index.md")
	if !list {
		return fs.ReadFile(s.root, file)
	}
	var below []string
	for _, pattern := range []string{dir + "/*.md", dir + "/*/README.md"} {
		found, err := fs.Glob(s.root, pattern)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		below = append(below, found...)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# %s\n\n", dir)
	for _, file := range below {
		page, err := fs.ReadFile(s.root, file)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
		fmt.Fprintf(&text, "- [%s](%s)\n", title, strings.TrimPrefix(file, dir+"/"))
	}
	return []byte(text.String()), nil
}

// check returns an error for each link whose page, file or heading does not exist.
func (s *site) check() error {
	var wrong []error
	for _, file := range slices.Sorted(maps.Keys(s.pages)) {
		for _, l := range s.pages[file].links {
			to := s.pages[l.target]
			switch {
			case to == nil && !s.files[l.target]:
				wrong = append(wrong, fmt.Errorf("%s links to %s, which does not exist", file, l.target))
			case l.heading != "" && (to == nil || !slices.Contains(to.headings, l.heading)):
				wrong = append(wrong, fmt.Errorf("%s links to %s#%s: there is no such heading", file, l.target, l.heading))
			}
		}
	}
	return errors.Join(wrong...)
}

// address returns the path of a page in the site. The README is its front page.
func address(file string) string {
	if file == "README.md" {
		return "index.html"
	}
	if name, page := strings.CutSuffix(file, ".md"); page {
		return name + ".html"
	}
	return file
}

// relative returns the link from a page to another file of the site.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.Dir(filepath.FromSlash(address(from))), filepath.FromSlash(address(to)))
	if err != nil {
		return address(to)
	}
	return filepath.ToSlash(rel)
}
