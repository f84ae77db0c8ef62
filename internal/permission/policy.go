// Package permission decides which actions an agent may perform. A decision depends only
// on the policy, the request, and, for output redirections of shell commands, the symbolic links in the
// worktree.
//
// A permission is a kind of action. Rules refine it by patterns. They are organized in layers,
// and later layers take precedence. An agent never has more rights than the agent that started it: each
// request is decided by its own rules and by those of all its ancestors, and the strictest
// decision wins. Only reading and searching are granted by default: any other
// request without a matching rule needs a person's approval.
//
// No agent may change files outside of the worktree, or the files of git and coven inside it.
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
	// Path is the file of a file permission. It is absolute and clean, and all symbolic links are
	// resolved.
	Path string
	// Command is the shell command of bash.execute. Dir is its absolute directory; it is empty for the
	// top of the worktree.
	Command, Dir string
	// Subject is the object of other permissions: a host, an agent, or SERVER/TOOL.
	Subject string
}

// Decision is the decision about a request.
type Decision struct {
	Action Action
	Reason string // one line
	Agent  string // the agent whose rules decided; may be empty
	Layer  string // the layer of the rule, if there is one
	Rule   *Rule
}

// Allowed reports whether the action may proceed without asking.
func (d Decision) Allowed() bool { return d.Action == Allow }

// Layer is a list of rules. The last matching rule wins.
type Layer struct {
	Name  string // for messages: "agent code-reviewer", "your configuration"
	Rules []Rule
}

// Policy holds the rights of one agent.
type Policy struct {
	Root   string  // the worktree: absolute, clean, links resolved
	Agent  string  // the agent's name
	Layers []Layer // in ascending precedence
	Limit  []Name  // permissions granted at its start, in addition to the baseline; nil for no limit
	Asks   []Name  // permissions that need approval for each request
	Parent *Policy // policy of the agent that started it; nil if a person did
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

// Grants returns the permissions that the agent has at least partly.
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

// fixed checks the restrictions that no rule can lift.
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

// own decides by the agent's own rules, ignoring its parent.
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

// unruled returns the decision if no rule matches.
func (p *Policy) unruled(name Name) Decision {
	switch {
	case slices.Contains(Baseline(), name):
		return Decision{Action: Allow, Agent: p.Agent, Reason: "every agent may read and search the worktree"}
	case p.Parent != nil && !p.Parent.grants(name):
		return Decision{Action: Deny, Agent: p.Agent, Reason: fmt.Sprintf("%s is granted neither to %s nor to %s, which started it", name.Word(), p.Agent, p.Parent.Agent)}
	}
	return Decision{Action: Ask, Agent: p.Agent, Reason: fmt.Sprintf("no rule grants %s to %s", name.Word(), p.Agent)}
}

// byStatements decides about a shell command. The strictest decision about its statements
// wins.
func (p *Policy) byStatements(req Request) Decision {
	strictest := p.byStatement(statement{})
	if !p.restricts(BashExecute) && !p.refuses(FileWrite) {
		return strictest // all statements have the same decision
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

// restricts reports whether a rule makes a distinction within a permission.
func (p *Policy) restricts(name Name) bool {
	for _, l := range p.Layers {
		if slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Permission == name && !r.MatchesAll() }) {
			return true
		}
	}
	return false
}

// refuses reports whether a rule denies a permission or asks about it, at least partly.
func (p *Policy) refuses(name Name) bool {
	for _, l := range p.Layers {
		if slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Permission == name && r.Action != Allow }) {
			return true
		}
	}
	return false
}

// byStatement decides about one statement. An allowing rule must certainly match. If another rule
// possibly matches, a person is asked.
func (p *Policy) byStatement(s statement) Decision {
	if s.text == "" && s.opaque == "" && len(s.writes) > 0 {
		return Decision{Action: Allow, Agent: p.Agent, Reason: "it runs no command"}
	}
	for _, l := range slices.Backward(p.Layers) {
		for _, r := range slices.Backward(l.Rules) {
			surely, possibly := r.matchesCommand(s.text)
			switch {
			case surely && (r.Action != Allow || s.opaque == "" || s.named && !r.MatchesAll() || !p.denies()):
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

// denies reports whether a rule of the agent or an ancestor denies, or asks about, certain shell commands.
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

// writes decides about the output redirections of a statement.
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
			continue // the sandbox restricts it
		}
		all = append(all, p.Decide(Request{Permission: FileWrite, Path: place}))
	}
	return all
}

// reservedPath returns why no agent may touch a file, or "" if rules decide.
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

// within returns path relative to root if it is root or below it.
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

// DefaultLayer is the name of the layer with coven's default rules.
const DefaultLayer = "granted by coven"

// Granting returns a layer that grants permissions without restrictions.
func Granting(layer string, names ...Name) Layer {
	l := Layer{Name: layer}
	for _, name := range names {
		l.Rules = append(l.Rules, Rule{Permission: name, Pattern: Everything, Action: Allow})
	}
	return l
}

// UserLayer is the name of the layer with the user's rules, which apply to all agents.
const UserLayer = "your configuration"

// OfPrimary returns the policy in the worktree root of an agent that no other agent started. It has the
// rules of its definition, or coven's default rules if there are none, and the user's rules.
func OfPrimary(root, agent string, own []Rule, asks []Name, user []Rule) *Policy {
	layers := []Layer{Granting(DefaultLayer, FileRead, FileWrite, CodeSearch, BashExecute, AgentSpawn)}
	if len(own) > 0 {
		layers = []Layer{Granting(DefaultLayer, AgentSpawn), {Name: "agent " + agent, Rules: own}}
	}
	return &Policy{Root: root, Agent: agent, Asks: asks, Layers: append(layers, Layer{Name: UserLayer, Rules: user})}
}

// OfSubagent returns the policy of an agent started by parent: the rights of parent, restricted
// by the rules of its own definition, if there are any, by those of the user, and by limit. A nil limit
// does not restrict.
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

// OfBuild returns the policy of the built-in primary agent "build" in a worktree.
func OfBuild(root string) *Policy { return OfPrimary(root, "build", nil, nil, nil) }

// OfReader returns the policy of an agent for a reviewer or an arbiter. It may only read and
// search, even if its definition grants more.
func OfReader(root, agent string, own []Rule, asks []Name, user []Rule) *Policy {
	return &Policy{
		Root: root, Agent: agent, Asks: asks, Limit: []Name{},
		Layers: []Layer{Granting(DefaultLayer, FileRead, CodeSearch), {Name: "agent " + agent, Rules: own}, {Name: UserLayer, Rules: user}},
	}
}
