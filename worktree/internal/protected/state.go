package protected

import (
	"io/fs"
	"syscall"
	"time"
)

// A State is the result of Read. It can be stored as JSON.
type State struct {
	Refs  map[string]string `json:"refs"`  // "HEAD" and full names: an object id, or "ref: NAME"
	Files map[string]File   `json:"files"` // by path

	cache cache
}

// A File is a watched file.
type File struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"`
	In   Place  `json:"in,omitempty"`
	Value
}

// A Source specifies the state to read.
type Source struct {
	GitDir string   // the common git directory
	Root   string   // top of the main checkout
	Hooks  []string // directories of hooks
	Skip   []string // directories whose files belong to tasks
	// Refs lists the refs and HEAD. It is nil if they are files.
	Refs func() (map[string]string, error)
}

// Read reads the state of a repository. earlier is an earlier state, or zero. Files that have not changed
// since are not read again.
func Read(from Source, earlier State) (State, error) {
	r := &reader{Source: from, last: earlier, state: State{Files: map[string]File{}}}
	r.state.cache.files = map[string]stamp{}
	r.state.cache.loose = map[string]stamp{}
	r.config()
	for _, dir := range from.Hooks {
		r.hooks(dir, 0)
	}
	if from.Refs != nil {
		var err error
		r.state.Refs, err = from.Refs()
		return r.state, err
	}
	r.refs()
	return r.state, nil
}

type reader struct {
	Source
	last  State
	state State
}

// cache contains the stamps of files, and the packed refs.
type cache struct {
	files, loose map[string]stamp
	packedStamp  stamp // never fresh
	packedFresh  bool
	packed       map[string]string
}

// A stamp identifies the content of a file, unless a program can set the change time.
type stamp struct {
	dev, ino, size int64
	mtime, ctime   int64 // nanoseconds
	mode           fs.FileMode
	fresh          bool // written so recently that a later write may result in the same times
}

// tick is longer than the timestamp resolution of file systems.
const tick = 100 * time.Millisecond

// stampOf returns the stamp of a file. If that is not available, it returns the zero stamp, which never
// compares equal.
func stampOf(info fs.FileInfo) stamp {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	s := stamp{
		dev: int64(sys.Dev), ino: int64(sys.Ino), size: info.Size(), mode: info.Mode(), //nolint:gosec // the types differ between systems
		mtime: info.ModTime().UnixNano(), ctime: changeTime(sys),
	}
	s.fresh = isFresh(s)
	return s
}

func isFresh(s stamp) bool { return time.Since(time.Unix(0, s.ctime)) < tick }

// is reports whether two stamps identify the same content. earlier is the older stamp.
func (s stamp) is(earlier stamp) bool {
	if earlier.fresh || s == (stamp{}) {
		return false
	}
	s.fresh = false
	return s == earlier // earlier is not fresh either
}
