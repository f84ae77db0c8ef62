package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// shape describes a value in the data of templates. It has known keys, any keys (open), or none.
type shape struct {
	keys map[string]shape
	open bool
	text bool // it prints as text, in addition to having keys
	kind kind
}

// kind is the kind of a value without parts.
type kind string

const (
	unknownKind kind = ""
	numberKind  kind = "a number"
	listKind    kind = "a list"
	textKind    kind = "text"
)

func leaves(names ...string) shape {
	s := shape{keys: map[string]shape{}}
	for _, name := range names {
		s.keys[name] = shape{}
	}
	return s
}

func (s shape) set(k kind, names ...string) shape {
	for _, name := range names {
		s.keys[name] = shape{kind: k}
	}
	return s
}

// result returns the shape of a step's result.
func result() shape {
	s := leaves("output", "summary", "error", "commit", "status", "success", "failed", "skipped")
	s.keys["outputs"] = shape{open: true}
	return s.set(numberKind, "exit_code").set(listKind, "files")
}

// counters returns the shape of a loop's counters.
func counters() shape { return leaves().set(numberKind, "iteration", "max_iterations") }

// taskShape returns the shape of task.
func taskShape() shape {
	return leaves().set(textKind, taskKeys()...).set(listKind, "labels", "acceptance_criteria")
}

// scope contains the names that templates of a grimoire may use.
type scope struct {
	steps   map[string]place
	outputs map[string][]string // the steps that write an output with this name
	loose   bool                // the steps are unknown
}

// place is the position of a step: its index in the file, and the loops around it.
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
		if inner := step.Inner(); len(inner) > 0 {
			s.add(inner, append(slices.Clone(loops), step.Name))
		}
	}
}

// before reports whether a step may have ended when reader starts: because it comes earlier, or because
// both are in the same loop.
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

// reserved returns the names in the data that are not steps.
func reserved() map[string]shape {
	return map[string]shape{
		"task": taskShape(), "bead": taskShape(),
		"previous": result(), "loop_entry": result(), "loop": counters(),
		"artifacts": leaves("commit").set(listKind, "files", "commits", "task_ids"),
		"attempt":   {kind: textKind}, "steps": {}, "input": {}, tmpl.Parent: {}, secrets: {},
	}
}

// shape returns the data of a step's templates. inputs is nil except for prompts.
func (s *scope) shape(step string, inputs []string) shape {
	data := shape{keys: map[string]shape{}}
	steps := shape{keys: map[string]shape{}}
	for name := range s.steps {
		if s.before(name, step) {
			steps.keys[name], data.keys[name] = result(), result()
		}
	}
	for output, writers := range s.outputs {
		if slices.ContainsFunc(writers, func(w string) bool { return s.before(w, step) }) {
			named := result()
			named.text = true
			data.keys[output] = named
		}
	}
	loops := s.steps[step].loops
	for _, loop := range loops {
		data.keys[loop] = counters()
	}
	for _, input := range inputs {
		if _, known := data.keys[input]; !known {
			data.keys[input] = shape{}
		}
	}
	maps.Copy(data.keys, reserved())
	if len(loops) > 0 {
		data.keys["loop_entry"] = s.entry(loops[len(loops)-1])
	}
	delete(data.keys, tmpl.Parent) // only included prompts have it
	delete(data.keys, secrets)     // only commands and variables have it
	data.keys["steps"], data.keys["input"] = steps, leaves(inputs...)
	if s.loose {
		data.keys["steps"], data.keys["input"] = shape{open: true}, shape{open: true}
	}
	return data
}

// entry returns the shape of loop_entry in a loop: the result of the step before the loop, and the steps
// that may have ended by then.
func (s *scope) entry(loop string) shape {
	entry := shape{keys: map[string]shape{}}
	for name := range s.steps {
		if s.before(name, loop) && !slices.Contains(s.steps[name].loops, loop) {
			entry.keys[name] = result()
		}
	}
	maps.Copy(entry.keys, result().keys)
	return entry
}

// included returns the data of an included prompt. data is the data of the including prompt.
func (s *scope) included(data shape, in tmpl.Include) shape {
	inner := shape{keys: maps.Clone(data.keys)}
	inner.keys[tmpl.Parent] = data
	for _, p := range in.Params {
		inner.keys[p.Name] = data.valueOf(p)
	}
	return inner
}

// valueOf returns the shape of a parameter's value.
func (s shape) valueOf(p tmpl.Param) shape {
	if p.Value == nil {
		return shape{open: !p.Text}
	}
	for _, key := range p.Value {
		next, ok := s.keys[key]
		if s.open || !ok {
			return shape{open: true} // errors in it are reported elsewhere
		}
		s = next
	}
	if s.text {
		return shape{}
	}
	return s
}

// hidden finds parameters that hide other names of templates.
func (s *scope) hidden(in tmpl.Include) []fault {
	var all []fault
	for _, p := range in.Params {
		_, isReserved := reserved()[p.Name]
		_, isStep := s.steps[p.Name]
		switch {
		case isStep:
			all = append(all, fault{p.Line, p.Column, fmt.Sprintf("the parameter %q hides the step of the same name", p.Name), "give it another name"})
		case isReserved || s.outputs[p.Name] != nil:
			all = append(all, fault{p.Line, p.Column, fmt.Sprintf("the parameter %q hides a name that templates already have", p.Name), "give it another name"})
		}
	}
	return all
}

// find returns the error in a path, and the index of the invalid part.
func (s *scope) find(data shape, step string, path []string) (index int, msg, hint string) {
	for i, key := range path {
		next, ok := data.keys[key]
		switch {
		case data.open:
			return 0, "", ""
		case ok:
			data = next
			continue
		case s.loose && i == 0:
			return 0, "", ""
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
	if len(before) == 1 && slices.Contains(s.steps[step].loops, before[0]) {
		return fmt.Sprintf("%s has no %q: the loop has not ended when %q begins", label(before), key, step), "known: iteration, max_iterations"
	}
	if len(before) == 0 && key == secrets {
		return "a secret cannot be used here: it would be recorded", "command, or env of a step"
	}
	known := slices.Sorted(maps.Keys(data.keys))
	hint = didyoumean.Hint(key, known)
	switch {
	case hint != "" || len(known) == 0:
	case len(before) == 0 && unicode.IsUpper([]rune(key)[0]): // a template of another program
		hint = fmt.Sprintf("for {{.%s}} itself write {{\"{{.%s}}\"}}", key, key)
	default:
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

// fault is an error in a reference of a template.
type fault struct {
	line, column int
	msg, hint    string
}

// faults checks all references in a template of a step. data is the template's data.
func (s *scope) faults(step string, data shape, refs []tmpl.Reference) []fault {
	var all []fault
	for _, ref := range refs {
		index, msg, hint := s.find(data, step, ref.Path)
		if ref.Tested && msg != "" && s.maybe(data, ref.Path[:index+1]) {
			continue
		}
		if msg != "" {
			all = append(all, fault{ref.Line, columnOf(ref, index), msg, hint})
		}
	}
	return all
}

// maybe reports whether a name or an input that a prompt tests may be absent, rather than misspelled or not yet
// available.
func (s *scope) maybe(data shape, path []string) bool {
	if len(path) == 2 && path[0] == "input" {
		return !didyoumean.Misspelt(path[1], slices.Collect(maps.Keys(data.keys["input"].keys)))
	}
	_, isStep := s.steps[path[0]]
	_, isReserved := reserved()[path[0]]
	return len(path) == 1 && !isStep && !isReserved && !didyoumean.Misspelt(path[0], slices.Collect(maps.Keys(data.keys)))
}

// columnOf returns the column of a part of a path.
func columnOf(ref tmpl.Reference, index int) int {
	column := ref.Column
	for _, part := range ref.Path[:index] {
		column += 1 + len([]rune(part))
	}
	return column
}

// condition finds a condition that can be neither true nor false.
func (s *scope) condition(step string, sole *tmpl.Reference) []fault {
	if sole == nil {
		return nil
	}
	value, path := s.shape(step, nil), label(sole.Path)
	for _, key := range sole.Path {
		next, ok := value.keys[key]
		if value.open || !ok {
			return nil
		}
		value = next
	}
	what := string(value.kind)
	var hint string
	switch {
	case value.text, value.open:
		return nil
	case value.keys != nil:
		what, hint = "a map", "name one of its parts: "+strings.Join(slices.Sorted(maps.Keys(value.keys)), ", ")
	case value.kind == numberKind:
		hint = fmt.Sprintf("compare it: {{eq %s 0}}", path)
	case value.kind == listKind:
		hint = fmt.Sprintf("compare it: {{gt (len %s) 0}}", path)
	case value.kind == textKind:
		hint = fmt.Sprintf(`compare it: {{ne %s ""}}`, path)
	default:
		return nil
	}
	return []fault{{sole.Line, sole.Column, fmt.Sprintf("when must evaluate to true or false, and %s is %s", path, what), hint}}
}
