package project

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/trust"
)

// VariableRequest is a request of the repository for a variable of the user's environment.
type VariableRequest struct {
	Kind     string // trust.KindVariable or trust.KindSecret
	Name     string // in the trust store
	Variable string
	Why      string   // where the repository asks for it
	Uses     []string // what the steps run that get it
}

// Item returns what the user trusts by granting the request.
func (r VariableRequest) Item(now time.Time) trust.Item {
	return trust.Item{Kind: r.Kind, Name: r.Name, What: "$" + r.Variable + ": " + r.Why, SHA256: r.hash(), Since: now}
}

// hash returns the hash of what the variable is used for.
func (r VariableRequest) hash() string {
	sum := sha256.Sum256([]byte(r.Kind + "\n" + r.Variable + "\n" + strings.Join(r.Uses, "\n")))
	return hex.EncodeToString(sum[:])
}

// called reports whether name names the request.
func (r VariableRequest) called(name string) bool {
	return name == r.Name || name == r.Variable || strings.HasPrefix(r.Name, name+":")
}

// RequestedVariables returns the variables that the repository's configuration asks for.
func (p *Project) RequestedVariables() []VariableRequest {
	var all []VariableRequest
	for _, name := range p.Config.Env.Asked {
		all = append(all, VariableRequest{Kind: trust.KindVariable, Name: name, Variable: name, Why: "env.pass of .coven/config.yaml, for agents, scripts and plugins"})
	}
	return all
}

// secretsOf returns the variables that a grimoire takes secrets from.
func secretsOf(g *grimoires.Grimoire, store *secret.Store) []VariableRequest {
	var all []VariableRequest
	for _, name := range g.Secrets() {
		if !store.FromEnvironment(name) {
			continue
		}
		r := VariableRequest{Kind: trust.KindSecret, Variable: secret.Variable(name), Why: "secret " + name + " of grimoire " + g.Name, Uses: usesOf(g, name)}
		r.Name = fmt.Sprintf("%s:%s:%.8s", g.Name, name, r.hash())
		all = append(all, r)
	}
	return all
}

// usesOf returns all commands and prompts of the steps that get a secret: a step can do
// anything with a secret that it gets.
func usesOf(g *grimoires.Grimoire, name string) []string {
	var uses []string
	for s := range g.All() {
		texts := s.Texts()
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "secrets") && strings.Contains(text, name) }) {
			continue
		}
		for _, text := range texts {
			uses = append(uses, s.Name+": "+text)
		}
	}
	slices.Sort(uses)
	return uses
}

// isProject reports whether a grimoire comes from the repository.
func (p *Project) isProject(name string) bool {
	_, source, err := p.Library.Text(name)
	if err != nil || source == grimoires.BuiltIn {
		return err != nil
	}
	where, err := untrustedPaths(p.Repo)
	return err != nil || !filepath.IsAbs(source) || where.Contains(source)
}

// SecretRequests returns the variables that a grimoire asks for, without those that the
// user's own or the built-in grimoire of that name asks for in the same way.
func (p *Project) SecretRequests(g *grimoires.Grimoire, store *secret.Store) []VariableRequest {
	asked := secretsOf(g, store)
	if len(asked) == 0 || p.isProject(g.Name) {
		return asked
	}
	own, err := p.Library.Load(g.Name)
	if err != nil {
		return asked
	}
	known := secretsOf(own, store)
	return slices.DeleteFunc(asked, func(r VariableRequest) bool {
		return slices.ContainsFunc(known, func(k VariableRequest) bool { return k.Name == r.Name && k.hash() == r.hash() })
	})
}

// refused returns the requests that the user has not granted.
func (p *Project) refused(requests []VariableRequest) ([]VariableRequest, error) {
	if len(requests) == 0 {
		return nil, nil
	}
	store, err := p.TrustStore()
	if err != nil || store.Everything() {
		return nil, err
	}
	items, err := store.Items()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(requests), func(r VariableRequest) bool {
		return slices.ContainsFunc(items, func(it trust.Item) bool {
			return it.Kind == r.Kind && it.Name == r.Name && it.SHA256 == r.hash()
		})
	}), nil
}

// CheckVariables returns an error if the user has not granted all requests.
func (p *Project) CheckVariables(requests []VariableRequest) error {
	refused, err := p.refused(requests)
	if err != nil || len(refused) == 0 {
		return err
	}
	var names []string
	for _, r := range refused {
		names = append(names, fmt.Sprintf("$%s (%s)", r.Variable, r.Why))
	}
	return exit.Usagef("coven trust", "this repository asks for environment variables that you have not granted: %s", strings.Join(names, ", "))
}

// VariableRequests returns all variables that the repository asks for: in its configuration,
// its grimoires, and the plans of sessions that can be resumed.
func (p *Project) VariableRequests() ([]VariableRequest, error) {
	all := p.RequestedVariables()
	store, err := p.Secrets()
	if err != nil {
		return nil, err
	}
	names, err := p.Library.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if g, err := p.Library.Load(name); err == nil && p.isProject(name) {
			all = append(all, secretsOf(g, store)...)
		}
	}
	sessions, _ := p.Finder.Summaries() // damaged sessions do not run
	for _, s := range sessions {
		if !s.Live() {
			continue
		}
		if plan, err := PlanOf(s.Dir()); err == nil {
			all = append(all, p.SecretRequests(plan.Grimoire, store)...)
		}
	}
	slices.SortStableFunc(all, func(a, b VariableRequest) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(all, func(a, b VariableRequest) bool { return a.Kind == b.Kind && a.Name == b.Name }), nil
}

// UntrustedVariables returns the requests that the user could grant, and the names that name
// no request.
func (p *Project) UntrustedVariables(names []string) (wanted []VariableRequest, rest []string, err error) {
	all, err := p.VariableRequests()
	if err != nil {
		return nil, nil, err
	}
	means := func(r VariableRequest) bool { return slices.ContainsFunc(names, r.called) }
	for _, name := range names {
		if !slices.ContainsFunc(all, func(r VariableRequest) bool { return r.called(name) }) {
			rest = append(rest, name)
		}
	}
	if wanted, err = p.refused(all); err != nil || len(names) == 0 {
		return wanted, rest, err
	}
	return slices.DeleteFunc(wanted, func(r VariableRequest) bool { return !means(r) }), rest, nil
}
