package agenttree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
)

// capability describes the tools with a name prefix.
type capability struct{ prefix, text string }

func capabilities() []capability {
	return []capability{
		{"exec", "command execution"},
		{"fs_", "file operations"},
		{"skill_", "skill management"},
		{"browser_", "web browsing"},
		{"crypto_", "cryptography"},
		{"secrets_", "secret management"},
		{"payment_", "blockchain payments (USDC on Base)"},
		{"search_", "information search"},
		{"rag_", "knowledge retrieval (RAG)"},
		{"graph_", "knowledge graph traversal"},
		{"save_knowledge", "knowledge persistence"},
		{"save_learning", "learning persistence"},
		{"create_skill", "skill creation"},
		{"list_skills", "skill listing"},
		{"memory_", "memory storage and recall"},
		{"observe_", "event observation"},
		{"reflect_", "reflection and summarization"},
	}
}

// unnamed is the capability of tools without a known prefix.
const unnamed = "general actions"

// Capability describes the purpose of a tool by the longest known prefix of its name.
func Capability(name string) string {
	best := capability{text: unnamed}
	for _, c := range capabilities() {
		if strings.HasPrefix(name, c.prefix) && len(c.prefix) > len(best.prefix) {
			best = c
		}
	}
	return best.text
}

// describe describes a specialist and its tools to the orchestrator, without the names of tools. For
// tools without a known prefix, it uses the capabilities of the definition.
func describe(d agent.Definition, tools []*tool.Tool) string {
	var can []string
	add := func(text string) {
		if !slices.Contains(can, text) {
			can = append(can, text)
		}
	}
	own := func() {
		for _, text := range d.Capabilities {
			add(text)
		}
	}
	for _, t := range tools {
		switch text := Capability(idOf(t)); {
		case text == unnamed && len(d.Capabilities) > 0:
			own()
		default:
			add(text)
		}
	}
	if len(tools) == 0 {
		own()
	}
	text := strings.TrimRight(oneline.Of(d.Description), ".")
	if len(can) > 0 {
		text += ". Capabilities: " + strings.Join(can, ", ")
	}
	return text
}

// Instruction returns the orchestrator's prompt. It contains none of the names in tools, which are all known tools.
func (t Tree) Instruction(tools []*tool.Tool, rounds int) string {
	var b strings.Builder
	b.WriteString(opening)
	b.WriteString("\n# Routing table\n")
	for _, child := range t.Children {
		d := child.definition
		fmt.Fprintf(&b, "\n## %s\n\n", child.Name)
		for _, line := range []struct{ name, text string }{
			{"Role", child.Description}, {"Keywords", strings.Join(plain(d.Keywords, tools), ", ")}, {"Accepts", d.Accepts}, {"Returns", d.Returns}, {"Cannot", strings.Join(d.Cannot, "; ")},
		} {
			fmt.Fprintf(&b, "- %s: %s\n", line.name, cmp.Or(oneline.Of(withoutToolNames(line.text, tools)), "(not stated)"))
		}
	}
	fmt.Fprintf(&b, protocol, rounds)
	return b.String()
}

// plain returns the keywords that are not names of tools.
func plain(keywords []string, tools []*tool.Tool) (kept []string) {
	for _, word := range keywords {
		if !slices.ContainsFunc(tools, func(t *tool.Tool) bool { return strings.EqualFold(word, t.Name) || strings.EqualFold(word, t.ID) }) {
			kept = append(kept, word)
		}
	}
	return kept
}

// withoutToolNames replaces the names of tools in a text by their capabilities. It keeps names that may be English
// words, such as deploy.
func withoutToolNames(text string, tools []*tool.Tool) string {
	tools = slices.Clone(tools)
	slices.SortStableFunc(tools, func(a, b *tool.Tool) int { return len(b.Name) - len(a.Name) }) // a name may be the prefix of another
	for _, t := range tools {
		for _, name := range []string{t.ID, t.Name} {
			if strings.ContainsAny(name, "_-") {
				text = strings.ReplaceAll(text, name, Capability(idOf(t)))
			}
		}
	}
	return text
}

const opening = `You are the orchestrator of a team of agents. You have no tools of your own: all work that needs one is done by the agents below, which you start with spawn_agent. Do not guess what an agent would find, and do not report work that none has reported.
`

const protocol = `
# Decision protocol

1. CLASSIFY: what does the request ask for? Answer yourself what needs no tool, such as a greeting or a question about what was reported to you.
2. MATCH: compare the request with the role and the keywords of each agent.
3. SELECT: choose the one agent that fits best. Divide a request that needs several, and bring the parts into their order.
4. VERIFY: the request is something that the agent accepts, and needs nothing that it cannot do.
5. DELEGATE: start the agent with a task that is complete by itself. It knows nothing of this conversation: give it the paths, the names and the results of others that it needs.

# Names

Use the EXACT name of an agent (e.g. "operator", NOT "exec", "browser", or any abbreviation). NEVER invent or abbreviate agent names. A name that is not in the routing table starts nothing.

# Rejected tasks

A report that begins with [REJECT] means that you chose the wrong agent. Nothing was done. Read what it says the task requires, and give the task to the next best agent; never give the same task to the same agent again. If every agent that could fit rejects it, say in your answer what cannot be done and why.

# Limit

You may delegate at most %d times. Give related work to one agent at once, and finish with what you have before the limit is reached.

# Your answer

When all parts are done, say what was done and what was not, in your own words. The user does not see what the agents reported.
`
