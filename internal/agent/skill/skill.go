// Package skill reads skills: instructions for a kind of work, which an agent reads when it has such work.
//
// A skill is a Markdown file with frontmatter, NAME.md, or the file SKILL.md in a folder NAME. The frontmatter has a
// name, a description, and mcp, a list of MCP servers that the skill needs. Other keys are ignored: other programs
// use this format, too. Files without frontmatter are not skills.
package skill

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// MaxFile limits the size of a file, in bytes.
const MaxFile = 256 << 10

// maxDescription limits a description, in bytes, because it is sent to all agents with the skill.
const maxDescription = 1024

// folderFile is the name of a skill's file in a folder.
const folderFile = "SKILL.md"

// Skill is a skill.
type Skill struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	MCP         []string `json:"mcp"`  // servers that only agents with the skill may use
	Path        string   `json:"path"` // of its file, for display
	Body        string   `json:"-"`
}

// Place is a directory with skills.
type Place struct {
	Dir  string
	Show string // prefix of the displayed paths
}

// Problem is an error in a file.
type Problem struct {
	Path string
	Err  error
}

// Error returns "path: error".
func (p Problem) Error() string { return p.Path + ": " + p.Err.Error() }

// NextCommand returns the command that lists the skills and the errors in their files.
func (p Problem) NextCommand() string { return "coven skills list" }

// Load reads the skills of places, sorted by name. If two skills have the same name, the later place wins. A
// missing directory is empty.
func Load(places ...Place) (all []Skill, problems []Problem) {
	for _, p := range places {
		entries, err := os.ReadDir(p.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, Problem{p.Show, errors.Unwrap(err)})
		}
		for _, e := range entries {
			dir, file, show := p.Dir, e.Name(), path.Join(p.Show, e.Name())
			if e.IsDir() {
				dir, file, show = filepath.Join(p.Dir, e.Name()), folderFile, path.Join(show, folderFile)
			} else if filepath.Ext(file) != ".md" {
				continue
			}
			s, err := read(dir, file, strings.TrimSuffix(e.Name(), ".md"))
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoSkill):
				continue
			case err != nil:
				problems = append(problems, Problem{show, err})
				continue
			}
			s.Path = show
			all = slices.DeleteFunc(all, func(other Skill) bool { return other.Name == s.Name })
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return all, problems
}

// errNoSkill means that a file has no frontmatter.
var errNoSkill = errors.New("no skill")

var names = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,40}$`)

// head is the frontmatter.
type head struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	MCP         []string `yaml:"mcp"`
}

// read reads the skill in a file. name is the name of the file or the folder.
func read(dir, file, name string) (Skill, error) {
	data, err := regularfile.ReadIn(dir, file, MaxFile)
	if err != nil {
		return Skill{}, err
	}
	if !utf8.Valid(data) {
		return Skill{}, errors.New("it is not UTF-8 text")
	}
	front, body, ok := split(string(data))
	if !ok {
		return Skill{}, errNoSkill
	}
	var h head
	if err := yaml.Unmarshal([]byte(front), &h); err != nil {
		return Skill{}, fmt.Errorf("its frontmatter cannot be read: %w", err)
	}
	s := Skill{Name: cmp.Or(h.Name, name), Description: strings.Join(strings.Fields(h.Description), " "), MCP: h.MCP, Body: strings.TrimSpace(body)}
	switch {
	case !names.MatchString(s.Name):
		return s, fmt.Errorf("invalid name %q: use lower-case letters, digits and -, at most 41", s.Name)
	case s.Description == "":
		return s, errors.New("it has no description")
	case len(s.Description) > maxDescription:
		return s, fmt.Errorf("its description has %d bytes, the maximum is %d", len(s.Description), maxDescription)
	case s.Body == "":
		return s, errors.New("it has no text")
	}
	return s, nil
}

// split splits a file into the frontmatter, which is between two lines of three dashes, and the rest.
func split(text string) (front, body string, ok bool) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return "", "", false
	}
	front, body, ok = strings.Cut("\n"+rest, "\n---\n")
	return strings.TrimPrefix(front, "\n"), body, ok
}
