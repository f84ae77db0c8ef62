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
	"github.com/coven-run/coven/internal/project/trust"
	"github.com/coven-run/coven/internal/secret"
)

// Request is a request of the repository to read a variable of the user's environment or to start an MCP server.
type Request struct {
	Kind     string   // trust.KindVariable, trust.KindSecret or trust.KindServer
	Name     string   // key in the trust store
	Variable string   // empty for a server
	Why      string   // which part of the repository makes the request
	Uses     []string // commands and prompts of the steps that get the variable, or a description of the server
}

// Item returns the trust item that grants the request.
func (r Request) Item(now time.Time) trust.Item {
	return trust.Item{Kind: r.Kind, Name: r.Name, What: r.what() + ": " + r.Why, SHA256: r.hash(), Since: now}
}

// what names the requested variable or server.
func (r Request) what() string {
	if r.Variable == "" {
		return r.Kind + " " + r.Name
	}
	return "$" + r.Variable
}

// hash returns the hash of the request and its uses.
func (r Request) hash() string {
	sum := sha256.Sum256([]byte(r.Kind + "\n" + r.Variable + "\n" + strings.Join(r.Uses, "\n")))
	return hex.EncodeToString(sum[:])
}

// called reports whether name refers to the request.
func (r Request) called(name string) bool {
	return name == r.Name || r.Variable != "" && name == r.Variable || strings.HasPrefix(r.Name, name+":")
}

// RequestedVariables returns the variables that the repository's configuration requests.
func (p *Project) RequestedVariables() []Request {
	var all []Request
	for _, name := range p.Config.Env.Asked {
		all = append(all, Request{Kind: trust.KindVariable, Name: name, Variable: name, Why: "env.pass of .coven/config.yaml, for agents, scripts and plugins"})
	}
	return all
}

// secretsOf returns the variables that a grimoire reads secrets from.
func secretsOf(g *grimoires.Grimoire, store *secret.Store) []Request {
	var all []Request
	for _, name := range g.Secrets() {
		if !store.FromEnvironment(name) {
			continue
		}
		r := Request{Kind: trust.KindSecret, Variable: secret.Variable(name), Why: "secret " + name + " of grimoire " + g.Name, Uses: usesOf(g, name)}
		r.Name = fmt.Sprintf("%s:%s:%.8s", g.Name, name, r.hash())
		all = append(all, r)
	}
	return all
}

// usesOf returns all commands and prompts of the steps that get a secret, because a step can use
// its secrets for anything.
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
	where, err := untrustedPaths(p.definitions())
	return err != nil || !filepath.IsAbs(source) || where.Contains(source)
}

// SecretRequests returns the variables that a grimoire requests. It omits requests that the
// user's own or the built-in grimoire with the same name makes, too.
func (p *Project) SecretRequests(g *grimoires.Grimoire, store *secret.Store) []Request {
	asked := secretsOf(g, store)
	if len(asked) == 0 || p.isProject(g.Name) {
		return asked
	}
	own, err := p.Library.Load(g.Name)
	if err != nil {
		return asked
	}
	known := secretsOf(own, store)
	return slices.DeleteFunc(asked, func(r Request) bool {
		return slices.ContainsFunc(known, func(k Request) bool { return k.Name == r.Name && k.hash() == r.hash() })
	})
}

// refused returns the requests that the user has not granted.
func (p *Project) refused(requests []Request) ([]Request, error) {
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
	return slices.DeleteFunc(slices.Clone(requests), func(r Request) bool {
		return slices.ContainsFunc(items, func(it trust.Item) bool {
			return it.Kind == r.Kind && it.Name == r.Name && it.SHA256 == r.hash()
		})
	}), nil
}

// CheckRequests returns an error unless the user has granted all requests.
func (p *Project) CheckRequests(requests []Request) error {
	refused, err := p.refused(requests)
	if err != nil || len(refused) == 0 {
		return err
	}
	var names []string
	for _, r := range refused {
		why := r.Why
		if r.Variable == "" {
			why = r.Uses[0]
		}
		names = append(names, fmt.Sprintf("%s (%s)", r.what(), why))
	}
	return exit.Usagef("coven trust", "this repository asks for what you have not granted: %s", strings.Join(names, ", "))
}

// CheckPlan returns an error unless the user has granted the secrets of the environment and the MCP
// servers of a plan. From then on, records do not show the values of the servers' variables.
func (p *Project) CheckPlan(plan *grimoires.Plan, store *secret.Store) error {
	for _, s := range plan.MCP {
		store.HideEnv(p.Env.Environ(), func(name string) bool { return slices.Contains(s.Variables(), name) })
	}
	wanted, err := p.ServerRequests(plan.MCP)
	if err != nil {
		return err
	}
	return p.CheckRequests(append(wanted, p.SecretRequests(plan.Grimoire, store)...))
}

// Requests returns all requests of the repository: those of its configuration, its grimoires, its mcp.json,
// and the plans of sessions that can be resumed.
func (p *Project) Requests() ([]Request, error) {
	all, err := p.requestedServers(nil)
	if err != nil {
		return nil, err
	}
	all = append(all, p.RequestedVariables()...)
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
	sessions, _ := p.Finder.Known() // damaged sessions do not run
	for _, s := range sessions {
		if !s.Live() {
			continue
		}
		if plan, err := PlanOf(s.Dir()); err == nil {
			all = append(all, p.SecretRequests(plan.Grimoire, store)...)
			servers, err := p.requestedServers(plan.MCP)
			if err != nil {
				return nil, err
			}
			all = append(all, servers...)
		}
	}
	slices.SortStableFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(all, func(a, b Request) bool { return a.Kind == b.Kind && a.Name == b.Name && a.hash() == b.hash() }), nil
}

// UntrustedRequests returns the named requests that are not granted, or all of them if there are no names.
// It also returns the names that match no request.
func (p *Project) UntrustedRequests(names []string) (wanted []Request, rest []string, err error) {
	all, err := p.Requests()
	if err != nil {
		return nil, nil, err
	}
	means := func(r Request) bool { return slices.ContainsFunc(names, r.called) }
	for _, name := range names {
		if !slices.ContainsFunc(all, func(r Request) bool { return r.called(name) }) {
			rest = append(rest, name)
		}
	}
	if wanted, err = p.refused(all); err != nil || len(names) == 0 {
		return wanted, rest, err
	}
	return slices.DeleteFunc(wanted, func(r Request) bool { return !means(r) }), rest, nil
}
