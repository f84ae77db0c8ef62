package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/didyoumean"
	"github.com/coven-run/coven/internal/yamldoc"
)

// optionsOf returns the options of a built-in judge, with the allowed values of each;
// none means any text. Only other plugins know their own options.
func optionsOf(kind, plugin string) (options map[string][]string, known bool) {
	switch kind + " " + plugin {
	case "reviewer command":
		return map[string][]string{
			"command": nil, "format": {"lines", "sarif"}, "severity": {"error", "warning", "info"}, "scope": {"changed", "all"},
		}, true
	case "reviewer " + AgentJudge, "arbiter " + AgentJudge:
		return map[string][]string{"model": nil}, true
	case "arbiter rules":
		return nil, true
	}
	return nil, false
}

// options checks the options of a judge.
func (r *reader) options(n yamldoc.Node, kind, plugin string, with map[string]text) {
	options, known := optionsOf(kind, plugin)
	if !known {
		return
	}
	names := slices.Sorted(maps.Keys(options))
	for _, key := range slices.Sorted(maps.Keys(with)) {
		words, ok := options[key]
		switch {
		case key == "prompt": // reported for all plugins
		case !ok:
			hint := didyoumean.Hint(key, names)
			if hint == "" && len(names) > 0 {
				hint = "it has " + strings.Join(names, ", ")
			}
			r.doc.Fail(with[key], fmt.Sprintf("%s has no option %q", plugin, key), hint)
		case words != nil:
			r.doc.OneOf(with[key], words...)
		}
	}
	if command, ok := with["command"]; plugin == "command" && (!ok || strings.TrimSpace(command.Value) == "") {
		r.doc.Fail(n, "there is no command to run", "with: {command: a shell command}")
	}
}
