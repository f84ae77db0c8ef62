package search

import (
	"context"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// refresh updates an index to the current state of the files.
func (x *Index) refresh(ctx context.Context, s *store) error {
	at, err := os.Open(x.Root)
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // read only
	u := &update{Index: x, at: at, old: s.manifest, next: &manifest{last: s.manifest.last, gone: s.manifest.gone, files: map[string]entry{}}}
	relisted, err := u.list(ctx)
	if err != nil {
		return err
	}
	if !u.compare() && !relisted {
		return nil
	}
	c, err := u.read(ctx)
	if err != nil {
		return err
	}
	return s.update(u.next, c)
}

// update is one update of an index.
type update struct {
	*Index
	at        *os.File
	old, next *manifest
	paths     []string // listed files
	stale     []string // files to read
}

// list determines the current files. It reuses the previous listing if neither the directories
// nor the files that affect the listing have changed.
func (u *update) list(ctx context.Context) (changed bool, err error) {
	if len(u.old.directories) > 0 && u.same(u.old.directories) && u.same(u.old.depends) {
		u.next.directories, u.next.depends = u.old.directories, u.old.depends
		u.paths = slices.Collect(maps.Keys(u.old.files))
		return false, nil
	}
	start := u.Now()
	l, err := u.List(ctx)
	if err != nil {
		return false, err
	}
	u.paths = unique(l.Files)
	u.next.depends, u.next.directories = map[string]stamp{}, map[string]stamp{}
	directories, rules := u.walk(l)
	for _, dir := range directories {
		u.next.directories[dir] = stampOf(int(u.at.Fd()), dir).at(start)
	}
	for _, file := range append(rules, l.Depends...) {
		u.next.depends[file] = stampOf(int(u.at.Fd()), file).at(start)
	}
	return true, nil
}

// same reports whether files and directories still have their stored stamps.
func (u *update) same(stamps map[string]stamp) bool {
	paths := slices.Collect(maps.Keys(stamps))
	for i, now := range stampAll(u.at, paths) {
		if now != stamps[paths[i]] {
			return false
		}
	}
	return true
}

// walk returns the directories in which a listed file may appear, and their files with
// ignore rules for git.
func (u *update) walk(l Listing) (open, rules []string) {
	closed := map[string]bool{}
	for _, dir := range slices.Concat(l.Ignored, l.Files) { // a listed directory is a nested repository
		closed[strings.TrimSuffix(dir, "/")] = true
	}
	open = []string{"."}
	for i := 0; i < len(open); i++ {
		entries, _ := os.ReadDir(path.Join(u.Root, open[i])) // a deleted directory has another stamp
		for _, e := range entries {
			name := path.Join(open[i], e.Name())
			switch {
			case e.Name() == ".gitignore":
				rules = append(rules, name)
			case e.IsDir() && e.Name() != ".git" && !closed[name]:
				open = append(open, name)
			}
		}
	}
	return open, rules
}

// compare finds the changed files, and reports whether there are any changes.
func (u *update) compare() bool {
	for i, now := range stampAll(u.at, u.paths) {
		path := u.paths[i]
		known, ok := u.old.files[path]
		switch {
		case !now.regular():
		case ok && known.stamp == now:
			u.next.files[path] = known
		default:
			u.stale = append(u.stale, path)
			known.stamp = now
			u.next.files[path] = known
		}
	}
	for path, e := range u.old.files {
		if _, there := u.next.files[path]; !there && e.document != 0 {
			u.next.gone++
		}
	}
	return len(u.stale) > 0 || len(u.next.files) != len(u.old.files)
}

// A text is the result of reading a file.
type text struct {
	path  string
	entry entry
	ok    bool // whether its text is searched
	same  bool // only its stamp has changed
	terms document
}

// read reads the changed files in parallel, completes the manifest, and returns the new lists.
func (u *update) read(ctx context.Context) (change, error) {
	c := change{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	texts, err := u.texts(ctx)
	if err != nil {
		return nil, err
	}
	for t := range texts {
		if !t.same {
			if t.entry.document != 0 {
				u.next.gone++
			}
			t.entry.document, t.entry.length = 0, t.terms.length
			if t.ok {
				u.next.last++
				t.entry.document = u.next.last
				c.add(t.entry.document, t.terms)
			}
		}
		u.next.files[t.path] = t.entry
	}
	return c, context.Cause(ctx)
}

// texts reads the stale files. The channel is closed at the end, or soon after ctx ends.
func (u *update) texts(ctx context.Context) (<-chan text, error) {
	root, err := os.OpenRoot(u.Root)
	if err != nil {
		return nil, err
	}
	texts, paths := make(chan text, 16), make(chan string)
	var workers sync.WaitGroup
	workers.Go(func() {
		defer close(paths)
		for _, path := range u.stale {
			select {
			case paths <- path:
			case <-ctx.Done():
				return
			}
		}
	})
	known := maps.Clone(u.next.files) // a copy, because read changes the map
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for path := range paths {
				select {
				case texts <- u.readOne(root, path, known[path]):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(texts)
		_ = root.Close() // read only
	}()
	return texts, nil
}

func (u *update) readOne(root *os.Root, path string, e entry) text {
	now := u.Now()
	data, ok := readText(root, path)
	t := text{path: path, entry: e, ok: ok}
	t.entry.hash, t.entry.stamp = hashOf(data), e.stamp.at(now)
	t.same = ok == (e.document != 0) && (!ok || t.entry.hash == e.hash)
	if ok && !t.same {
		t.terms.counts = map[string]uint64{}
		t.terms.add(path, pathWeight)
		t.terms.add(headings(path, data), headingWeight)
		t.terms.add(string(data), 1)
	}
	return t
}

// headings returns the text of a Markdown file's headings.
func headings(path string, data []byte) string {
	if !isMarkdown(path) {
		return ""
	}
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.HasPrefix(strings.TrimLeft(line, " "), "```"):
			fenced = !fenced
		case !fenced && strings.HasPrefix(line, "#"):
			out.WriteString(line)
		}
	}
	return out.String()
}

func isMarkdown(name string) bool {
	return slices.Contains([]string{".md", ".markdown", ".mdx"}, strings.ToLower(path.Ext(name)))
}
