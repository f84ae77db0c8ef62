package agent

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/agent/evaluator"
	"github.com/coven-run/coven/internal/file/regularfile"
)

// evaluate evaluates the TypeScript files of a directory together. It adds problems for unreadable
// files.
func (r *Registry) evaluate(p directory, entries []regularfile.Entry) map[string]evaluator.Result {
	if p.Source == SourceClaude {
		return nil
	}
	files := map[string]string{}
	for _, e := range entries {
		if e.IsDir || !evaluator.IsDefinition(e.Name) {
			continue
		}
		if content, ok := r.read(p, e); ok {
			files[e.Name] = string(content)
		}
	}
	return r.scripts.Evaluate(files)
}

// ofScript parses the result of a TypeScript file, which is a YAML document.
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

// ParseFile reads a definition from a file outside of the registry's places. It returns an error only
// if the file cannot be read.
func ParseFile(scripts *evaluator.Evaluator, file string) (Definition, []Problem, error) {
	content, err := regularfile.Read(file, MaxFile)
	if err != nil {
		return Definition{}, nil, err
	}
	name := filepath.Base(file)
	if !evaluator.IsDefinition(name) {
		parse := Parse
		if full, err := filepath.Abs(file); err == nil && strings.Contains(filepath.ToSlash(full), "/.claude/agents/") {
			parse = ParseClaude
		}
		d, problems := parse(file, content)
		return d, problems, nil
	}
	files := map[string]string{name: string(content)}
	entries, err := os.ReadDir(filepath.Dir(file)) // the file may import the others
	if err != nil {
		return Definition{}, nil, err
	}
	for _, e := range entries {
		if evaluator.IsDefinition(e.Name()) && e.Name() != name {
			if other, err := regularfile.ReadIn(filepath.Dir(file), e.Name(), MaxFile); err == nil {
				files[e.Name()] = string(other) // files that cannot be read cannot be imported
			}
		}
	}
	d, problems := ofScript(file, scripts.Evaluate(files)[name])
	return d, problems, nil
}
