package grimoires

import (
	"fmt"

	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/config/yamldoc"
)

// Loop is a step that repeats its steps.
type Loop struct {
	MaxIterations   int    `yaml:"max_iterations" about:"1 to 100; 3"`
	OnMaxIterations OnFail `yaml:"on_max_iterations" oneof:"block|continue|fail|exit" about:"block; exit is fail"`
	Steps           []Step `yaml:"steps" need:"true" later:"true" about:"the steps to repeat"`
}

func newLoop() Kind { return &Loop{MaxIterations: defaultIterations, OnMaxIterations: Block} }

// Type implements Kind.
func (*Loop) Type() string { return "loop" }

func (l *Loop) read(r *reader, at position) {
	r.limit(at, &l.MaxIterations, &l.OnMaxIterations)
	l.Steps = r.inner(at, r.nodes(at.node, "steps"))
}

// limit checks the maximum number of iterations of a loop.
func (r *reader) limit(at position, iterations *int, on *OnFail) {
	if given := r.doc.Key(at.node, "max_iterations"); *iterations < 1 || *iterations > maxIterations {
		r.doc.Fail(given, fmt.Sprintf("max_iterations must be 1 to %d", maxIterations), "")
	}
	if *on == exitOnMax {
		*on = Fail
	}
}

// inner reads the steps of a loop.
func (r *reader) inner(at position, nodes []yamldoc.Node) []Step {
	if at.depth+1 > maxDepth {
		r.doc.Fail(at.node, fmt.Sprintf("loops nest deeper than %d", maxDepth), "")
		return nil
	}
	return r.steps(at.node, nodes, at.depth+1)
}

func (l *Loop) inner() []Step { return l.Steps }

func (l *Loop) words() []string {
	return []string{"loop", fmt.Sprintf("at most %d iterations", l.MaxIterations)}
}

func (*Loop) describe(s *schema.Schema) {
	schema.Set(s, "steps", listOf(anyStep()))
	bound(s, "max_iterations", maxIterations)
}
