package config

import (
	"cmp"
	"fmt"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// Rule is a permission rule for the tool calls of agents.
type Rule struct {
	Permission string `yaml:"permission" need:"true" about:"a word such as FilesystemWrite, or a permission such as bash.execute"`
	Pattern    string `yaml:"pattern,omitempty" about:"a glob of files, or a command in which * is any text; default: everything"`
	Action     string `yaml:"action" need:"true" oneof:"allow|deny|ask" about:"allow, deny, or ask a person"`
}

// Rules returns the rules for all agents in order. The last matching rule wins.
func (c Config) Rules() []permission.Rule {
	var all []permission.Rule
	for _, r := range c.Permissions {
		names, _ := permission.Expand(r.Permission)
		for _, name := range names {
			all = append(all, permission.Rule{Permission: name, Pattern: cmp.Or(r.Pattern, permission.Everything), Action: permission.Action(r.Action)})
		}
	}
	return all
}

// rules checks the section permissions.
func (r reader) rules(all []Rule) {
	at := r.at("permissions")
	items := r.doc.Items(at)
	if !at.Set() || len(items) != len(all) {
		return
	}
	for i, rule := range all {
		names, known := permission.Expand(rule.Permission)
		if !known && rule.Permission != "" {
			r.doc.Fail(r.doc.Key(items[i], "permission"), fmt.Sprintf("unknown permission %q", rule.Permission), didyoumean.Hint(rule.Permission, permission.Words()))
			continue
		}
		if rule.Pattern == "" {
			continue
		}
		if err := permission.CheckPattern(names[0], rule.Pattern); err != nil {
			r.doc.Fail(r.doc.Key(items[i], "pattern"), err.Error(), "")
		}
	}
}
