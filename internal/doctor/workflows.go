package doctor

import (
	"context"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/text/oneline"
)

// workflows checks the files of grimoires and prompts: coven works around those that it cannot use.
func (v *Examination) workflows(context.Context) []Finding {
	var all []Finding
	wrong := func(next, what string, problems []string) {
		if len(problems) > 0 {
			all = append(all, warn(next, "%s with %s, the first: %s", what, oneline.Count(len(problems), "problem"), oneline.Of(problems[0]))...)
		}
	}
	checked, err := v.project.Library.Validate()
	if err != nil {
		return fail("coven grimoires validate", "%v", err)
	}
	wrong("coven grimoires validate", "grimoires or prompts", problemsOf(checked))

	agents := v.project.Agents()
	var texts []string
	for _, p := range slices.DeleteFunc(slices.Clone(agents.Problems()), func(p agent.Problem) bool { return p.Warning }) {
		texts = append(texts, p.String())
	}
	wrong("coven agents validate", "agents", texts)

	skills, invalid := v.project.Skills()
	texts = nil
	for _, p := range invalid {
		texts = append(texts, p.Error())
	}
	wrong("coven skills list", "skills", texts)

	servers, faulty, err := v.project.MCPServers()
	if err != nil {
		return append(all, fail("coven mcp list", "%v", err)...)
	}
	texts = nil
	for _, p := range faulty {
		if !p.IsNote {
			texts = append(texts, p.Error())
		}
	}
	wrong("coven mcp list", "MCP servers", texts)
	if len(all) > 0 {
		return all
	}
	return ok("%s, %s, %s", oneline.Count(len(agents.Agents()), "agent"), oneline.Count(len(skills), "skill"), oneline.Count(len(servers), "MCP server"))
}

func problemsOf(checked []grimoires.Checked) (texts []string) {
	for _, c := range checked {
		for _, p := range c.Problems {
			texts = append(texts, p.Error.Error())
		}
	}
	return texts
}
