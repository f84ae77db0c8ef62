package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/tmpl"
	"github.com/coven-run/coven/internal/tool"
)

// Dir is the directory of the tool files, relative to the project.
const Dir = ".coven/tools"

const (
	maxFile        = 64 << 10 // bytes
	defaultTimeout = 2 * time.Minute
	maxTimeout     = time.Hour
)

type file struct {
	Name        string        `yaml:"name" about:"the name of the file, without .yaml"`
	Description string        `yaml:"description" need:"true" about:"what it does, for models"`
	Category    string        `yaml:"category" about:"what it is about"`
	Permission  string        `yaml:"permission" oneof:"bash.execute" about:"that a call needs"`
	Parameters  any           `yaml:"parameters" later:"true" about:"the JSON Schema of its arguments"`
	Argv        []string      `yaml:"argv" need:"true" about:"the command and its arguments, which may be templates"`
	Timeout     time.Duration `yaml:"timeout" about:"how long it may take, 1s to 1h"`
}

// Load reads a project's tools by name. problems has the errors of invalid ones.
// taken reports whether coven has a tool with the name.
func Load(root string, taken func(name string) bool) (all map[string]grimoires.CommandTool, problems map[string]error) {
	all, problems = map[string]grimoires.CommandTool{}, map[string]error{}
	if err := regularfile.Directory(root, Dir); err != nil {
		problems[Dir] = err
		return all, problems
	}
	entries, err := os.ReadDir(filepath.Join(root, Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems[Dir] = fmt.Errorf("read %s: %w", Dir, err)
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if ext != ".yaml" && ext != ".yml" {
			continue
		}
		name, show := strings.TrimSuffix(e.Name(), ext), Dir+"/"+e.Name()
		data, err := regularfile.ReadIn(root, filepath.Join(Dir, e.Name()), maxFile)
		if err != nil {
			problems[name] = fmt.Errorf("%s: %w", show, err)
			continue
		}
		d, err := parse(show, name, data)
		switch _, twice := all[name]; {
		case err != nil:
			problems[name] = err
		case twice:
			problems[name] = fmt.Errorf("%s: there is %s, too", show, all[name].Source)
		case taken(name):
			problems[name] = fmt.Errorf("%s: coven has a tool of this name: rename the file", show)
		default:
			all[name] = d
		}
	}
	for name := range problems {
		delete(all, name)
	}
	return all, problems
}

// parse reads one file. show is its path in messages.
func parse(show, name string, data []byte) (grimoires.CommandTool, error) {
	d := grimoires.CommandTool{Source: show}
	doc, err := yamldoc.Parse(show, data)
	if err != nil {
		return d, err
	}
	var f file
	doc.Decode(&f)
	at := func(key string) yamldoc.Place {
		if n := doc.Key(doc.Root(), key); n.Set() {
			return n
		}
		return doc.Root()
	}
	var parameters map[string]any
	doc.Any(doc.Key(doc.Root(), "parameters"), &parameters)
	if parameters == nil {
		parameters = map[string]any{"type": "object", "additionalProperties": false}
	}
	schema, err := json.Marshal(parameters)
	if err != nil {
		doc.Fail(at("parameters"), "it is not a JSON Schema", "")
	}
	d.Description, d.Argv, d.Parameters, d.Category, d.Timeout = f.Description, f.Argv, string(schema), f.Category, f.Timeout
	d.Category = cmp.Or(d.Category, "shell")
	d.Timeout = cmp.Or(d.Timeout, defaultTimeout)
	f.check(doc, at, name, d)
	for _, reason := range argvProblems(d, parameters) {
		doc.Fail(at("argv"), reason, "")
	}
	if err := doc.Err(); err != nil {
		return d, err
	}
	if err := new(tool.Registry).Define(Tool(name, d, nil)); err != nil {
		return d, fmt.Errorf("%s: %w", show, err)
	}
	return d, nil
}

// check validates single keys.
func (f file) check(doc *yamldoc.Document, at func(string) yamldoc.Place, name string, d grimoires.CommandTool) {
	switch {
	case f.Name != "" && f.Name != name:
		doc.Fail(at("name"), fmt.Sprintf("the name is %q and the file is called %s", f.Name, name), "")
	case f.Permission != "" && f.Permission != string(permission.BashExecute):
		doc.Fail(at("permission"), fmt.Sprintf("a command tool needs the permission %s", permission.BashExecute), didyoumean.Hint(f.Permission, []string{string(permission.BashExecute)}))
	case d.Timeout < time.Second || d.Timeout > maxTimeout:
		doc.Fail(at("timeout"), fmt.Sprintf("it is from 1s to %s", maxTimeout), "")
	case len(f.Argv) == 0:
		doc.Fail(at("argv"), "it has no command", "argv: [make, lint]")
	}
}

// argvProblems returns the errors in the templates. A template may use only parameters. An optional
// parameter must be the whole element or be tested.
func argvProblems(d grimoires.CommandTool, parameters map[string]any) (all []string) {
	properties, _ := parameters["properties"].(map[string]any)
	required, _ := parameters["required"].([]any)
	for i, text := range d.Argv {
		place := fmt.Sprintf("argv[%d]", i)
		_, err := tmpl.CheckText(place, text) // an element cannot include a template
		uses, errTested := tmpl.CheckPrompt(place, text)
		if err := cmp.Or(err, errTested); err != nil {
			all = append(all, err.Error())
			continue
		}
		if i == 0 && (len(uses.Data) > 0 || text == "") {
			all = append(all, "the program cannot be a parameter")
		}
		for _, use := range uses.Data {
			if len(use.Path) == 0 {
				continue
			}
			name := use.Path[0]
			switch _, known := properties[name]; {
			case !known:
				all = append(all, fmt.Sprintf("argv[%d]: there is no parameter %s%s", i, name, didyoumean.Aside(name, slices.Sorted(maps.Keys(properties)))))
			case !use.Tested && uses.Sole == nil && !slices.Contains(required, any(name)):
				all = append(all, fmt.Sprintf("argv[%d]: a call may leave out %s: add it to required, or test it with {{if .%s}}", i, name, name))
			}
		}
	}
	return all
}
