package evaluator

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

const maxDepth = 50

// writer writes a value as YAML in JSON notation, with each value on its line.
type writer struct {
	strings.Builder
	plain   *goja.Object // prototype of plain objects
	line    int          // current line, starting at 0
	depth   int
	problem string // the first error; empty if there is none
	where   string // the place of the error
}

// put writes a text, preceded by line breaks up to its line.
func (w *writer) put(line int, text string) {
	if w.Len()+len(text) > maxOutput {
		w.fail("", fmt.Sprintf("has a definition of more than %d MB", maxOutput>>20))
	}
	if w.problem != "" {
		return
	}
	for w.line < line-1 {
		w.WriteByte('\n')
		w.line++
	}
	w.WriteString(text)
}

func (w *writer) fail(where, problem string) {
	if w.problem == "" {
		w.where, w.problem = where, problem
	}
}

// object writes an object with its keys ordered by line.
func (w *writer) object(o *goja.Object, where string, lineOf func(string) int) {
	keys := o.Keys()
	slices.SortStableFunc(keys, func(a, b string) int { return lineOf(where+"."+a) - lineOf(where+"."+b) })
	w.put(lineOf(where), "{")
	first := true
	for _, key := range keys {
		value := o.Get(key)
		if value == nil || goja.IsUndefined(value) || w.problem != "" {
			continue
		}
		if !first {
			w.put(0, ", ")
		}
		first = false
		w.put(lineOf(where+"."+key), strconv.QuoteToASCII(key)+": ")
		w.value(value, where+"."+key, lineOf)
	}
	w.put(0, "}")
}

func (w *writer) array(o *goja.Object, where string, lineOf func(string) int) {
	length := int(o.Get("length").ToInteger())
	w.put(0, "[")
	for i := 0; i < length && w.problem == ""; i++ {
		if i > 0 {
			w.put(0, ", ")
		}
		at := fmt.Sprintf("%s[%d]", where, i)
		w.put(lineOf(at), "")
		w.value(o.Get(strconv.Itoa(i)), at, lineOf)
	}
	w.put(0, "]")
}

func (w *writer) value(v goja.Value, where string, lineOf func(string) int) {
	if w.depth++; w.depth > maxDepth {
		w.fail(where, fmt.Sprintf("has values in each other more than %d deep in %s", maxDepth, field(where)))
	}
	defer func() { w.depth-- }()
	if w.problem != "" {
		return
	}
	o, isObject := v.(*goja.Object)
	switch _, callable := goja.AssertFunction(v); {
	case callable:
		w.fail(where, "has a function in "+field(where))
	case v == nil, goja.IsUndefined(v):
		w.fail(where, "has an undefined value in "+field(where))
	case isObject && isPromise(o):
		w.fail(where, "has a promise in "+field(where)+": nothing in it can be async")
	case isObject && o.ClassName() == "Array":
		w.array(o, where, lineOf)
	case isObject && (o.Prototype() == w.plain || o.Prototype() == nil):
		w.object(o, where, lineOf)
	case isObject:
		w.fail(where, "has an object in "+field(where)+" that is no plain one")
	default:
		w.scalar(v, where)
	}
}

func (w *writer) scalar(v goja.Value, where string) {
	switch x := v.Export().(type) {
	case string:
		w.put(0, strconv.QuoteToASCII(x))
	case bool, int64, nil:
		if x == nil {
			x = "null"
		}
		w.put(0, fmt.Sprint(x))
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			w.fail(where, "has a number in "+field(where)+" that is none")
			return
		}
		w.put(0, strconv.FormatFloat(x, 'g', -1, 64))
	default:
		w.fail(where, fmt.Sprintf("has a %T in %s", x, field(where)))
	}
}

// field returns the name of a place for messages.
func field(where string) string { return strings.TrimPrefix(where, ".") }
