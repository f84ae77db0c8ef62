package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// optionsOf returns the options of a built-in reviewer or arbiter, with the allowed values of each. nil
// permits any text. The options of other plugins are not known.
func optionsOf(kind, plugin string) (options map[string][]string, known bool) {
	switch kind + " " + plugin {
	case "reviewer command":
		return map[string][]string{
			"command": nil, "format": {"lines", "sarif"}, "severity": {"error", "warning", "info"}, "scope": {"changed", "all"},
		}, true
	case "reviewer " + AgentReviewer, "arbiter " + AgentReviewer:
		return map[string][]string{ModelOption: nil, AgentOption: nil}, true
	case "arbiter rules":
		return nil, true
	}
	return nil, false
}

// options checks the options of a reviewer or arbiter.
func (r *reader) options(n yamldoc.Node, kind string, v Reviewer) {
	options, known := optionsOf(kind, v.Plugin)
	if !known {
		return
	}
	names, with := slices.Sorted(maps.Keys(options)), r.doc.Key(n, "with")
	for _, key := range slices.Sorted(maps.Keys(v.With)) {
		words, ok := options[key]
		switch {
		case key == "prompt": // reported for all plugins
		case !ok:
			hint := didyoumean.Hint(key, names)
			if hint == "" && len(names) > 0 {
				hint = "it has " + strings.Join(names, ", ")
			}
			r.doc.Fail(r.doc.Key(with, key), fmt.Sprintf("%s has no option %q", v.Plugin, key), hint)
		case words != nil:
			r.doc.OneOf(yamldoc.TextAt(r.doc.Key(with, key), v.With[key]), words...)
		}
	}
	if given := r.doc.Key(with, AgentOption); v.Plugin == AgentReviewer && given.Set() {
		if !pluginRE.MatchString(v.With[AgentOption]) {
			r.doc.Fail(given, fmt.Sprintf("%q cannot be the name of an agent", v.With[AgentOption]), "small letters, digits and -, the first a letter or digit")
		}
		r.use(UseAgent, v.With[AgentOption], given)
	}
	if v.Plugin == "command" && strings.TrimSpace(v.With["command"]) == "" {
		r.doc.Fail(n, "there is no command to run", "with: {command: a shell command}")
	}
}
