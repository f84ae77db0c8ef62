package grimoires

import (
	"cmp"
	"slices"
)

// Providers returns the names of the providers whose agents a run may need, sorted.
// standard is the provider of agents that name none. An agent that resolves conflicts is not
// counted: there may be none. What a plugin runs is not known.
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
