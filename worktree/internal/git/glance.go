package git

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// git ls-files compares every file with its time stamps in the index, in one thread, after a
// process was started. Glance does the same in process, with the same rules, and leaves what differs
// to git.

// A Glanced is what the time stamps show of a checkout.
type Glanced struct {
	Files []string // the paths of all entries of the index, in their order
	// Suspects are the paths, of files and directories, that may not be as in the index: no file
	// outside of them has changed, is new, or is gone.
	Suspects []string
	// Tree has exactly the entries of the index. It is empty if the index does not say which one it is.
	Tree string
	// Attributes means that there is a .gitattributes in one of the directories that were compared: those of the
	// index.
	Attributes bool
}

// Tracks reports whether the index has a path, or files below it.
func (g Glanced) Tracks(name string) bool {
	at, found := slices.BinarySearch(g.Files, name)
	if below, _ := slices.BinarySearch(g.Files, name+"/"); below < len(g.Files) && strings.HasPrefix(g.Files[below], name+"/") {
		return true
	}
	return found && at < len(g.Files)
}

// errNoGlance means that the index, or an entry, is one that only git can compare.
var errNoGlance = errors.New("git must compare the index with the files")

// Glance compares the checkout with the index by time stamps. It fails if the index has anything
// but files and links, such as entries that are not compared, conflicts and other repositories, or if
// there are pipes among the files, or more than 100 suspects.
// If files are plain, git stores them as they are unless a .gitattributes says otherwise: then those
// that were written in the same second as the index are read.
func (r Repo) Glance(plain bool) (Glanced, error) {
	return r.glance(&glance{}, plain)
}

// GlanceExactly is Glance for files that must be as git writes them. It fails also if a file has a second
// name, if a file or directory has permissions that a new one would not get, and if there are git
// directories below the top. mask has the permissions that new files do not get.
func (r Repo) GlanceExactly(plain bool, mask fs.FileMode) (Glanced, error) {
	return r.glance(&glance{exactly: true, mask: uint32(mask.Perm())}, plain)
}

func (r Repo) glance(g *glance, plain bool) (Glanced, error) {
	file, err := os.Open(r.Index)
	if err != nil {
		return Glanced{}, err
	}
	defer file.Close() //nolint:errcheck // it is only read
	info, err := file.Stat()
	if err != nil {
		return Glanced{}, err
	}
	raw := make([]byte, info.Size())
	if _, err := file.ReadAt(raw, 0); err != nil {
		return Glanced{}, err
	}
	g.top, g.written, g.dirs = r.WorkTree, info.ModTime().Unix(), map[string]*glanceDir{}
	g.converts.Store(!plain)
	if err := g.read(raw); err != nil {
		return Glanced{}, err
	}
	seen := Glanced{Files: g.files, Suspects: g.walk(), Tree: g.tree}
	seen.Attributes = g.attributes.Load()
	if g.odd.Load() || len(seen.Suspects) > maxSuspects {
		return Glanced{}, errNoGlance
	}
	return seen, nil
}

// glance is one comparison.
type glance struct {
	top     string
	written int64 // when the index was, in seconds
	files   []string
	dirs    map[string]*glanceDir
	tree    string
	exactly bool   // see GlanceExactly
	mask    uint32 // the same

	converts atomic.Bool // git may store other bytes than files have
	odd      atomic.Bool // there are pipes or the like

	attributes atomic.Bool // see Glanced
}

// A glanceDir is a directory in which the index has files.
type glanceDir struct {
	files map[string]statData
	dirs  map[string]bool
}

// statData is what an entry of an index knows of its file, and the object id.
type statData []byte

const (
	statSize     = 40
	indexHeader  = 12
	flagStages   = 3 << 12
	flagsUnusual = 1<<15 | 1<<14 // assumed unchanged; more flags follow, such as skip-worktree
	modeFileType = 0o170000
	// git gives the entry of a file that it has to read again the size 0.
	emptyBlob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
)

// read reads an index of version 2 of SHA-1 objects, which has 20 bytes for each.
func (g *glance) read(raw []byte) error {
	const oid = len(emptyBlob) / 2
	end := len(raw) - oid
	if end < indexHeader || string(raw[:4]) != "DIRC" || binary.BigEndian.Uint32(raw[4:]) != 2 {
		return errNoGlance
	}
	g.dir(".")
	at := indexHeader
	for range binary.BigEndian.Uint32(raw[8:]) {
		name := at + statSize + oid + 2
		if name >= end {
			return errNoGlance
		}
		length := bytes.IndexByte(raw[name:end], 0)
		flags := binary.BigEndian.Uint16(raw[name-2:])
		if length <= 0 || flags&(flagStages|flagsUnusual) != 0 || !g.add(string(raw[name:name+length]), raw[at:name-2]) {
			return errNoGlance
		}
		at += (statSize + oid + 2 + length + 8) / 8 * 8
	}
	for at < end { // extensions: git must know those with names in lower case
		if at+8 > end || raw[at] < 'A' || raw[at] > 'Z' {
			return errNoGlance
		}
		body := raw[at+8 : min(end, at+8+int(binary.BigEndian.Uint32(raw[at+4:])))]
		if string(raw[at:at+4]) == "TREE" {
			g.tree = topOf(body)
		}
		at += 8 + int(binary.BigEndian.Uint32(raw[at+4:]))
	}
	return nil
}

// topOf returns the tree of all entries from an index's own record of trees, which begins with an
// empty path, the numbers of entries and of trees, and the object id. It is empty if entries have
// changed since.
func topOf(body []byte) string {
	line, rest, found := bytes.Cut(bytes.TrimPrefix(body, []byte{0}), []byte("\n"))
	if !found || bytes.HasPrefix(line, []byte("-")) || len(rest) < len(emptyBlob)/2 {
		return ""
	}
	return hex.EncodeToString(rest[:len(emptyBlob)/2])
}

// add adds an entry. It reports false for one that is no file or link.
func (g *glance) add(name string, stat []byte) bool {
	switch statData(stat).mode() & modeFileType {
	case unix.S_IFREG, unix.S_IFLNK:
	default:
		return false
	}
	g.files = append(g.files, name)
	g.dir(path.Dir(name)).files[path.Base(name)] = stat
	return true
}

func (g *glance) dir(name string) *glanceDir {
	d := g.dirs[name]
	if d == nil {
		d = &glanceDir{files: map[string]statData{}, dirs: map[string]bool{}}
		g.dirs[name] = d
		if name != "." {
			g.dir(path.Dir(name)).dirs[path.Base(name)] = true
		}
	}
	return d
}

// walk compares the directories, those above first, and returns the suspects.
func (g *glance) walk() []string {
	var all seenDir
	for level := []string{"."}; len(level) > 0; {
		found := make([]seenDir, len(level))
		inParallel(len(level), func(i int) { found[i] = g.look(level[i]) })
		level = nil
		for _, f := range found {
			all.suspects, all.recent, level = append(all.suspects, f.suspects...), append(all.recent, f.recent...), append(level, f.dirs...)
		}
	}
	same := make([]bool, len(all.recent))
	if !g.converts.Load() && len(all.suspects) <= maxSuspects {
		inParallel(len(same), func(i int) { same[i] = g.has(all.recent[i]) })
	}
	for i, name := range all.recent {
		if !same[i] {
			all.suspects = append(all.suspects, name)
		}
	}
	slices.Sort(all.suspects)
	return all.suspects
}

// inParallel calls do for 0 to n-1 on all cores.
func inParallel(n int, do func(int)) {
	var workers sync.WaitGroup
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	workers.Wait()
}

// A seenDir is a directory that was compared.
type seenDir struct {
	suspects []string
	recent   []string // files with the time stamps of their entries, which do not prove anything yet
	dirs     []string // which are to be compared
}

// look compares the files of a directory.
func (g *glance) look(name string) (seen seenDir) {
	dir, err := os.OpenFile(filepath.Join(g.top, name), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return seenDir{suspects: []string{name}}
	}
	defer dir.Close() //nolint:errcheck // it is only read
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return seenDir{suspects: []string{name}}
	}
	has, fd := g.dirs[name], int(dir.Fd())
	if g.exactly && !g.isNewDir(fd) {
		g.odd.Store(true)
	}
	there := map[string]bool{}
	for _, entry := range entries {
		base := entry.Name()
		inside := path.Join(name, base)
		stat, isFile := has.files[base]
		there[base] = true
		if base == ".gitattributes" {
			g.converts.Store(true)
			g.attributes.Store(true)
		}
		if entry.Type()&fs.ModeType&^(fs.ModeDir|fs.ModeSymlink) != 0 {
			g.odd.Store(true)
		}
		switch {
		case base == ".git": // git never lists it
			if g.exactly && name != "." {
				g.odd.Store(true)
			}
		case isFile && g.unchanged(stat, fd, base):
			if stat.isRecent(g.written) {
				seen.recent = append(seen.recent, inside)
			}
		case has.dirs[base] && entry.Type() == fs.ModeDir:
			seen.dirs = append(seen.dirs, inside)
		default:
			seen.suspects = append(seen.suspects, inside)
		}
	}
	seen.suspects = append(append(seen.suspects, missing(name, has.files, there)...), missing(name, has.dirs, there)...)
	return seen
}

// missing returns the paths of names that are not in a directory.
func missing[T any](dir string, names map[string]T, there map[string]bool) (paths []string) {
	for base := range names {
		if !there[base] {
			paths = append(paths, path.Join(dir, base))
		}
	}
	return paths
}

const (
	// maxSuspects is how many paths git compares alone: it looks for each in the whole index.
	maxSuspects = 100
	// maxRecentSize limits the files, in bytes, that are read because they were written in the same
	// second as the index.
	maxRecentSize = 256 << 10
)

// has reports whether a file has the content of its entry.
func (g *glance) has(name string) bool {
	stat := g.dirs[path.Dir(name)].files[path.Base(name)]
	if stat.word(9) > maxRecentSize || stat.mode()&modeFileType != unix.S_IFREG {
		return false
	}
	file, err := os.OpenFile(filepath.Join(g.top, name), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // it is only read
	content, err := io.ReadAll(io.LimitReader(file, maxRecentSize+1))
	oid, _ := objectID("blob", content)
	return err == nil && oid == stat.oid()
}

// unchanged reports whether the file in an open directory has the time stamps of an entry.
func (g *glance) unchanged(s statData, dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	if g.exactly && !g.isNew(&st) {
		g.odd.Store(true)
	}
	return s.is(&st)
}

const modeSpecial = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// isNew reports whether a file has one name, and the permissions that git would give it.
func (g *glance) isNew(st *unix.Stat_t) bool {
	mode := uint32(st.Mode) //nolint:unconvert // of another type on macOS
	if mode&modeFileType != unix.S_IFREG {
		return true
	}
	perm := mode & (0o777 | modeSpecial)
	return st.Nlink == 1 && (perm == 0o666&^g.mask || perm == 0o777&^g.mask)
}

// isNewDir reports whether an open directory has the permissions of a new one.
func (g *glance) isNewDir(fd int) bool {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	mode := uint32(st.Mode) //nolint:unconvert // of another type on macOS
	return err == nil && mode&(0o777|modeSpecial) == 0o777&^g.mask
}

// is reports whether a file has the time stamps of an entry.
func (s statData) is(st *unix.Stat_t) bool {
	mode := s.mode()
	is := uint32(st.Mode) //nolint:unconvert // of another type on macOS
	if is&modeFileType != mode&modeFileType || mode&modeFileType == unix.S_IFREG && (is^mode)&0o100 != 0 {
		return false
	}
	return s.word(0) == uint32(st.Ctim.Sec) && s.word(1) == uint32(st.Ctim.Nsec) &&
		s.word(2) == uint32(st.Mtim.Sec) && s.word(3) == uint32(st.Mtim.Nsec) &&
		s.word(5) == uint32(st.Ino) && s.word(7) == st.Uid && s.word(8) == st.Gid && s.word(9) == uint32(st.Size)
}

// isRecent reports whether the file may have been written again after the index was, in the same
// second.
func (s statData) isRecent(written int64) bool {
	return int64(s.word(2)) >= written || s.word(9) == 0 && s.oid() != emptyBlob
}

// word returns one of: change time in seconds, and nanoseconds, 2 the time of modification, and
// nanoseconds, 4 the device, 5 the inode, 6 the mode, 7 user, 8 group, 9 the size.
func (s statData) word(n int) uint32 { return binary.BigEndian.Uint32(s[4*n:]) }

func (s statData) mode() uint32 { return s.word(6) }

func (s statData) oid() string { return hex.EncodeToString(s[statSize:]) }
