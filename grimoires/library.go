package grimoires

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/tmpl"
)

//go:embed *.yaml prompts/*.md
var shipped embed.FS

// BuiltIn is the Source of grimoires and prompts that coven ships.
const BuiltIn = "built in"

// maxFile limits the size of a grimoire or prompt.
const maxFile = 1 << 20

// UnknownError means that a grimoire or prompt does not exist.
type UnknownError struct {
	Kind string // grimoire or prompt
	Name string
	Hint string
}

// Error returns `unknown grimoire "x" (did you mean "y"?)`.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("unknown %s %q", e.Kind, e.Name)
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// IsInvalid reports whether an error means that a grimoire, prompt or plan is invalid or unknown, so that a
// person has to correct it.
func IsInvalid(err error) bool {
	return errors.As(err, new(*UnknownError)) || errors.As(err, new(*tmpl.Error)) ||
		errors.As(err, new(yamldoc.Errors)) || errors.As(err, new(yamldoc.Error))
}

// Prompt is an unrendered prompt.
type Prompt struct {
	Name   string `yaml:"-"`
	Source string `yaml:"source"` // its file, or BuiltIn
	Text   string `yaml:"text"`
}

// file returns the name of the prompt for errors.
func (p Prompt) file() string {
	if p.Source == BuiltIn {
		return "prompts/" + p.Name + ".md (built in)"
	}
	return p.Source
}

// Library finds grimoires and prompts by the names of their files. Those of the project
// (.coven/grimoires/NAME.yaml or .yml, .coven/prompts/NAME.md or .coven/spells/NAME.md) take precedence
// over those of the user, which take precedence over those that coven ships.
type Library struct {
	sources []source // highest precedence first
}

// NewLibrary returns the library of a repository. root is its main checkout, and userDir is the user's
// directory of coven settings. Either may be empty.
func NewLibrary(root, userDir string) *Library {
	l := &Library{}
	if root != "" {
		l.sources = append(l.sources, projectSource(root))
	}
	if userDir != "" {
		l.sources = append(l.sources, source{fsys: os.DirFS(userDir), label: func(name string) string { return filepath.Join(userDir, name) }})
	}
	return &Library{append(l.sources, source{fsys: shipped, flat: true, label: func(string) string { return BuiltIn }})}
}

// Over returns a library in which the files of dir take precedence over those of l. dir has the layout of .coven. Its
// files count as those of the project.
func (l *Library) Over(dir string) *Library {
	over := source{fsys: os.DirFS(dir), label: func(name string) string { return path.Join(".coven", name) }}
	return &Library{append([]source{over}, l.sources...)}
}

// shipped returns the library of the grimoires and prompts that coven ships.
func (l *Library) shipped() *Library { return &Library{l.sources[len(l.sources)-1:]} }

// source is a place that contains grimoires and prompts.
type source struct {
	fsys  fs.FS
	root  string // if set, it is opened as a root, so that links cannot lead out of it
	flat  bool   // grimoires are at the top
	label func(file string) string
}

// projectSource returns the source for .coven. It never follows links out of the repository.
func projectSource(root string) source {
	return source{root: root, label: func(name string) string { return path.Join(".coven", name) }}
}

// open returns the files of the source. closeFS closes it.
func (s source) open() (fsys fs.FS, closeFS func(), err error) {
	if s.root == "" {
		return s.fsys, func() {}, nil
	}
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, nil, fmt.Errorf("open the repository: %w", err)
	}
	return regularfile.FS(root, ".coven"), func() { _ = root.Close() }, nil
}

// files returns the possible file names of a grimoire or prompt.
func (s source) files(kind, name string) []string {
	switch {
	case kind == "test" && s.flat:
		return []string{name + ".test.yaml"}
	case kind == "test":
		return []string{"grimoires/" + name + ".test.yaml"}
	case kind == "prompt":
		return []string{"prompts/" + name + ".md", "spells/" + name + ".md"}
	case s.flat:
		return []string{name + ".yaml"}
	}
	return []string{"grimoires/" + name + ".yaml", "grimoires/" + name + ".yml"}
}

// read returns the text and the label of the file with this name. label is empty if there is none. It is an
// error if there are two.
func (s source) read(kind, name string) (text []byte, label string, err error) {
	fsys, done, err := s.open()
	if err != nil {
		return nil, "", err
	}
	defer done()
	for _, file := range s.files(kind, name) {
		data, err := regularfile.ReadFrom(fsys, file, maxFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, "", fmt.Errorf("read the %s %s: %w", kind, s.label(file), err)
		case label != "":
			return nil, "", yamldoc.Errors{{File: s.label(file), Line: 1, Column: 1, Msg: label + " has the same name", Hint: "keep one"}}
		default:
			text, label = data, s.label(file)
		}
	}
	return text, label, nil
}

// find returns the first file with this name.
func (l *Library) find(kind, name string) (text []byte, label string, err error) {
	if nameRE.MatchString(name) {
		for _, s := range l.sources {
			text, label, err := s.read(kind, name)
			if err != nil || label != "" {
				return text, label, err
			}
		}
	}
	known, err := l.list(kind)
	if err != nil {
		return nil, "", err
	}
	hint := legacyNames()[name]
	if hint == "" || kind != "grimoire" {
		hint = didyoumean.Hint(name, known)
	}
	hint = cmp.Or(hint, "known: "+strings.Join(known, ", "))
	return nil, "", &UnknownError{Kind: kind, Name: name, Hint: hint}
}

// Names returns the names of all grimoires, sorted.
func (l *Library) Names() ([]string, error) { return l.list("grimoire") }

// PromptNames returns the names of all prompts, sorted.
func (l *Library) PromptNames() ([]string, error) { return l.list("prompt") }

func (l *Library) list(kind string) ([]string, error) {
	var names []string
	for _, s := range l.sources {
		found, err := s.list(kind)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (s source) list(kind string) ([]string, error) {
	fsys, done, err := s.open()
	if err != nil {
		return nil, err
	}
	defer done()
	var names []string
	for _, pattern := range s.files(kind, "*") {
		entries, err := fs.ReadDir(fsys, path.Dir(pattern))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), path.Ext(pattern))
			if ok && !e.IsDir() && nameRE.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// Prompt returns a prompt. The error is an *UnknownError if it does not exist.
func (l *Library) Prompt(name string) (Prompt, error) {
	data, label, err := l.find("prompt", name)
	if err != nil {
		return Prompt{}, err
	}
	if !utf8.Valid(data) {
		return Prompt{}, &tmpl.Error{Name: label, Line: 1, Msg: "the prompt is not UTF-8 text"}
	}
	text := lf(strings.TrimPrefix(string(data), "\ufeff"))
	return Prompt{Name: name, Text: text, Source: label}, nil
}

// Tests returns the tests of a grimoire, from NAME.test.yaml next to its file, and their label. The label
// is empty if there are none.
func (l *Library) Tests(name string) (text []byte, label string, err error) {
	for _, s := range l.sources {
		_, found, err := s.read("grimoire", name)
		if err != nil || found == "" {
			continue
		}
		text, label, err = s.read("test", name)
		if label == BuiltIn {
			label = name + ".test.yaml (built in)"
		}
		return text, label, err
	}
	return nil, "", nil
}
