package project

import (
	"path/filepath"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/skill"
)

// Skills reads the user's skills and, in a repository, those in .claude/skills, skills and .coven/skills.
func (p *Project) Skills() ([]skill.Skill, []skill.Problem) {
	user := filepath.Join(p.Env.UserDir(), "skills")
	places := []skill.Place{{Dir: user, Show: user}}
	if p.Repo != nil {
		for _, dir := range []string{".claude/skills", "skills", ".coven/skills"} {
			places = append(places, skill.Place{Root: p.definitions().Root, Dir: dir, Show: dir})
		}
	}
	return skill.Load(places...)
}

// PlannedSkills returns the skills of the agents of a new session, by name.
func (p *Project) PlannedSkills(agents map[string]grimoires.AgentDefinition) map[string]grimoires.Skill {
	all, _ := p.Skills() // agents report invalid skills
	planned := map[string]grimoires.Skill{}
	for _, s := range all {
		for _, a := range agents {
			if slices.Contains(a.Skills, s.Name) {
				planned[s.Name] = grimoires.Skill{Description: s.Description, MCP: s.MCP, Body: s.Body}
			}
		}
	}
	return planned
}
