package config

import (
	"fmt"
	"regexp"
)

// Route assigns an agent to matching tasks.
type Route struct {
	Match string `yaml:"match" need:"true" about:"a regular expression that matches a part of the task, in upper or lower case"`
	Agent string `yaml:"agent" need:"true" about:"the name of an agent"`
}

// Matches reports whether the route applies to a task.
func (r Route) Matches(task string) bool {
	re, err := r.compile()
	return err == nil && re.MatchString(task) // the expression was checked when the file was read
}

func (r Route) compile() (*regexp.Regexp, error) { return regexp.Compile("(?i)" + r.Match) }

// routes checks the section routing.
func (r reader) routes(all []Route) {
	at := r.at("routing")
	items := r.doc.Items(at)
	if !at.Set() || len(items) != len(all) {
		return
	}
	for i, route := range all {
		if _, err := route.compile(); err != nil {
			r.doc.Fail(r.doc.Key(items[i], "match"), fmt.Sprintf("invalid regular expression %q", route.Match), "")
		}
	}
}
