package config

import (
	"path/filepath"
	"strings"
)

// ACP configures the agent for the provider acp. A repository must not configure a program that gets
// the user's variables and logins.
type ACP struct {
	Command []string `yaml:"command" user:"true" about:"its program, which is absolute or on PATH, and arguments: [gemini, --acp]"`
	Env     []string `yaml:"env" user:"true" about:"NAME=VALUE, set for it; {state} is a directory of the task, for what it keeps"`
	Pass    []string `yaml:"pass" user:"true" about:"names of variables that it gets, such as one with a key"`
	Logins  []string `yaml:"logins" user:"true" about:"files with its login: absolute, or below ~; linked into {state}"`
}

// acp checks the section acp.
func (r reader) acp(a ACP) {
	if at := r.at("acp.command"); at.Set() && len(a.Command) > 0 && (a.Command[0] == "" || !filepath.IsAbs(a.Command[0]) && strings.ContainsRune(a.Command[0], '/')) {
		r.doc.Fail(at, "the program is neither a name nor an absolute path", "")
	}
	r.each("acp.env", a.Env, "NAME=VALUE", func(s string) bool {
		name, _, ok := strings.Cut(s, "=")
		return ok && variableRE.MatchString(name)
	})
	r.each("acp.pass", a.Pass, "the name of a variable", func(s string) bool { return variableRE.MatchString(strings.TrimSuffix(s, "*")) })
	r.each("acp.logins", a.Logins, "an absolute path, or one below ~", isPath)
}
