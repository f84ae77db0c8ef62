package protected

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/object"
)

// Limits for reading, in bytes.
const (
	maxPacked = 256 << 20
	maxRef    = 4 << 10
)

// packTries limits how often the refs are read again because git packed them during the reading.
const packTries = 10

// refs reads packed and loose refs. A loose ref overrides a packed one. git first writes packed-refs and
// then removes the loose files. If packed-refs changed during the reading, everything is read again.
func (r *reader) refs() {
	for range packTries {
		r.packed()
		r.state.Refs = make(map[string]string, len(r.state.cache.packed)+len(r.last.cache.loose))
		for name, to := range r.state.cache.packed {
			r.state.Refs[name] = to
		}
		r.loose(head)
		r.below("refs")
		if r.packedStamp() == r.state.cache.packedStamp {
			return
		}
	}
}

// packedStamp returns the stamp of packed-refs, or the zero stamp if it does not exist.
func (r *reader) packedStamp() stamp {
	info, err := os.Lstat(filepath.Join(r.GitDir, "packed-refs"))
	if err != nil {
		return stamp{}
	}
	s := stampOf(info)
	s.fresh = false
	return s
}

// packed reads packed-refs, unless the file is unchanged since the earlier state.
func (r *reader) packed() {
	path := filepath.Join(r.GitDir, "packed-refs")
	now := r.packedStamp()
	last := r.last.cache
	r.state.cache.packedStamp, r.state.cache.packed = now, map[string]string{}
	if now == (stamp{}) {
		return
	}
	if last.packed != nil && now == last.packedStamp && !last.packedFresh {
		r.state.cache.packed = last.packed
		return
	}
	r.state.cache.packedFresh = isFresh(now)
	raw, err := file.Read(path, maxPacked)
	if err != nil { // its refs count as deleted
		r.state.Files[path] = File{Kind: Config, Name: "packed-refs", In: InGitDir, Value: Value{Text: oddPrefix + "unreadable"}}
		return
	}
	r.state.cache.packed = object.ParsePackedRefs(string(raw))
}

// below reads the loose refs in a directory, relative to the git directory.
func (r *reader) below(dir string) {
	entries, err := os.ReadDir(filepath.Join(r.GitDir, dir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return // git may have removed an empty directory
	}
	if err != nil {
		r.state.Refs[dir] = oddPrefix + "unreadable directory"
		return
	}
	for _, entry := range entries {
		name := dir + "/" + entry.Name()
		switch {
		case entry.IsDir():
			r.below(name)
		case !strings.HasSuffix(name, ".lock"): // skip files that git is writing
			r.loose(name)
		}
	}
}

// loose reads a loose ref.
func (r *reader) loose(name string) {
	path := filepath.Join(r.GitDir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return // it was just packed or removed
	}
	now := stampOf(info)
	r.state.cache.loose[name] = now
	if last, known := r.last.cache.loose[name]; known && now.is(last) {
		r.state.Refs[name] = r.last.Refs[name]
		return
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path) // an empty target is fine
		r.state.Refs[name] = linkPrefix + target
	case !info.Mode().IsRegular():
		r.state.Refs[name] = oddPrefix + info.Mode().Type().String()
	default:
		raw, err := file.Read(path, maxRef)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		r.state.Refs[name] = refValue(raw, err)
	}
}

// refValue returns the value of a loose ref.
func refValue(raw []byte, err error) string {
	text := strings.TrimSpace(string(raw))
	target, symbolic := strings.CutPrefix(text, "ref:")
	switch {
	case err != nil:
		return oddPrefix + "unreadable"
	case symbolic:
		return symbolicPrefix + strings.TrimSpace(target)
	case object.IsID(text):
		return text
	}
	return fmt.Sprintf("%sbroken %.60q", oddPrefix, text)
}
