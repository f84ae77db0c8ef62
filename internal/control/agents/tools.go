package agents

import (
	"github.com/coven-run/coven/internal/tool"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/plugins/provider"
)

// listed returns the tools that an agent with a definition has: those that its policy grants and,
// if the definition has a list, that are in it. Each may read, as it may with the tools of coven.
func listed(own grimoires.AgentDefinition, policy *permission.Policy) []string {
	granted := toolsOf(policy)
	if len(own.Tools) == 0 {
		return granted
	}
	ids, _ := tool.IDs(own.Tools)
	return slices.DeleteFunc(granted, func(id string) bool { return id != provider.ToolRead && !slices.Contains(ids, id) })
}
