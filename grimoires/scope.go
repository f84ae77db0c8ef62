package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/suggest"
	"github.com/coven-run/coven/internal/tmpl"
)

// shape is what a value in the data of templates is made of: known keys, any
// keys (open), or none.
type shape struct {
	keys map[string]shape
	open bool
}

func leaves(names ...string) shape {
	s := shape{keys: map[string]shape{}}
	for _, name := range names {
		s.keys[name] = shape{}
	}
	return s
}

// result is the shape of what a step gave.
func result() shape {
	s := leaves("output", "summary", "error", "exit_code", "commit", "files", "success", "failed", "skipped")
	s.keys["outputs"] = shape{open: true}
	return s
}

// scope knows what the templates of a grimoire may name.
type scope struct {
	steps   map[string]place
	outputs map[string][]string // steps that write a name with output
}

// place is where a step stands: its number in the order of the file, and the
// loops that it is in.
type place struct {
	number int
	loops  []string
}

func newScope(g *Grimoire) *scope {
	s := &scope{steps: map[string]place{}, outputs: map[string][]string{}}
	s.add(g.Steps, nil)
	return s
}

func (s *scope) add(steps []Step, loops []string) {
	for _, step := range steps {
		s.steps[step.Name] = place{len(s.steps), loops}
		if step.Output != "" {
			s.outputs[step.Output] = append(s.outputs[step.Output], step.Name)
		}
		if step.Loop != nil {
			s.add(step.Loop.Steps, append(slices.Clone(loops), step.Name))
		}
	}
}

// before reports whether a step can have ended when another begins: it stands
// earlier, or both are in one loop.
func (s *scope) before(name, reader string) bool {
	a, b := s.steps[name], s.steps[reader]
	if slices.Contains(b.loops, name) {
		return false
	}
	if a.number < b.number {
		return true
	}
	return len(a.loops) > 0 && len(b.loops) > 0 && a.loops[0] == b.loops[0]
}

// reserved are the names in the data that are not steps.
func reserved() map[string]shape {
	return map[string]shape{
		"task": leaves(taskKeys()...), "bead": leaves(taskKeys()...),
		"previous": result(), "loop_entry": result(),
		"loop":      leaves("iteration", "max_iterations"),
		"artifacts": leaves("files", "commit", "commits", "task_ids"),
		"attempt":   {}, "steps": {}, "input": {},
	}
}

// shape is the data of a step's templates. inputs are nil except for prompts.
func (s *scope) shape(step string, inputs []string) shape {
	data := shape{keys: map[string]shape{}}
	steps := shape{keys: map[string]shape{}}
	for output, writers := range s.outputs {
		if slices.ContainsFunc(writers, func(w string) bool { return s.before(w, step) }) {
			data.keys[output] = shape{}
		}
	}
	for name := range s.steps {
		if s.before(name, step) {
			steps.keys[name], data.keys[name] = result(), result()
		}
	}
	maps.Copy(data.keys, reserved())
	data.keys["steps"], data.keys["input"] = steps, leaves(inputs...)
	return data
}

// find says what is wrong with a path, and where in it.
func (s *scope) find(data shape, step string, path []string) (index int, msg, hint string) {
	for i, key := range path {
		next, ok := data.keys[key]
		switch {
		case data.open:
			return 0, "", ""
		case ok:
			data = next
			continue
		case data.keys == nil:
			return i, fmt.Sprintf("%s has no parts", label(path[:i])), ""
		}
		msg, hint = s.unknown(data, step, path[:i], key)
		return i, msg, hint
	}
	return 0, "", ""
}

func (s *scope) unknown(data shape, step string, before []string, key string) (msg, hint string) {
	isStep := len(before) == 0 || slices.Equal(before, []string{"steps"})
	if _, ok := s.steps[key]; ok && isStep {
		return fmt.Sprintf("the step %q has not ended when %q begins", key, step), "only earlier steps, and steps of the same loop, can be named"
	}
	known := slices.Sorted(maps.Keys(data.keys))
	hint = suggest.Hint(key, known)
	if hint == "" && len(known) > 0 {
		hint = "known: " + strings.Join(known, ", ")
	}
	switch {
	case slices.Equal(before, []string{"steps"}):
		return fmt.Sprintf("there is no step %q", key), hint
	case slices.Equal(before, []string{"input"}):
		return fmt.Sprintf("there is no input %q", key), hint
	case len(before) == 0:
		return fmt.Sprintf("there is no %q", key), hint
	}
	return fmt.Sprintf("%s has no %q", label(before), key), hint
}

func label(path []string) string { return "." + strings.Join(path, ".") }

// fault is what is wrong with one reference of a template.
type fault struct {
	line, column int
	msg, hint    string
}

// faults checks all references of a template of a step.
func (s *scope) faults(step string, inputs []string, refs []tmpl.Reference) []fault {
	data := s.shape(step, inputs)
	var all []fault
	for _, ref := range refs {
		index, msg, hint := s.find(data, step, ref.Path)
		if msg == "" {
			continue
		}
		column := ref.Column
		for _, part := range ref.Path[:index] {
			column += 1 + len([]rune(part))
		}
		all = append(all, fault{ref.Line, column, msg, hint})
	}
	return all
}
