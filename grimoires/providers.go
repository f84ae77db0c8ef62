package grimoires

import (
	"cmp"
	"slices"
)

// Providers returns the names of the providers of the agents that a run may need, sorted. standard is the
// provider of agents that do not name one. It does not include an agent that resolves conflicts, because
// there may be none, nor agents that plugins run, because they are unknown.
func (g *Grimoire) Providers(standard string) []string {
	var names []string
	for s := range g.All() {
		if _, lands := s.Kind.(*Merge); lands {
			continue
		}
		for _, a := range s.agents() {
			names = append(names, cmp.Or(a.Provider, standard))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
