package grimoires

import (
	"io/fs"
	"path"
	"strings"

	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Names, keys and files of the original Coven that coven does not support, with hints about their
// replacements.

// legacyNames maps grimoires of the original to hints.
func legacyNames() map[string]string {
	return map[string]string{
		"implement-bead": `coven calls it "implement"`,
		"spec-to-beads":  `coven calls it "spec-to-tasks"`,
	}
}

// legacyKeys maps keys of steps in later specifications of the original to hints.
func legacyKeys() map[string]string {
	return map[string]string{
		"commit_message": "write message: TEXT",
		"auto_rebase":    "write strategy: rebase; the target's tip is always brought in before landing",
		"pre_merge":      "write checks: [COMMAND, ...]; they run on the very tree that lands",
	}
}

// legacyFiles lists the files in .coven that only the original reads, and their replacements.
var legacyFiles = []struct{ name, ours, hint string }{
	{
		"grimoire-mapping.json", matchersFile,
		"write .coven/" + matchersFile + ": default: NAME, and a rule with type: [TYPE] for each line of by_type",
	},
	{"config.json", "config.yaml", "write .coven/config.yaml: coven init makes one, with every key explained"},
}

// leftovers reports files of the original that coven does not read. They are errors unless their
// replacements exist.
func (s source) leftovers() ([]Problem, error) {
	if s.flat {
		return nil, nil
	}
	fsys, done, err := s.open()
	if err != nil {
		return nil, err
	}
	defer done()
	var all []Problem
	for _, f := range legacyFiles {
		if _, err := fs.Stat(fsys, f.name); err != nil {
			continue // not found
		}
		p := Problem{Error: yamldoc.Error{File: s.label(f.name), Line: 1, Column: 1, Msg: "coven does not read this file", Hint: f.hint}}
		if _, err := fs.Stat(fsys, f.ours); err == nil {
			p.Warning, p.Hint = true, "it reads "+s.label(f.ours)
		}
		all = append(all, p)
	}
	return append(all, s.misnamed(fsys)...), nil
}

// misnamed reports files whose names are not valid for a grimoire or prompt.
func (s source) misnamed(fsys fs.FS) []Problem {
	var all []Problem
	for _, kind := range []string{"grimoire", "prompt"} {
		for _, pattern := range s.files(kind, "*") {
			found, _ := fs.Glob(fsys, pattern) // the pattern is valid
			for _, file := range found {
				base := path.Base(file)
				name := strings.TrimSuffix(base[:len(base)-len(path.Ext(base))], ".test") // coven grimoires test reads these
				if !nameRE.MatchString(name) {
					all = append(all, Problem{Warning: true, Error: yamldoc.Error{
						File: s.label(file), Line: 1, Column: 1, Msg: "no " + kind + " can have this name: coven does not read the file",
						Hint: "letters, digits, - and _, at most 64, the first a letter or digit",
					}})
				}
			}
		}
	}
	return all
}
