package grimoires

import (
	"path/filepath"

	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Entry describes a grimoire of the library.
type Entry struct {
	Name        string
	Source      string   // its file, or BuiltIn
	Description string   // empty if it has none or is invalid
	Hides       []string // ignored files with the same name, highest precedence first; or BuiltIn
	Err         error    // the reason why it cannot run, or nil
}

// Entries lists all grimoires, sorted by name.
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

// Text returns the text of a grimoire's file, and the name of the file for messages. The error is an
// *UnknownError if it does not exist.
func (l *Library) Text(name string) (text []byte, source string, err error) {
	return l.find("grimoire", name)
}

// YAML returns the grimoire in its file format, including all defaults.
func (g *Grimoire) YAML() ([]byte, error) { return yamldoc.Marshal(g) }
