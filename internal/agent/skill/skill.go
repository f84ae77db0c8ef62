// Package skill reads skills: instructions for a kind of work, which an agent reads when it has such work.
//
// A skill is a Markdown file with frontmatter, NAME.md, or the file SKILL.md in a folder NAME. The frontmatter has a
// name, a description, and mcp, a list of MCP servers that the skill needs. Other keys are ignored: other programs
// use this format, too. A Markdown file without frontmatter is not a skill.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/dashed"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

// MaxFile limits the size of a file, in bytes.
const MaxFile = 256 << 10

// maxDescription limits a description, in characters, because it is sent to all agents with the skill.
const maxDescription = 1024

// maxName limits a name, because it is part of the name of a tool.
const maxName = 41

// folderFile is the name of a skill's file in a folder.
const folderFile = "SKILL.md"

// Skill is a skill.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	MCP         []string `json:"mcp"`             // servers that only agents with the skill may use
	Path        string   `json:"path"`            // of its file, for display
	Hides       []string `json:"hides,omitempty"` // paths of other skills with its name
	Body        string   `json:"-"`
}

// Name returns the name of a skill in the form that agents use: other programs accept any text.
func Name(text string) string { return dashed.Name(text, maxName) }

// Place is a directory with skills.
type Place struct {
	Root string // of the repository; empty if the directory is the user's
	Dir  string // relative to Root
	Show string // prefix of the displayed paths
}

// Problem is an error in a file, or the reason that a part of it is not used.
type Problem struct {
	Path string
	Err  error
}

// Error returns "path: error".
func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// NextCommand returns the command that lists the skills and the errors in their files.
func (p Problem) NextCommand() string { return "coven skills list" }

// Load reads the skills of places, sorted by name. If two skills have the same name, the later place wins, and in a
// place the first one. A missing directory is empty. Links are followed as long as they stay in the repository.
func Load(places ...Place) ([]Skill, []Problem) {
	l := loader{skills: map[string]Skill{}}
	for _, p := range places {
		found, err := l.place(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.problem(p.Show, regularfile.Cause(err))
		}
		for _, s := range slices.Backward(found) {
			if hidden, ok := l.skills[s.Name]; ok {
				s.Hides = append([]string{hidden.Path}, hidden.Hides...)
			}
			l.skills[s.Name] = s
		}
	}
	all := slices.SortedFunc(maps.Values(l.skills), func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return all, l.problems
}

type loader struct {
	skills   map[string]Skill // by name
	problems []Problem
}

func (l *loader) problem(show string, err error) { l.problems = append(l.problems, Problem{show, err}) }

// place reads the skills of a place, in the order of their paths.
func (l *loader) place(p Place) (found []Skill, err error) {
	tree, closeTree, err := regularfile.OpenTree(p.Root, p.Dir)
	if err != nil {
		return nil, err
	}
	defer closeTree()
	entries, err := regularfile.Entries(tree, ".")
	for _, e := range entries {
		file, show := e.Name, path.Join(p.Show, e.Name)
		switch ext := path.Ext(file); {
		case e.Err != nil && (ext == "" || ext == ".md"):
			l.problem(show, e.Err)
			continue
		case e.IsDir:
			file, show = path.Join(file, folderFile), path.Join(show, folderFile)
		case ext != ".md":
			continue
		}
		s, warning, err := read(tree, file, strings.TrimSuffix(e.Name, ".md"))
		if !e.IsDir && errors.Is(err, errNoFrontmatter) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if problem := cmp.Or(err, warning); problem != nil {
			l.problem(show, regularfile.Cause(problem))
		}
		if err == nil {
			s.Path = show
			found = append(found, s)
		}
	}
	return found, err
}

// errNoFrontmatter means that a file is no skill.
var errNoFrontmatter = errors.New("it has no frontmatter: it must begin with a line ---, and a second one must end the frontmatter")

// head is the frontmatter.
type head struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	MCP         []string `yaml:"mcp"`
}

// read reads the skill in a file. name is the name of the file or the folder. warning is a reason that a part of it
// is not used.
func read(tree fs.FS, file, name string) (s Skill, warning, err error) {
	data, err := regularfile.ReadFrom(tree, file, MaxFile)
	if err != nil {
		return s, nil, err
	}
	if !utf8.Valid(data) {
		return s, nil, errors.New("it is not UTF-8 text")
	}
	front, body, err := split(string(data))
	if err != nil {
		return s, nil, err
	}
	var h head
	if err := yaml.Unmarshal([]byte(front), &h); err != nil {
		return s, nil, fmt.Errorf("its frontmatter cannot be read: %w", err)
	}
	s = Skill{Name: cmp.Or(Name(h.Name), Name(name)), Description: oneline.Of(h.Description), MCP: h.MCP, Body: strings.TrimSpace(body)}
	switch {
	case s.Name == "":
		return s, nil, fmt.Errorf("invalid name %q: use the letters a to z, because the name is that of a tool", cmp.Or(h.Name, name))
	case s.Description == "":
		return s, nil, errors.New("it has no description")
	case s.Body == "":
		return s, nil, errors.New("it has no text")
	}
	if length := utf8.RuneCountInString(s.Description); length > maxDescription {
		s.Description = oneline.Clip(s.Description, maxDescription)
		warning = fmt.Errorf("its description has %d characters: agents get the first %d", length, maxDescription)
	}
	return s, warning, nil
}

// split splits a file into the frontmatter, which is between two lines of three dashes, and the rest.
func split(text string) (front, body string, err error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return "", "", errNoFrontmatter
	}
	front, body, found = strings.Cut("\n"+rest+"\n", "\n---\n")
	if !found && fieldRE.MatchString(front) {
		return "", "", errors.New("its frontmatter has no end: a line --- must follow its fields")
	}
	if !found {
		return "", "", errNoFrontmatter
	}
	return strings.TrimPrefix(front, "\n"), body, nil
}

// fieldRE matches text that begins with a field of frontmatter.
var fieldRE = lazyregexp.New(`^\s*[A-Za-z][A-Za-z0-9_-]*[ \t]*:`)
