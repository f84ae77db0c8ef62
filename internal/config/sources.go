package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/text/shellword"
)

const (
	fileName  = "config.yaml"
	maxFile   = 1 << 20
	maxRounds = 1000
)

// Sources locates the settings files.
type Sources struct {
	Root      string               // main checkout of the repository; empty for the user's file only
	Untrusted trust.UntrustedPaths // paths that are writable by authors of the repository
	Getenv    func(string) string  // looks up XDG_CONFIG_HOME and HOME
	Dir       string               // the user's directory, to which the name of the project's file is relative; defaults to Root
}

// Load reads the settings. The error is an Errors if a file is invalid.
func (s Sources) Load() (Config, error) {
	c, _, err := s.load()
	return c, err
}

// load reads the settings. It also returns the location of each key in the files, as FILE:LINE.
func (s Sources) load() (Config, map[string]string, error) {
	c, from := Default(), map[string]string{}
	own := map[string]bool{} // keys of the user's own file
	var all Errors
	for _, f := range s.files() {
		all = append(all, f.misnamed()...)
		data, err := f.read()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return Config{}, nil, err
		}
		before := c
		lines, err := c.apply(f, data)
		if f.theirs {
			c.keepLimits(before, own)
		}
		if found := Errors(nil); errors.As(err, &found) {
			all = append(all, found...)
		}
		for _, k := range keys() {
			if line, ok := lines[k.name]; ok && (!f.theirs || !c.keeps(k, before, own)) {
				from[k.name] = fmt.Sprintf("%s:%d", f.label, line)
				own[k.name] = !f.theirs
			}
		}
	}
	if len(all) > 0 {
		return Config{}, nil, all
	}
	return c, from, nil
}

// file is a settings file, which need not exist.
type file struct {
	dir, name string
	label     string // name in errors
	inside    bool   // a link must not lead outside of dir
	theirs    bool   // authors of the repository control the content
}

// files returns the files in ascending precedence.
func (s Sources) files() []file {
	var all []file
	dir := s.Getenv("XDG_CONFIG_HOME")
	if home := s.Getenv("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".config")
	}
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "coven")
		all = append(all, file{dir: dir, name: fileName, label: filepath.Join(dir, fileName), theirs: s.Untrusted.Contains(filepath.Join(dir, fileName))})
	}
	if s.Root != "" {
		project := path.Join(".coven", fileName)
		all = append(all, file{dir: s.Root, name: project, label: s.fromHere(project), inside: true, theirs: true})
	}
	return all
}

// fromHere returns the path of a project file relative to the user's directory.
func (s Sources) fromHere(name string) string {
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil || s.Dir == "" {
		return name
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return name
	}
	path, err := filepath.Rel(dir, filepath.Join(root, name))
	if err != nil {
		return name
	}
	return path
}

// misnamed reports a config.yml, which would otherwise be ignored silently.
func (f file) misnamed() Errors {
	yml := func(name string) string { return strings.TrimSuffix(name, ".yaml") + ".yml" }
	if _, err := os.Lstat(filepath.Join(f.dir, yml(f.name))); err != nil {
		return nil //nolint:nilerr // there is no such file
	}
	return Errors{{File: yml(f.label), Line: 1, Column: 1, Msg: "coven does not read this file", Hint: "rename it to " + fileName}}
}

func (f file) path() string { return filepath.Join(f.dir, f.name) }

// read returns the content of the file. If the file does not exist, the error is fs.ErrNotExist.
func (f file) read() ([]byte, error) {
	if f.inside {
		data, err := regularfile.ReadIn(f.dir, f.name, maxFile)
		return data, f.readError(err)
	}
	data, err := regularfile.Read(f.path(), maxFile)
	return data, f.readError(err)
}

// errLeadsOut means that the project's file is a link to a file elsewhere.
var errLeadsOut = errors.New("it is a symbolic link that points outside the repository")

// readError converts an error to the usage error for an unreadable file.
func (f file) readError(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if f.inside && f.leadsOut() {
		err = errLeadsOut
	}
	return exit.Usagef("ls -ld "+shellword.Word(f.label), "read %s: %w", f.label, regularfile.Cause(err))
}

// leadsOut reports whether the file is a link to a target outside of its directory.
func (f file) leadsOut() bool {
	dir, err := filepath.EvalSymlinks(f.dir)
	if err != nil {
		return false
	}
	target, err := filepath.EvalSymlinks(f.path())
	if err != nil { // a dangling link
		link, err := os.Readlink(f.path())
		if err != nil {
			return false
		}
		if target = link; !filepath.IsAbs(link) {
			target = filepath.Join(dir, filepath.Dir(f.name), link)
		}
	}
	inside, err := filepath.Rel(dir, target)
	return err != nil || !filepath.IsLocal(inside)
}
