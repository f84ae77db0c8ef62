package agents

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/agenttree"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// Listed returns the IDs of the CLI tools of an agent: those that its policy grants and, if the definition has a list,
// that are in the list. Every agent may read.
func Listed(own grimoires.AgentDefinition, policy *permission.Policy) []string {
	granted := Granted(policy)
	if len(own.Tools) == 0 {
		return granted
	}
	ids, _ := tool.IDs(own.Tools)
	return slices.DeleteFunc(granted, func(id string) bool { return id != provider.ToolRead && !slices.Contains(ids, id) })
}

// Granted returns the IDs of the CLI tools that a policy grants.
func Granted(p *permission.Policy) []string {
	granted := p.Grants()
	tools := []string{provider.ToolRead}
	if slices.Contains(granted, permission.FileWrite) {
		tools = append(tools, provider.ToolWrite, provider.ToolEdit)
	}
	if slices.Contains(granted, permission.BashExecute) {
		tools = append(tools, provider.ToolBash)
	}
	return tools
}

// Confined reports whether an agent of a plan has fewer permissions than the default, or only the tools that its tree
// gives it.
func Confined(plan *grimoires.Plan, name string) bool {
	if plan.Tree.Has(name) || plan.Tree != nil && plan.Tree.Root == name {
		return true
	}
	d := plan.Agents[name]
	p := permission.OfPrimary("/", name, d.Permissions, d.Asks, plan.Rules)
	for _, granted := range []permission.Name{permission.FileRead, permission.FileWrite, permission.BashExecute} {
		if !slices.Contains(p.Grants(), granted) || slices.Contains(p.Asks, granted) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(d.Permissions, plan.Rules), func(r permission.Rule) bool {
		return r.Action != permission.Allow || !r.MatchesAll()
	})
}

// Has reports whether an agent with a definition and a policy has a tool. Every agent can read, search, start other
// agents and ask a person. Messages need a permission, and a tool of the project must be named by the definition.
func Has(own grimoires.AgentDefinition, policy *permission.Policy, t tool.Tool) bool {
	if t.Permission == permission.AgentMessage {
		return MayMessage(policy)
	}
	if tool.ForEveryone(t.Name) || t.ID == provider.ToolRead {
		return true
	}
	if t.Permission != "" && !slices.Contains(policy.Grants(), t.Permission) {
		return false
	}
	if t.Source != tool.Builtin {
		return slices.ContainsFunc(own.Tools, func(entry string) bool { return strings.EqualFold(entry, t.Name) })
	}
	ids, _ := tool.IDs(own.Tools)
	return len(own.Tools) == 0 || slices.Contains(ids, t.ID)
}

// HasInTree reports whether an agent of a tree has a tool that the tree divides.
func HasInTree(branches []grimoires.Branch, name string, policy *permission.Policy, t tool.Tool) bool {
	granted := t.Permission == "" || slices.Contains(policy.Grants(), t.Permission)
	return granted && agenttree.Owner(branches, "", cmp.Or(t.ID, t.Name)) == name
}

// MayMessage reports whether an agent with a policy may talk to other agents.
func MayMessage(policy *permission.Policy) bool {
	return slices.Contains(policy.Grants(), permission.AgentMessage)
}
