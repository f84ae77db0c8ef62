package grimoires

import (
	"path/filepath"

	"github.com/coven-run/coven/internal/yamldoc"
)

// Entry describes a grimoire of the library.
type Entry struct {
	Name        string
	Source      string   // its file, or BuiltIn
	Description string   // empty: none, or the grimoire is invalid
	Hides       []string // ignored files of the same name, strongest first; BuiltIn
	Err         error    // why it cannot run; nil if it can
}

// Entries lists all grimoires by name.
func (l *Library) Entries() ([]Entry, error) {
	names, err := l.Names()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(names))
	for _, name := range names {
		e := Entry{Name: name}
		for _, s := range l.sources {
			_, label, err := s.read("grimoire", name)
			switch {
			case err != nil && e.Source == "":
				e.Source = s.label(filepath.Dir(s.files("grimoire", name)[0]))
			case label != "" && e.Source == "":
				e.Source = label
			case label != "":
				e.Hides = append(e.Hides, label)
			}
		}
		g, err := l.Load(name)
		if e.Err = err; err == nil {
			e.Description = g.Description
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Text returns the text of a grimoire's file, and the file's name in messages. The
// error is an *UnknownError if it does not exist.
func (l *Library) Text(name string) (text []byte, source string, err error) {
	return l.find("grimoire", name)
}

// YAML returns the grimoire in its file format, with every default filled in.
func (g *Grimoire) YAML() ([]byte, error) { return yamldoc.Marshal(g) }
