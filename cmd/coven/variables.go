package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/secret"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/trust"
)

// wish is a variable of the user's environment that the repository asks for.
type wish struct {
	kind     string // trust.KindVariable or trust.KindSecret
	name     string // as it is trusted
	variable string
	why      string // where the repository asks for it
	uses     []string
}

// item is what is trusted when the wish is.
func (w wish) item(now time.Time) trust.Item {
	return trust.Item{Kind: w.kind, Name: w.name, What: "$" + w.variable + ": " + w.why, SHA256: w.hash(), Since: now}
}

// hash is of what the variable is used for.
func (w wish) hash() string {
	sum := sha256.Sum256([]byte(w.kind + "\n" + w.variable + "\n" + strings.Join(w.uses, "\n")))
	return hex.EncodeToString(sum[:])
}

// called reports whether a person means the wish by a name.
func (w wish) called(name string) bool {
	return name == w.name || name == w.variable || strings.HasPrefix(w.name, name+":")
}

// passed are the variables that the repository's configuration asks for.
func (h *house) passed() []wish {
	var all []wish
	for _, name := range h.config.Env.Asked {
		all = append(all, wish{kind: trust.KindVariable, name: name, variable: name, why: "env.pass of .coven/config.yaml, for agents, scripts and plugins"})
	}
	return all
}

// secretsOf are the variables that a grimoire takes secrets from.
func secretsOf(g *grimoires.Grimoire, store *secret.Store) []wish {
	var all []wish
	for _, name := range g.Secrets() {
		if !store.FromEnvironment(name) {
			continue
		}
		w := wish{kind: trust.KindSecret, variable: secret.Variable(name), why: "secret " + name + " of grimoire " + g.Name, uses: usesOf(g, name)}
		w.name = fmt.Sprintf("%s:%s:%.8s", g.Name, name, w.hash())
		all = append(all, w)
	}
	return all
}

// usesOf are all that the steps of a grimoire run or say that have a secret: a step
// which gets it in a variable can do anything with it.
func usesOf(g *grimoires.Grimoire, name string) []string {
	var uses []string
	for s := range g.All() {
		texts := textsOf(s)
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

// textsOf are the command or prompt of a step, where it runs, and what it gets.
func textsOf(s grimoires.Step) []string {
	var texts []string
	given := map[string]string{}
	switch {
	case s.Agent != nil:
		texts = append(texts, s.Agent.Prompt, s.Agent.Workdir)
		maps.Copy(given, s.Agent.Input)
		maps.Copy(given, s.Agent.Env)
	case s.Script != nil:
		texts, given = append(texts, s.Script.Command, s.Script.Workdir), s.Script.Env
	}
	for key, text := range given {
		texts = append(texts, key+"="+text)
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// isProject reports whether a grimoire is the repository's.
func (h *house) isProject(name string) bool {
	_, source, err := h.library.Text(name)
	if err != nil || source == grimoires.BuiltIn {
		return err != nil
	}
	where, err := territory(h.repo)
	return err != nil || !filepath.IsAbs(source) || where.Contains(source)
}

// secretWishes are the variables that a plan asks for, unless the user's own grimoire of
// that name, or the one that is built in, asks for the same.
func (h *house) secretWishes(g *grimoires.Grimoire, store *secret.Store) []wish {
	asked := secretsOf(g, store)
	if len(asked) == 0 || h.isProject(g.Name) {
		return asked
	}
	own, err := h.library.Load(g.Name)
	if err != nil {
		return asked
	}
	known := secretsOf(own, store)
	return slices.DeleteFunc(asked, func(w wish) bool {
		return slices.ContainsFunc(known, func(k wish) bool { return k.name == w.name && k.hash() == w.hash() })
	})
}

// refused are those of the wishes that the user has not trusted.
func (h *house) refused(wishes []wish) ([]wish, error) {
	if len(wishes) == 0 {
		return nil, nil
	}
	store, err := h.trustStore()
	if err != nil || store.Everything() {
		return nil, err
	}
	items, err := store.Items()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool {
		return slices.ContainsFunc(items, func(it trust.Item) bool {
			return it.Kind == w.kind && it.Name == w.name && it.SHA256 == w.hash()
		})
	}), nil
}

// mayHave refuses to hand the user's variables to what a repository wants them for,
// until the user trusts that.
func (h *house) mayHave(wishes []wish) error {
	refused, err := h.refused(wishes)
	if err != nil || len(refused) == 0 {
		return err
	}
	var names []string
	for _, w := range refused {
		names = append(names, fmt.Sprintf("$%s (%s)", w.variable, w.why))
	}
	return exit.Usagef("coven trust", "this repository asks for variables of your environment that you have not trusted it with: %s", strings.Join(names, ", "))
}

// wishes are all variables that the repository asks for: in its configuration, its
// grimoires, and the plans of sessions that can go on.
func (h *house) wishes() ([]wish, error) {
	all := h.passed()
	store, err := h.secrets()
	if err != nil {
		return nil, err
	}
	names, err := h.library.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if g, err := h.library.Load(name); err == nil && h.isProject(name) {
			all = append(all, secretsOf(g, store)...)
		}
	}
	views, _ := session.List(h.repo.Root) // the plans of damaged sessions are not run
	for _, v := range views {
		if !v.Live() {
			continue
		}
		if plan, err := planOf(v.Dir); err == nil {
			all = append(all, h.secretWishes(plan.Grimoire, store)...)
		}
	}
	slices.SortStableFunc(all, func(a, b wish) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name)) })
	return slices.CompactFunc(all, func(a, b wish) bool { return a.kind == b.kind && a.name == b.name }), nil
}

// wanted are the wishes that a person could trust, and the names that mean none.
func (h *house) wanted(names []string) (wanted []wish, rest []string, err error) {
	all, err := h.wishes()
	if err != nil {
		return nil, nil, err
	}
	means := func(w wish) bool { return slices.ContainsFunc(names, w.called) }
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w wish) bool { return w.called(name) }) {
			rest = append(rest, name)
		}
	}
	if wanted, err = h.refused(all); err != nil || len(names) == 0 {
		return wanted, rest, err
	}
	return slices.DeleteFunc(wanted, func(w wish) bool { return !means(w) }), rest, nil
}
