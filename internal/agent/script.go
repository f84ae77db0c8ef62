package agent

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/evaluator"
	"github.com/coven-run/coven/internal/regularfile"
)

// evaluate evaluates the TypeScript files of a directory, all at once, and adds those that cannot
// be read.
func (r *Registry) evaluate(p Place, entries []fs.DirEntry) map[string]evaluator.Result {
	if p.Source == SourceClaude {
		return nil
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || !evaluator.IsDefinition(e.Name()) {
			continue
		}
		if content, ok := r.read(p, e.Name()); ok {
			files[e.Name()] = string(content)
		}
	}
	return r.scripts.Evaluate(files)
}

// ofScript returns the definition of a TypeScript file: what it evaluates to is checked like YAML.
func ofScript(show string, result evaluator.Result) (Definition, []Problem) {
	if result.Error == "" {
		return Parse(show, []byte(result.Document))
	}
	d := withDefaults()
	d.Path, d.Name = show, strings.TrimSuffix(path.Base(show), path.Ext(show))
	return d, []Problem{{
		Path: path.Join(path.Dir(show), result.In), Line: result.Line, Agent: d.Name,
		Message: fmt.Sprintf("Agent '%s' %s", d.Name, result.Error),
	}}
}

// ParseFile reads the definition of a file that is not necessarily in one of the places. The error
// is that it cannot be read.
func ParseFile(scripts *evaluator.Evaluator, file string) (Definition, []Problem, error) {
	content, err := regularfile.Read(file, MaxFile)
	if err != nil {
		return Definition{}, nil, err
	}
	name := filepath.Base(file)
	if !evaluator.IsDefinition(name) {
		d, problems := Parse(file, content)
		return d, problems, nil
	}
	files := map[string]string{name: string(content)}
	entries, err := os.ReadDir(filepath.Dir(file)) // what it imports
	if err != nil {
		return Definition{}, nil, err
	}
	for _, e := range entries {
		if evaluator.IsDefinition(e.Name()) && e.Name() != name {
			if other, err := regularfile.ReadIn(filepath.Dir(file), e.Name(), MaxFile); err == nil {
				files[e.Name()] = string(other) // else it cannot be imported
			}
		}
	}
	d, problems := ofScript(file, scripts.Evaluate(files)[name])
	return d, problems, nil
}
