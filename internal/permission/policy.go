// Package permission decides what an agent may do. It is pure: a decision depends only
// on the request and its arguments, and on the links in the worktree where a shell command names a file
// that it redirects to.
//
// A permission is a named kind of action. Rules refine it by patterns; they come in layers,
// of which a later one wins. An agent can never do more than the agent that started it: each
// request is decided by its own rules and by those of all its ancestors, and the strictest
// decision counts. Nothing but reading and searching is granted unless a rule says so: a
// request without a matching rule needs a person's answer.
//
// Nobody may change files outside of the worktree, or git's and coven's own files inside.
package permission

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Request is an action that an agent requests.
type Request struct {
	Permission Name
	// Path is the file of a file permission: absolute, clean and with all symbolic links
	// resolved.
	Path string
	// Command is the shell command of bash.execute, and Dir where it runs: absolute; empty: at
	// the top of the worktree.
	Command, Dir string
	// Subject is what another permission is about: a host, an agent, SERVER/TOOL.
	Subject string
}

// Decision is the answer to a request.
type Decision struct {
	Action Action
	Reason string // one line: what decided
	Agent  string // whose rules decided; empty: nobody's
	Layer  string // where the rule is; empty: there is none
	Rule   *Rule
}

// Allowed reports whether the action may happen now.
func (d Decision) Allowed() bool { return d.Action == Allow }

// Layer is a list of rules, of which the last that matches wins.
type Layer struct {
	Name  string // for people: "agent code-reviewer", "your configuration"
	Rules []Rule
}

// Policy is what one agent may do.
type Policy struct {
	Root   string  // the worktree: absolute, clean, with links resolved
	Agent  string  // its name
	Layers []Layer // a later one wins
	Limit  []Name  // all that it was started with, beside the baseline; nil: no limit
	Asks   []Name  // what a person approves each time
	Parent *Policy // of the agent that started it; nil: a person did
}

// Decide decides about a request.
func (p *Policy) Decide(req Request) Decision {
	if d, refused := p.fixed(req); refused {
		return d
	}
	own := p.own(req)
	if p.Parent == nil {
		return own
	}
	if above := p.Parent.Decide(req); above.Action.stricter(own.Action) {
		if above.Layer == "" {
			above.Reason = fmt.Sprintf("%s, which started this agent, may not: %s", p.Parent.Agent, above.Reason)
		}
		return above
	}
	return own
}

// Grants returns the permissions of which the agent has at least something.
func (p *Policy) Grants() []Name {
	var granted []Name
	for _, name := range Names() {
		if p.grants(name) {
			granted = append(granted, name)
		}
	}
	return granted
}

func (p *Policy) grants(name Name) bool {
	if slices.Contains(Baseline(), name) {
		return true
	}
	if p.Limit != nil && !slices.Contains(p.Limit, name) || p.Parent != nil && !p.Parent.grants(name) {
		return false
	}
	some := false
	for _, l := range p.Layers {
		for _, r := range l.Rules {
			if r.Permission == name && (r.Action != Deny || r.MatchesAll()) {
				some = r.Action != Deny
			}
		}
	}
	return some
}

// fixed decides what no rule can change.
func (p *Policy) fixed(req Request) (d Decision, refused bool) {
	why := ""
	switch {
	case !slices.Contains(Names(), req.Permission):
		why = "no permission is granted for this tool"
	case isFile(req.Permission):
		why = reservedPath(p.Root, req.Path)
	}
	return Decision{Action: Deny, Reason: why}, why != ""
}

// own decides by the agent's own rules.
func (p *Policy) own(req Request) Decision {
	if p.Limit != nil && !slices.Contains(p.Limit, req.Permission) && !slices.Contains(Baseline(), req.Permission) {
		return Decision{Action: Deny, Agent: p.Agent, Reason: fmt.Sprintf("%s was not granted when %s was started", req.Permission.Word(), p.Agent)}
	}
	d := p.byRules(req)
	if d.Action == Allow && slices.Contains(p.Asks, req.Permission) {
		d = Decision{Action: Ask, Agent: p.Agent, Reason: fmt.Sprintf("%s of %s requires approval", req.Permission.Word(), p.Agent)}
	}
	return d
}

func (p *Policy) byRules(req Request) Decision {
	if req.Permission == BashExecute {
		return p.byStatements(req)
	}
	for _, l := range slices.Backward(p.Layers) {
		for _, r := range slices.Backward(l.Rules) {
			if r.matches(p.Root, req) {
				return p.decided(l, r)
			}
		}
	}
	return p.unruled(req.Permission)
}

func (p *Policy) decided(l Layer, r Rule) Decision {
	return Decision{Action: r.Action, Agent: p.Agent, Layer: l.Name, Rule: &r, Reason: fmt.Sprintf("%s (%s)", r, l.Name)}
}

// unruled decides where no rule matches.
func (p *Policy) unruled(name Name) Decision {
	switch {
	case slices.Contains(Baseline(), name):
		return Decision{Action: Allow, Agent: p.Agent, Reason: "every agent may read and search the worktree"}
	case p.Parent != nil && !p.Parent.grants(name):
		return Decision{Action: Deny, Agent: p.Agent, Reason: fmt.Sprintf("%s is granted neither to %s nor to %s, which started it", name.Word(), p.Agent, p.Parent.Agent)}
	}
	return Decision{Action: Ask, Agent: p.Agent, Reason: fmt.Sprintf("no rule grants %s to %s", name.Word(), p.Agent)}
}

// byStatements decides about a shell command: the strictest decision about one of its simple
// commands counts.
func (p *Policy) byStatements(req Request) Decision {
	strictest := p.byStatement(statement{})
	if !p.restricts(BashExecute) {
		return strictest // there is nothing to look for
	}
	statements, err := split(req.Command)
	if err != nil {
		return Decision{Action: Ask, Agent: p.Agent, Reason: err.Error()}
	}
	strictest = Decision{Action: Allow, Agent: p.Agent, Reason: "it runs no command"}
	if slices.ContainsFunc(statements, statement.moves) {
		for i := range statements {
			statements[i].lost = true
		}
	}
	for _, s := range statements {
		for _, d := range append([]Decision{p.byStatement(s)}, p.writes(req, s)...) {
			if d.Action.stricter(strictest.Action) || strictest.Layer == "" && d.Action == strictest.Action {
				strictest = d
			}
		}
	}
	return strictest
}

// restricts reports whether a rule distinguishes between calls that need a permission.
func (p *Policy) restricts(name Name) bool {
	for _, l := range p.Layers {
		if slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Permission == name && !r.MatchesAll() }) {
			return true
		}
	}
	return false
}

// byStatement decides about one simple command. A rule that allows must surely match. One that
// does not is respected if it possibly matches: then a person is asked.
func (p *Policy) byStatement(s statement) Decision {
	if s.text == "" && s.opaque == "" && len(s.writes) > 0 {
		return Decision{Action: Allow, Agent: p.Agent, Reason: "it runs no command"}
	}
	for _, l := range slices.Backward(p.Layers) {
		for _, r := range slices.Backward(l.Rules) {
			surely, possibly := r.matchesCommand(s.text)
			switch {
			case surely && (r.Action != Allow || s.opaque == "" || !p.denies()):
				return p.decided(l, r)
			case surely:
				return Decision{Action: Ask, Agent: p.Agent, Layer: l.Name, Rule: &r, Reason: s.opaque}
			case possibly && r.Action != Allow:
				return Decision{Action: Ask, Agent: p.Agent, Layer: l.Name, Rule: &r, Reason: fmt.Sprintf("it may match: %s (%s)", r, l.Name)}
			}
		}
	}
	return p.unruled(BashExecute)
}

// denies reports whether a rule forbids, or asks about, some shell commands.
func (p *Policy) denies() bool {
	for q := p; q != nil; q = q.Parent {
		for _, l := range q.Layers {
			if slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Permission == BashExecute && r.Action != Allow && !r.MatchesAll() }) {
				return true
			}
		}
	}
	return false
}

// writes decides about the files that a simple command redirects its output to.
func (p *Policy) writes(req Request, s statement) []Decision {
	var all []Decision
	for _, target := range s.writes {
		if strings.ContainsRune(target, hole) || s.lost && !filepath.IsAbs(target) {
			if p.restricts(FileWrite) || !p.grants(FileWrite) {
				all = append(all, Decision{Action: Ask, Agent: p.Agent, Reason: "the file that it writes is not known before it runs"})
			}
			continue
		}
		place, err := Resolve(cmp.Or(req.Dir, p.Root), target)
		if err != nil {
			all = append(all, Decision{Action: Ask, Agent: p.Agent, Reason: err.Error()})
			continue
		}
		if _, inside := within(p.Root, place); !inside {
			continue // the sandbox confines it
		}
		all = append(all, p.Decide(Request{Permission: FileWrite, Path: place}))
	}
	return all
}

// reservedPath returns why nobody may touch a file; empty: a rule decides.
func reservedPath(root, file string) string {
	inside, ok := within(root, file)
	if !ok {
		return file + " is outside the worktree"
	}
	for i, element := range strings.Split(inside, string(filepath.Separator)) {
		// On a case-insensitive file system, .GIT is .git.
		switch {
		case strings.EqualFold(element, ".git"):
			return inside + " belongs to git"
		case i == 0 && strings.EqualFold(element, ".coven"):
			return inside + " belongs to coven"
		}
	}
	return ""
}

// within returns path relative to root, if it is root or below it.
func within(root, path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}

// DefaultLayer is the name of the layer of what coven itself grants.
const DefaultLayer = "granted by coven"

// Granting returns a layer that allows everything of some permissions.
func Granting(layer string, names ...Name) Layer {
	l := Layer{Name: layer}
	for _, name := range names {
		l.Rules = append(l.Rules, Rule{Permission: name, Pattern: Everything, Action: Allow})
	}
	return l
}

// UserLayer is the name of the layer of the user's own rules, which hold for all agents.
const UserLayer = "your configuration"

// OfPrimary returns the policy of an agent that no other started, in a worktree: by the rules of
// its definition, or what coven grants if there are none, and by those of the user.
func OfPrimary(root, agent string, own []Rule, asks []Name, user []Rule) *Policy {
	layers := []Layer{Granting(DefaultLayer, FileRead, FileWrite, CodeSearch, BashExecute, AgentSpawn)}
	if len(own) > 0 {
		layers = []Layer{Granting(DefaultLayer, AgentSpawn), {Name: "agent " + agent, Rules: own}}
	}
	return &Policy{Root: root, Agent: agent, Asks: asks, Layers: append(layers, Layer{Name: UserLayer, Rules: user})}
}

// OfSubagent returns the policy of an agent that another started: what parent may do, restricted
// by the rules of its own definition, if it has any, by those of the user, and by limit (nil: it
// does not restrict).
func OfSubagent(parent *Policy, agent string, own []Rule, asks []Name, user []Rule, limit []Name) *Policy {
	first := Granting("inherited from "+parent.Agent, parent.Grants()...)
	if len(own) > 0 {
		first = Layer{Name: "agent " + agent, Rules: own}
	}
	return &Policy{
		Root: parent.Root, Agent: agent, Asks: asks, Limit: limit, Parent: parent,
		Layers: []Layer{first, {Name: UserLayer, Rules: user}},
	}
}

// OfBuild returns the policy of the primary agent "build" in a worktree, as coven ships it.
func OfBuild(root string) *Policy { return OfPrimary(root, "build", nil, nil, nil) }

// OfReader returns the policy of an agent that a reviewer or an arbiter uses: it may read and
// search, whatever else the rules of its own definition grant.
func OfReader(root, agent string, own []Rule, asks []Name, user []Rule) *Policy {
	return &Policy{
		Root: root, Agent: agent, Asks: asks, Limit: []Name{},
		Layers: []Layer{Granting(DefaultLayer, FileRead, CodeSearch), {Name: "agent " + agent, Rules: own}, {Name: UserLayer, Rules: user}},
	}
}
