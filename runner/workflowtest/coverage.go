package workflowtest

import (
	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/runner"
)

// Coverage is which ways of a grimoire the tests take.
type Coverage struct {
	seen map[way]bool
}

type way struct {
	step string
	way  runner.Way
}

// NewCoverage returns an empty coverage.
func NewCoverage() *Coverage { return &Coverage{seen: map[way]bool{}} }

func (c *Coverage) saw(step string, w runner.Way, _ string) { c.seen[way{step, w}] = true }

// Missing is a way that no test takes.
type Missing struct {
	Step string `json:"step"`
	What string `json:"what"` // never runs, never skipped, never fails, ...
}

// Missing are the ways of a grimoire that no test takes, in the order of its
// steps. reached of all ways are taken.
func (c *Coverage) Missing(g *grimoires.Grimoire) (missing []Missing, reached, all int) {
	for s := range g.All() {
		var untaken []Missing
		ways := waysOf(s)
		for _, w := range ways {
			if !c.seen[way{s.Name, w.way}] {
				untaken = append(untaken, Missing{s.Name, w.never})
			}
		}
		all, reached = all+len(ways), reached+len(ways)-len(untaken)
		if len(untaken) == len(ways) {
			untaken = []Missing{{s.Name, "never runs"}}
		}
		missing = append(missing, untaken...)
	}
	return missing, reached, all
}

// untested is what is said of a way that no test takes.
type untested struct {
	way   runner.Way
	never string
}

// waysOf are the ways through a step.
func waysOf(s grimoires.Step) []untested {
	var ways []untested
	if s.When != "" {
		ways = append(ways, untested{runner.WaySkipped, "is never skipped"})
	}
	if s.AgentLoop != nil {
		return append(ways, untested{runner.WayContent, "never passes its review"}, untested{runner.WayEnough, "is never ended by its arbiter"},
			untested{runner.WayExhausted, "never comes to max_iterations"})
	}
	if s.Loop == nil {
		return append(ways, untested{runner.WayPassed, "never succeeds"}, untested{runner.WayFailed, "never fails"})
	}
	if exits(s) {
		ways = append(ways, untested{runner.WayExited, "is never left by a step"})
	}
	return append(ways, untested{runner.WayExhausted, "never comes to max_iterations"})
}

// exits says whether a step in a loop can end it.
func exits(loop grimoires.Step) bool {
	for _, s := range loop.Loop.Steps {
		if s.ExitLoop {
			return true
		}
	}
	return false
}
