package workflowtest

import (
	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/runner/engine"
)

// Coverage records the exits that tests take from the steps of a grimoire.
type Coverage struct {
	seen map[exit]bool
}

type exit struct {
	step   string
	reason engine.ExitReason
}

// NewCoverage returns an empty coverage.
func NewCoverage() *Coverage { return &Coverage{seen: map[exit]bool{}} }

func (c *Coverage) exited(step string, reason engine.ExitReason, _ string) {
	c.seen[exit{step, reason}] = true
}

// Missing is an exit of a step that no test takes.
type Missing struct {
	Step string `json:"step"`
	What string `json:"what"` // such as "never runs"
}

// Missing returns the exits that no test takes, in the order of the steps. reached is the number of exits
// that tests take, and all is the number of all exits.
func (c *Coverage) Missing(g *grimoires.Grimoire) (missing []Missing, reached, all int) {
	for s := range g.All() {
		var untaken []Missing
		exits := exitsOf(s)
		for _, e := range exits {
			if !c.seen[exit{s.Name, e.reason}] {
				untaken = append(untaken, Missing{s.Name, e.never})
			}
		}
		all, reached = all+len(exits), reached+len(exits)-len(untaken)
		if len(untaken) == len(exits) {
			untaken = []Missing{{s.Name, "never runs"}}
		}
		missing = append(missing, untaken...)
	}
	return missing, reached, all
}

// untested describes an exit that no test takes.
type untested struct {
	reason engine.ExitReason
	never  string
}

func exitsOf(s grimoires.Step) []untested {
	var all []untested
	if s.When != "" {
		all = append(all, untested{engine.ExitSkipped, "is never skipped"})
	}
	exhausted := untested{engine.ExitExhausted, "never reaches max_iterations"}
	switch k := s.Kind.(type) {
	case *grimoires.AgentLoop:
		return append(all, untested{engine.ExitContent, "never passes its review"}, untested{engine.ExitNotActionable, "is never ended by its arbiter"}, exhausted)
	case *grimoires.Loop:
		if hasExit(k) {
			all = append(all, untested{engine.ExitByStep, "is never exited by a step"})
		}
		return append(all, exhausted)
	}
	return append(all, untested{engine.ExitPassed, "never succeeds"}, untested{engine.ExitFailed, "never fails"})
}

// hasExit reports whether a step in the loop can end it.
func hasExit(loop *grimoires.Loop) bool {
	for _, s := range loop.Steps {
		if s.ExitLoop {
			return true
		}
	}
	return false
}
