package permission

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Refusal is a refused request of an agent, with the number of times it was refused.
type Refusal struct {
	Request
	Agent string
	Own   []Rule // rules of its definition
	Asks  []Name
	Times int
}

// policy returns the agent's current policy.
func (r Refusal) policy(root string, user []Rule) *Policy {
	return OfPrimary(root, r.Agent, r.Own, r.Asks, user)
}

// Proposal is a rule that would allow refused requests.
type Proposal struct {
	Rule   Rule
	Allows int // number of refusals that the rule alone would have avoided
	Helps  int // further refusals that it would have avoided together with other proposed rules
	Exact  bool
	// Overrides is the user's rule that the proposed one would override, if any.
	Overrides *Rule
}

// Unresolvable is a refused request that no proposed rule can allow.
type Unresolvable struct {
	Refusal
	Reason string
}

// minSimilar is the minimum number of similar rules that are merged into one with a pattern.
const minSimilar = 3

// Propose returns the narrowest rules for the user's layer that would allow the refused requests, the
// most useful first, and the requests that no rule can allow. user are the existing rules. Requests that
// they allow by now are omitted.
func Propose(root string, user []Rule, refused []Refusal) ([]Proposal, []Unresolvable) {
	var rules []Rule
	var open []Refusal
	var none []Unresolvable
	for _, r := range refused {
		p := r.policy(root, user)
		if p.Decide(r.Request).Allowed() {
			continue
		}
		needed, reason := p.needs(r.Request)
		if reason != "" {
			none = append(none, Unresolvable{r, reason})
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

// needs returns the narrowest rules that allow a request, or the reason why no rule can.
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
			if s.opaque != "" && !s.named || strings.ContainsAny(s.text, "*\x00") {
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

// targets returns the known targets of a statement's output redirections.
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

// exactly returns the pattern that matches only file.
func (p *Policy) exactly(file string) string {
	inside, _ := within(p.Root, file)
	return "/" + globQuoted(inside)
}

func globQuoted(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(text)
}

// with returns the policy with an additional last layer of rules.
func (p *Policy) with(rules ...Rule) *Policy {
	q := *p
	q.Layers = append(slices.Clone(p.Layers), Layer{Name: "proposed", Rules: rules})
	return &q
}

// measure determines the effect of a rule on refused requests. others are all proposed rules.
func measure(root string, user []Rule, rule Rule, others []Rule, refused []Refusal) Proposal {
	found := Proposal{Rule: rule, Exact: !isPattern(rule)}
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

// merged replaces similar rules by one with a pattern. Similar are files with the same directory and extension,
// and commands with the same first words.
func merged(rules []Rule) []Rule {
	kin := map[Rule]int{}
	for _, r := range rules {
		kin[patternOf(r)]++
	}
	var all []Rule
	for _, r := range rules {
		if k := patternOf(r); kin[k] >= minSimilar {
			r = k
		}
		all = append(all, r)
	}
	return unique(all)
}

// patternOf returns the pattern rule that covers r and similar rules, or r itself if there is none.
func patternOf(r Rule) Rule {
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

// isPattern reports whether the pattern of a rule comes from patternOf.
func isPattern(r Rule) bool {
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
