package project

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

// Wish is a variable of the user's environment that the repository asks for.
type Wish struct {
	Kind     string // trust.KindVariable or trust.KindSecret
	Name     string // as it is trusted
	Variable string
	Why      string // where the repository asks for it
	Uses     []string
}

// Item is what is trusted when the wish is.
func (w Wish) Item(now time.Time) trust.Item {
	return trust.Item{Kind: w.Kind, Name: w.Name, What: "$" + w.Variable + ": " + w.Why, SHA256: w.hash(), Since: now}
}

// hash is of what the variable is used for.
func (w Wish) hash() string {
	sum := sha256.Sum256([]byte(w.Kind + "\n" + w.Variable + "\n" + strings.Join(w.Uses, "\n")))
	return hex.EncodeToString(sum[:])
}

// called reports whether a person means the wish by a name.
func (w Wish) called(name string) bool {
	return name == w.Name || name == w.Variable || strings.HasPrefix(w.Name, name+":")
}

// Passed are the variables that the repository's configuration asks for.
func (h *Project) Passed() []Wish {
	var all []Wish
	for _, name := range h.Config.Env.Asked {
		all = append(all, Wish{Kind: trust.KindVariable, Name: name, Variable: name, Why: "env.pass of .coven/config.yaml, for agents, scripts and plugins"})
	}
	return all
}

// secretsOf are the variables that a grimoire takes secrets from.
func secretsOf(g *grimoires.Grimoire, store *secret.Store) []Wish {
	var all []Wish
	for _, name := range g.Secrets() {
		if !store.FromEnvironment(name) {
			continue
		}
		w := Wish{Kind: trust.KindSecret, Variable: secret.Variable(name), Why: "secret " + name + " of grimoire " + g.Name, Uses: usesOf(g, name)}
		w.Name = fmt.Sprintf("%s:%s:%.8s", g.Name, name, w.hash())
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
func (h *Project) isProject(name string) bool {
	_, source, err := h.Library.Text(name)
	if err != nil || source == grimoires.BuiltIn {
		return err != nil
	}
	where, err := territory(h.Repo)
	return err != nil || !filepath.IsAbs(source) || where.Contains(source)
}

// SecretWishes are the variables that a plan asks for, unless the user's own grimoire of
// that name, or the one that is built in, asks for the same.
func (h *Project) SecretWishes(g *grimoires.Grimoire, store *secret.Store) []Wish {
	asked := secretsOf(g, store)
	if len(asked) == 0 || h.isProject(g.Name) {
		return asked
	}
	own, err := h.Library.Load(g.Name)
	if err != nil {
		return asked
	}
	known := secretsOf(own, store)
	return slices.DeleteFunc(asked, func(w Wish) bool {
		return slices.ContainsFunc(known, func(k Wish) bool { return k.Name == w.Name && k.hash() == w.hash() })
	})
}

// refused are those of the wishes that the user has not trusted.
func (h *Project) refused(wishes []Wish) ([]Wish, error) {
	if len(wishes) == 0 {
		return nil, nil
	}
	store, err := h.TrustStore()
	if err != nil || store.Everything() {
		return nil, err
	}
	items, err := store.Items()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(wishes), func(w Wish) bool {
		return slices.ContainsFunc(items, func(it trust.Item) bool {
			return it.Kind == w.Kind && it.Name == w.Name && it.SHA256 == w.hash()
		})
	}), nil
}

// MayHave refuses to hand the user's variables to what a repository wants them for,
// until the user trusts that.
func (h *Project) MayHave(wishes []Wish) error {
	refused, err := h.refused(wishes)
	if err != nil || len(refused) == 0 {
		return err
	}
	var names []string
	for _, w := range refused {
		names = append(names, fmt.Sprintf("$%s (%s)", w.Variable, w.Why))
	}
	return exit.Usagef("coven trust", "this repository asks for variables of your environment that you have not trusted it with: %s", strings.Join(names, ", "))
}

// Wishes are all variables that the repository asks for: in its configuration, its
// grimoires, and the plans of sessions that can go on.
func (h *Project) Wishes() ([]Wish, error) {
	all := h.Passed()
	store, err := h.Secrets()
	if err != nil {
		return nil, err
	}
	names, err := h.Library.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if g, err := h.Library.Load(name); err == nil && h.isProject(name) {
			all = append(all, secretsOf(g, store)...)
		}
	}
	views, _ := session.List(h.Repo.Root) // the plans of damaged sessions are not run
	for _, v := range views {
		if !v.Live() {
			continue
		}
		if plan, err := PlanOf(v.Dir); err == nil {
			all = append(all, h.SecretWishes(plan.Grimoire, store)...)
		}
	}
	slices.SortStableFunc(all, func(a, b Wish) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return slices.CompactFunc(all, func(a, b Wish) bool { return a.Kind == b.Kind && a.Name == b.Name }), nil
}

// Wanted are the wishes that a person could trust, and the names that mean none.
func (h *Project) Wanted(names []string) (wanted []Wish, rest []string, err error) {
	all, err := h.Wishes()
	if err != nil {
		return nil, nil, err
	}
	means := func(w Wish) bool { return slices.ContainsFunc(names, w.called) }
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w Wish) bool { return w.called(name) }) {
			rest = append(rest, name)
		}
	}
	if wanted, err = h.refused(all); err != nil || len(names) == 0 {
		return wanted, rest, err
	}
	return slices.DeleteFunc(wanted, func(w Wish) bool { return !means(w) }), rest, nil
}
