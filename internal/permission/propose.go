package permission

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Refusal is a request that an agent was refused, and how often.
type Refusal struct {
	Request
	Agent string
	Own   []Rule // of its definition
	Asks  []Name
	Times int
}

// policy returns what decides about the request now.
func (r Refusal) policy(root string, user []Rule) *Policy {
	return OfPrimary(root, r.Agent, r.Own, r.Asks, user)
}

// Proposal is a rule that would allow refused requests.
type Proposal struct {
	Rule   Rule
	Allows int // refused requests that it allows by itself, counted each time
	Helps  int // more of them, which need other proposed rules, too
	Exact  bool
	// Overrides is a rule of the user that the proposed one would come after.
	Overrides *Rule
}

// Hopeless is a refused request that no proposed rule allows.
type Hopeless struct {
	Refusal
	Reason string
}

// minKin is how many similar requests are allowed by one rule with a pattern.
const minKin = 3

// Propose returns the narrowest rules for the user's own layer that would allow what was refused, the
// most useful first, and what no rule allows. user are the rules that there are; what is allowed
// meanwhile is left out.
func Propose(root string, user []Rule, refused []Refusal) ([]Proposal, []Hopeless) {
	var rules []Rule
	var open []Refusal
	var none []Hopeless
	for _, r := range refused {
		p := r.policy(root, user)
		if p.Decide(r.Request).Allowed() {
			continue
		}
		needed, reason := p.needs(r.Request)
		if reason != "" {
			none = append(none, Hopeless{r, reason})
			continue
		}
		rules, open = append(rules, needed...), append(open, r)
	}
	var all []Proposal
	for _, rule := range merged(unique(rules)) {
		all = append(all, measure(root, user, rule, merged(unique(rules)), open))
	}
	slices.SortStableFunc(all, func(a, b Proposal) int { return cmp.Compare(b.Allows+b.Helps, a.Allows+a.Helps) })
	return all, none
}

// needs returns the narrowest rules that allow a request, or why there are none.
func (p *Policy) needs(req Request) (rules []Rule, reason string) {
	if d, refused := p.fixed(req); refused {
		return nil, d.Reason
	}
	allow := func(name Name, pattern string) {
		rules = append(rules, Rule{Permission: name, Pattern: pattern, Action: Allow})
	}
	switch {
	case req.Permission == BashExecute:
		statements, err := split(req.Command)
		if err != nil {
			return nil, err.Error()
		}
		for _, s := range statements {
			if p.byStatement(s).Allowed() || s.text == "" {
				continue
			}
			if s.opaque != "" || strings.ContainsAny(s.text, "*\x00") {
				return nil, cmp.Or(s.opaque, "a rule for it would allow other commands")
			}
			allow(BashExecute, s.text)
		}
		for _, s := range statements {
			for _, target := range p.targets(req, s) {
				if !p.Decide(Request{Permission: FileWrite, Path: target}).Allowed() {
					allow(FileWrite, p.exactly(target))
				}
			}
		}
	case isFile(req.Permission):
		allow(req.Permission, p.exactly(req.Path))
	default:
		allow(req.Permission, globQuoted(req.Subject))
	}
	if d := p.with(rules...).Decide(req); !d.Allowed() {
		return nil, d.Reason
	}
	return rules, ""
}

// targets returns the files that a simple command redirects its output to, as far as they are
// known.
func (p *Policy) targets(req Request, s statement) []string {
	var all []string
	for _, target := range s.writes {
		if strings.ContainsRune(target, hole) {
			continue
		}
		if !path.IsAbs(target) {
			target = path.Join(cmp.Or(req.Dir, p.Root), target)
		}
		if _, inside := within(p.Root, target); inside {
			all = append(all, path.Clean(target))
		}
	}
	return all
}

// exactly returns the pattern that matches one file.
func (p *Policy) exactly(file string) string {
	inside, _ := within(p.Root, file)
	return "/" + globQuoted(inside)
}

func globQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(text)
}

// with returns the policy with more rules in its last layer.
func (p *Policy) with(rules ...Rule) *Policy {
	q := *p
	q.Layers = append(slices.Clone(p.Layers), Layer{Name: "proposed", Rules: rules})
	return &q
}

// measure says what a rule changes for refused requests. The others are proposed, too.
func measure(root string, user []Rule, rule Rule, others []Rule, refused []Refusal) Proposal {
	found := Proposal{Rule: rule, Exact: !isKin(rule)}
	without := slices.DeleteFunc(slices.Clone(others), func(r Rule) bool { return r == rule })
	for _, r := range refused {
		p := r.policy(root, user)
		switch {
		case p.with(rule).Decide(r.Request).Allowed():
			found.Allows += r.Times
		case p.with(others...).Decide(r.Request).Allowed() && !p.with(without...).Decide(r.Request).Allowed():
			found.Helps += r.Times
		default:
			continue
		}
		if d := p.Decide(r.Request); d.Rule != nil && d.Layer == UserLayer {
			found.Overrides = d.Rule
		}
	}
	return found
}

// merged replaces many similar rules by one with a pattern: files of one directory with one extension, commands that begin with the
// same words.
func merged(rules []Rule) []Rule {
	kin := map[Rule]int{}
	for _, r := range rules {
		kin[kinOf(r)]++
	}
	var all []Rule
	for _, r := range rules {
		if k := kinOf(r); kin[k] >= minKin {
			r = k
		}
		all = append(all, r)
	}
	return unique(all)
}

// kinOf returns the rule with a pattern that also matches what is similar; the rule itself: there is
// none.
func kinOf(r Rule) Rule {
	switch {
	case r.Permission == BashExecute:
		words := strings.Fields(r.Pattern)
		switch {
		case len(words) > 2 && !strings.HasPrefix(words[1], "-"):
			r.Pattern = words[0] + " " + words[1] + " *"
		case len(words) > 1:
			r.Pattern = words[0] + " *"
		}
	case isFile(r.Permission):
		dir, file := path.Split(r.Pattern)
		if dir != "/" {
			r.Pattern = dir + "*" + path.Ext(file)
		}
	}
	return r
}

// isKin reports whether kinOf made the pattern of a rule.
func isKin(r Rule) bool {
	return strings.Contains(strings.ReplaceAll(r.Pattern, `\*`, ""), "*")
}

func unique(rules []Rule) []Rule {
	var all []Rule
	for _, r := range rules {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all
}
