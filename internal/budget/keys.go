package budget

import (
	"time"

	"github.com/coven-run/coven/internal/yamldoc"
)

// Keys is a budget as a file has it.
type Keys struct {
	USD    yamldoc.At[float64]       `yaml:"usd" about:"US dollars"`
	Tokens yamldoc.At[int64]         `yaml:"tokens" about:"tokens that the model reads for the first time or writes"`
	Turns  yamldoc.At[int]           `yaml:"turns" about:"answers of the model"`
	Wall   yamldoc.At[time.Duration] `yaml:"wall" about:"time at work"`
}

// Read returns the budget, and records in the document what is none.
func (k Keys) Read(doc *yamldoc.Document) Amount {
	a := Amount{USD: k.USD.Value, Tokens: k.Tokens.Value, Turns: k.Turns.Value, Wall: k.Wall.Value}
	for _, given := range []struct {
		at      yamldoc.Place
		set, ok bool
	}{
		{k.USD, k.USD.Set(), a.USD > 0}, {k.Tokens, k.Tokens.Set(), a.Tokens > 0}, {k.Turns, k.Turns.Set(), a.Turns > 0},
	} {
		if given.set && !given.ok {
			doc.Fail(given.at, "a budget must be more than 0", "leave it out for none")
		}
	}
	return a
}
