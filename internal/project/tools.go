package project

import (
	"maps"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/tool/command"
)

// Tools reads the tools of the project that run commands, by name. problems says what is wrong with
// others, by the names of their files.
func (p *Project) Tools() (all map[string]grimoires.CommandTool, problems map[string]error) {
	if p.Repo == nil {
		return nil, nil
	}
	return command.Load(p.Repo.Root, isTaken)
}

// ToolsOf returns those of the project's tools that a definition names.
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

// toolNames returns the names of the project's tools, sorted.
func (p *Project) toolNames() []string {
	all, _ := p.Tools() // what is wrong with others is an error of the agents that name them
	return slices.Sorted(maps.Keys(all))
}

// isTaken reports whether a tool of coven or of an agent CLI has a name.
func isTaken(name string) bool {
	_, known := gate.Permission(name)
	_, unknown := agent.ToolIDs([]string{name})
	return known || len(unknown) == 0
}
