package protected

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/file"
)

// Prefixes of Value.Text.
const (
	sumPrefix  = "sha256:"
	linkPrefix = "link: "
	oddPrefix  = "not a readable file: "
)

// Limits for reading.
const (
	maxContent  = 1 << 20 // bytes of a file; of a larger one, size and times are compared
	maxIncludes = 50      // included configuration files
	maxDepth    = 4       // levels of directories below the hooks directory
	maxHooks    = 500     // files
)

// config reads the files that configure git.
func (r *reader) config() {
	for _, name := range []string{"config", "config.worktree", "objects/info/alternates", "objects/info/http-alternates"} {
		r.file(Config, filepath.Join(r.GitDir, name))
	}
	entries, _ := os.ReadDir(filepath.Join(r.GitDir, "info")) // it may not exist
	for _, entry := range entries {
		if name := entry.Name(); !isInfoOfRefs(name) && !strings.HasSuffix(name, ".lock") {
			r.file(Config, filepath.Join(r.GitDir, "info", name))
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		r.includes(filepath.Join(r.GitDir, name))
	}
}

// isInfoOfRefs reports whether a name in info is that of the list of refs, or of its temporary file refs_XXXXXX, which git
// gc, repack and fetch write. git never reads the latter.
func isInfoOfRefs(name string) bool {
	suffix, temporary := strings.CutPrefix(name, "refs_")
	const random = 6 // letters and digits
	return name == "refs" || temporary && len(suffix) == random
}

// includes reads the files that a configuration file includes.
func (r *reader) includes(path string) {
	for _, included := range includesOf(r.state.Files[path].Content, path) {
		if _, known := r.state.Files[included]; known || len(r.state.Files) > maxIncludes {
			continue
		}
		r.file(Config, included)
		r.includes(included)
	}
}

// includesOf returns the paths that a configuration file includes. It parses the syntax that git writes. A
// file whose user wrote it in another syntax may have includes that are not watched.
func includesOf(settings []byte, path string) []string {
	var found []string
	inside := false
	for line := range strings.Lines(string(settings)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			end := max(strings.LastIndexByte(line, ']'), 0)
			section := strings.ToLower(line[1:max(end, 1)])
			inside = section == "include" || strings.HasPrefix(section, "includeif ")
			line = strings.TrimSpace(line[min(end+1, len(line)):])
		}
		key, value, assigned := strings.Cut(line, "=")
		if !inside || !assigned || !strings.EqualFold(strings.TrimSpace(key), "path") {
			continue
		}
		if value = unquoted(value); value != "" {
			found = append(found, absolute(value, filepath.Dir(path)))
		}
	}
	return found
}

// unquoted removes quotes, escapes and a trailing comment from a value.
func unquoted(value string) string {
	var out strings.Builder
	quoted := false
	text := strings.TrimSpace(value)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			out.WriteByte(text[i])
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(out.String())
		default:
			out.WriteByte(c)
		}
	}
	return strings.TrimSpace(out.String())
}

func absolute(path, dir string) string {
	if rest, found := strings.CutPrefix(path, "~/"); found {
		path = filepath.Join(os.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}

// hooks reads the files of a hooks directory. It skips samples, which git does not run.
func (r *reader) hooks(dir string, depth int) {
	if depth >= maxDepth || r.skipped(dir) {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.file(Hook, dir)
		return
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			r.hooks(path, depth+1)
		case !strings.HasSuffix(path, ".sample") && len(r.state.Files) < maxHooks:
			r.file(Hook, path)
		}
	}
}

func (r *reader) skipped(path string) bool {
	return slices.ContainsFunc(r.Skip, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// file reads a file, if it exists.
func (r *reader) file(kind Kind, path string) {
	if _, known := r.state.Files[path]; known || r.skipped(path) {
		return
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	f := File{Kind: kind}
	f.In, f.Name = r.place(path)
	if err != nil {
		f.Value = Value{Text: oddPrefix + "unreadable"}
		r.state.Files[path] = f
		return
	}
	now := stampOf(info)
	r.state.cache.files[path] = now
	if last, known := r.last.cache.files[path]; known && now.is(last) && now.mode.IsRegular() {
		f.Value = r.last.Files[path].Value
	} else {
		f.Value = valueOf(path, info, now)
	}
	r.state.Files[path] = f
}

// place returns the name of a path in a Change.
func (r *reader) place(path string) (Place, string) {
	if name, found := strings.CutPrefix(path, r.GitDir+"/"); found {
		return InGitDir, name
	}
	if name, found := strings.CutPrefix(path, r.Root+"/"); found && r.Root != "" {
		return InCheckout, name
	}
	return Elsewhere, path
}

// ValueOf returns the current value of a Config or Hook file.
func ValueOf(path string) Value {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Value{}
	}
	if err != nil {
		return Value{Text: oddPrefix + "unreadable"}
	}
	return valueOf(path, info, stampOf(info))
}

// valueOf returns the value of a file. The value of a link also contains the checksum of its target's
// content, because git follows the link.
func valueOf(path string, info fs.FileInfo, now stamp) Value {
	v := Value{Mode: info.Mode().String()}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, _ := os.Readlink(path) // an empty target is fine
		v.Text = linkPrefix + target
		if raw, err := regularfile.Read(path, maxContent); err == nil {
			v.Text += " (" + sum(raw) + ")"
		}
		v.Content = []byte(target)
	case !info.Mode().IsRegular():
		v.Text = oddPrefix + info.Mode().Type().String()
	case info.Size() > maxContent:
		v.Text = fmt.Sprintf("%s%d bytes, written %d, changed %d, inode %d", oddPrefix, now.size, now.mtime, now.ctime, now.ino)
	default:
		raw, err := file.Read(path, maxContent)
		if err != nil {
			v.Text = fmt.Sprintf("%sunreadable, changed %d", oddPrefix, now.ctime)
			return v
		}
		v.Text, v.Content = sum(raw), raw
		if raw == nil {
			v.Content = []byte{}
		}
	}
	return v
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return sumPrefix + hex.EncodeToString(digest[:])
}
