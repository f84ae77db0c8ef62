package project

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/internal/tool/command"
)

// Tools reads the project's tools that run commands, by name. problems has the errors of invalid
// tools, by file name.
func (p *Project) Tools() (all map[string]grimoires.CommandTool, problems map[string]error) {
	if p.Repo == nil {
		return nil, nil
	}
	return command.Load(p.definitions().Root, isTaken)
}

// ToolsOf returns the project's tools that the definitions name.
func (p *Project) ToolsOf(definitions map[string]grimoires.AgentDefinition) (map[string]grimoires.CommandTool, error) {
	all, problems := p.Tools()
	named := map[string]grimoires.CommandTool{}
	for _, d := range definitions {
		for _, name := range d.Tools {
			if err := problems[name]; err != nil {
				return nil, &exit.Error{Exit: exit.Usage, Err: err, Next: "coven tools list"}
			}
			if t, ok := all[name]; ok {
				named[name] = t
			}
		}
	}
	return named, nil
}

// toolNames returns the names of the project's valid tools, sorted.
func (p *Project) toolNames() []string {
	all, _ := p.Tools() // invalid tools are errors of the agents that name them
	return slices.Sorted(maps.Keys(all))
}

// isTaken reports whether coven or an agent CLI has a tool with the name.
func isTaken(name string) bool {
	_, known := tool.KindOf(gate.ToolName(gate.Call{Tool: name})) // a name with the prefix of agent CLIs, too
	_, unknown := tool.IDs([]string{name})
	return known || len(unknown) == 0
}
