package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/coven-run/coven/examples/plugins"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/pluginregistry"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/plugins"
)

//go:embed templates
var templates embed.FS

// Langs returns the languages of new plugins.
func Langs() []string { return []string{"go", "python", "node"} }

// kindsOf returns the kinds of plugins that can be written in a language.
func kindsOf(lang string) []plugins.Kind {
	if lang == "go" {
		return plugins.Kinds()
	}
	return []plugins.Kind{plugins.KindReviewer, plugins.KindArbiter}
}

// Project is a new plugin.
type Project struct {
	Name     string // of the plugin's file: coven-KIND-NAME
	Files    []File
	Commands []string // that build and test it, in its directory
}

// Plugin returns the project of a new plugin, which builds and passes the conformance tests.
// pluginregistry.CheckName defines the valid names. Errors about arguments are usage errors.
func Plugin(kind plugins.Kind, name, lang string) (*Project, error) {
	if err := checkPlugin(kind, name, lang); err != nil {
		return nil, err
	}
	file := pluginregistry.FileOf(kind, name)
	p := &Project{Name: file, Commands: commands(kind, file, lang)}
	sources := sourcesOf(kind, lang)
	page := page{
		Kind: string(kind), Name: name, File: file, Lang: lang, Commands: p.Commands, Files: sources,
		Variable: strings.ToUpper(strings.ReplaceAll(name, "-", "_")),
	}
	for _, s := range sources {
		content, err := s.read(page)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, File{Path: s.Name, Content: content, Executable: s.Name == "build"})
	}
	if lang != "go" {
		contracts, err := Protocol()
		if err != nil {
			return nil, err
		}
		for _, f := range contracts {
			f.Path = "proto/" + f.Path
			p.Files = append(p.Files, f)
		}
	}
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return p, nil
}

// checkPlugin validates the arguments of Plugin.
func checkPlugin(kind plugins.Kind, name, lang string) error {
	const help = "coven plugins new --help"
	var kinds []string
	for _, k := range plugins.Kinds() {
		kinds = append(kinds, string(k))
	}
	if !slices.Contains(kinds, string(kind)) {
		return exit.Usagef(help, "%q is not a plugin kind%s", kind, known(string(kind), kinds))
	}
	if rest, found := strings.CutPrefix(name, pluginregistry.FileOf(kind, "")); found {
		return exit.Usagef(fmt.Sprintf("coven plugins new %s %s", kind, rest), "the name %q begins with coven-%s-, which coven adds", name, kind)
	}
	if err := pluginregistry.CheckName(name); err != nil {
		return exit.Usagef(help, "%w", err)
	}
	if !slices.Contains(Langs(), lang) {
		return exit.Usagef(help, "--lang %q is not a language of new plugins%s", lang, known(lang, Langs()))
	}
	if !slices.Contains(kindsOf(lang), kind) {
		return exit.Usagef(fmt.Sprintf("coven plugins new %s %s --lang go", kind, name),
			"coven writes no %s in %s: --lang %s is for reviewers and arbiters (in other languages: coven help plugin)", kind, lang, lang)
	}
	return nil
}

// known returns a suggestion for an unknown word, or lists the known words.
func known(word string, words []string) string {
	hint := didyoumean.Hint(word, words)
	if hint == "" {
		hint = "known: " + strings.Join(words, ", ")
	}
	return " (" + hint + ")"
}

// commands returns the commands that build and test a plugin, in its directory.
func commands(kind plugins.Kind, file, lang string) []string {
	test := "coven plugins test ./" + file
	switch {
	case lang != "go":
		return []string{"./build", test}
	case kind == plugins.KindProvider:
		test += " --transcript testdata/transcript.jsonl"
	}
	return []string{"go get -t .", "go test .", "go build", test}
}

// source is a file of a project: a template, or a copy of an example.
type source struct {
	Name     string // of the file
	What     string // description for the README; empty if it is not listed
	template string // below templates
	example  string // below examples/plugins
}

// sourcesOf returns the sources of a project, without the contracts.
func sourcesOf(kind plugins.Kind, lang string) []source {
	what := "the " + string(kind)
	all := []source{
		{Name: "README.md", template: "README.md"},
		{Name: ".gitignore", template: lang + "/gitignore"},
	}
	switch lang {
	case "go":
		all = append(all,
			source{Name: "main.go", What: what, template: "go/" + string(kind) + ".go"},
			source{Name: "main_test.go", What: "its tests, with the harness `plugintest`", template: "go/" + string(kind) + "_test.go"},
			source{Name: "go.mod", template: "go/go.mod"})
		if kind == plugins.KindProvider {
			all = append(all, source{Name: "testdata/transcript.jsonl", What: "output of the CLI: replace it by a recording", template: "go/transcript"})
		}
	case "python":
		all = append(all,
			source{Name: "__main__.py", What: what, template: "python/" + string(kind) + ".py"},
			source{Name: "covenplugin.py", What: "the plugin protocol, used as it is", example: "reviewer-python/covenplugin.py"},
			source{Name: "build", What: "makes the plugin from these files and the contracts in `proto`", template: "python/build"})
	case "node":
		all = append(all,
			source{Name: "main.mjs", What: what, template: "node/" + string(kind) + ".mjs"},
			source{Name: "covenplugin.mjs", What: "the plugin protocol, used as it is", example: "reviewer-node/covenplugin.mjs"},
			source{Name: "build", What: "makes the plugin from these files, the packages and the contracts in `proto`", template: "node/build"},
			source{Name: "package.json", example: "reviewer-node/package.json"},
			source{Name: "package-lock.json", What: "the packages of npm, pinned", example: "reviewer-node/package-lock.json"})
	}
	return all
}

// page is the data of templates.
type page struct {
	Kind, Name, File, Lang string
	Variable               string // the name as part of a variable's name
	Commands               []string
	Files                  []source
}

// About describes the plugin before its author changes it.
func (p page) About() string {
	switch plugins.Kind(p.Kind) {
	case plugins.KindReviewer:
		return "It fails a\nchange that adds a TODO."
	case plugins.KindArbiter:
		return "It ends a loop when a\nround has not reduced the number of errors."
	case plugins.KindProvider:
		return "It drives the agent\nCLI `" + p.Name + "`."
	case plugins.KindForge:
		return "It reads the\nstate of pull requests from a REST API."
	}
	return "It has no API and\nrepeats what it is told."
}

// Article returns the article of the kind.
func (p page) Article() string {
	if p.Kind == string(plugins.KindArbiter) {
		return "An"
	}
	return "A"
}

// Guide returns the help topic about the kind.
func (p page) Guide() string {
	if p.Kind == string(plugins.KindProvider) {
		return "provider-plugins"
	}
	return "plugins"
}

// Use describes how the plugin is used.
func (p page) Use() string {
	switch plugins.Kind(p.Kind) {
	case plugins.KindReviewer:
		return "In a grimoire:\n\n    - {name: quality, type: agent-loop, reviewers: [" + p.Name + "], arbiter: rules}"
	case plugins.KindArbiter:
		return "In a grimoire:\n\n    - {name: quality, type: agent-loop, reviewers: [agent], arbiter: " + p.Name + "}"
	case plugins.KindProvider:
		return "Then `coven run --provider " + p.Name + "`. Its tool calls do not pass coven's gate, so your own\n" +
			"configuration must allow it: `coven help providers`."
	}
	if p.Kind == string(plugins.KindForge) {
		return "It reads the user's token from the variable " + p.Variable + "_TOKEN, which `env.pass` of your configuration must name."
	}
	return "coven lists and tests model plugins; no command uses them yet."
}

// read returns the content of a file.
func (s source) read(p page) ([]byte, error) {
	if s.example != "" {
		return examples.Files.ReadFile(s.example)
	}
	name := "templates/" + s.template + ".tmpl"
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Delims("<%", "%>").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, p)
	return b.Bytes(), err
}
