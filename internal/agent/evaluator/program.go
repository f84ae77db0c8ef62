package evaluator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/evanw/esbuild/pkg/api"
)

// Reasons for interrupting a file.
var (
	tooSlow  = fmt.Sprintf("takes more than %v of processor time", maxTime)
	tooLarge = fmt.Sprintf("needs more than %d MB of memory", maxMemory>>20)
)

// program evaluates one file with its imports.
type program struct {
	files   map[string]string
	vm      *goja.Runtime
	loaded  map[string]*goja.Object // modules, by name
	imports []string
	refused *fileError   // an invalid import; nil if there was none
	defined *goja.Object // result of the last defineAgent call
	at      int          // line of that call
	lines   map[string]int
}

func newProgram(files map[string]string) *program {
	p := &program{files: files, vm: goja.New(), loaded: map[string]*goja.Object{}}
	p.vm.SetMaxCallStackSize(maxCalls)
	p.vm.SetTimeSource(func() time.Time { return time.Unix(0, 0).UTC() })
	p.vm.SetRandSource(rand.New(rand.NewPCG(0, 0)).Float64) //nolint:gosec // must be deterministic
	return p
}

// fileError is an error at a position of a file.
type fileError struct {
	in      string
	line    int
	message string
	absent  bool // there is no default export
}

func (e *fileError) Error() string { return e.message }

func (p *program) evaluate(name string) Result {
	document, err := p.document(name)
	r := Result{Document: document, Imports: p.imports}
	if err != nil {
		f := p.located(name, err)
		r = Result{Error: f.message, In: f.in, Line: f.line, NoExport: f.absent, Imports: p.imports}
	}
	return r
}

func (p *program) document(name string) (string, error) {
	exports, err := p.load(name)
	switch {
	case err != nil:
		return "", err
	case p.refused != nil: // even if the file caught the error
		return "", p.refused
	}
	value, err := p.get(exports, "default")
	if err != nil {
		return "", err
	}
	if value == nil || goja.IsUndefined(value) {
		return "", &fileError{in: name, line: 1, message: "has no default export: end it with export default defineAgent({...})", absent: true}
	}
	object, ok := value.(*goja.Object)
	switch {
	case ok && isPromise(object):
		return "", &fileError{in: name, line: 1, message: "exports a promise: nothing in it can be async"}
	case !ok || object != p.defined:
		return "", &fileError{in: name, line: 1, message: "exports something other than the value of defineAgent({...})"}
	}
	w := writer{plain: p.vm.NewObject().Prototype()}
	if err := p.inside(func() { w.object(object, "", p.lineOf) }); err != nil {
		return "", err
	}
	if w.problem != "" {
		return "", &fileError{in: name, line: p.lineOf(w.where), message: w.problem}
	}
	return w.String(), nil
}

// lineOf returns the line of a value, or of the innermost value with a known line that contains it.
func (p *program) lineOf(where string) int {
	for where != "" {
		if line, ok := p.lines[where]; ok {
			return line
		}
		where = where[:max(strings.LastIndexAny(where, ".["), 0)]
	}
	return p.at
}

// inside runs a function that accesses the file's values, and returns an exception as an error.
func (p *program) inside(do func()) error {
	call, _ := goja.AssertFunction(p.vm.ToValue(func(goja.FunctionCall) goja.Value { do(); return nil }))
	_, err := call(goja.Undefined())
	return err
}

func (p *program) get(object *goja.Object, key string) (value goja.Value, err error) {
	err = p.inside(func() { value = object.Get(key) })
	return value, err
}

// load runs a file and returns its exports.
func (p *program) load(name string) (*goja.Object, error) {
	if exports, ok := p.loaded[name]; ok {
		return exports, nil // even while it is running
	}
	code, err := javascript(name, p.files[name])
	if err != nil {
		return nil, err
	}
	parsed, err := goja.Parse(name, code, parser.WithSourceMapLoader(func(string) ([]byte, error) { return nil, errors.New("there are no other files") }))
	if err != nil {
		return nil, err
	}
	compiled, err := goja.CompileAST(parsed, true)
	if err != nil {
		return nil, err
	}
	if len(p.loaded) == 0 {
		p.lines = literalLines(parsed)
	}
	module := p.vm.NewObject()
	exports := p.vm.NewObject()
	p.loaded[name] = exports
	if err := module.Set("exports", exports); err != nil {
		return nil, err
	}
	wrapped, err := p.vm.RunProgram(compiled)
	if err != nil {
		return nil, err
	}
	run, _ := goja.AssertFunction(wrapped)
	if _, err := run(goja.Undefined(), exports, p.vm.ToValue(p.require), module); err != nil {
		return nil, err
	}
	replaced, err := p.get(module, "exports") // esbuild replaces the object
	if err != nil {
		return nil, err
	}
	if object, ok := replaced.(*goja.Object); ok {
		p.loaded[name] = object
	}
	return p.loaded[name], nil
}

// javascript converts a file to a JavaScript function with the module's code.
func javascript(name, text string) (string, error) {
	r := api.Transform(text, api.TransformOptions{
		Loader: api.LoaderTS, Format: api.FormatCommonJS, Target: api.ES2020, Sourcefile: name,
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone,
		Banner: "(function (exports, require, module) {", Footer: "})",
		TsconfigRaw: `{"compilerOptions": {"verbatimModuleSyntax": true}}`, // keeps unused imports
		Supported:   map[string]bool{"dynamic-import": false},              // it becomes require, which rejects it
		LogLevel:    api.LogLevelSilent,
	})
	if len(r.Errors) == 0 {
		return string(r.Code), nil
	}
	first := r.Errors[0]
	line := 1
	if first.Location != nil {
		line = first.Location.Line
	}
	return "", &fileError{in: name, line: line, message: "is not valid TypeScript: " + first.Text}
}

// require implements import.
func (p *program) require(call goja.FunctionCall) goja.Value {
	wanted := call.Argument(0).String()
	if wanted == "coven" {
		ours := p.vm.NewObject()
		_ = ours.Set("defineAgent", p.define) // cannot fail for a new object
		return ours
	}
	name, ok := p.sibling(wanted)
	if !ok {
		at := p.caller()
		p.refused = &fileError{
			in: at.Filename, line: at.Line,
			message: fmt.Sprintf("imports %q: only \"coven\" and files beside it (\"./name\") can be imported", wanted),
		}
		panic(p.vm.ToValue(p.refused))
	}
	if !slices.Contains(p.imports, name) {
		p.imports = append(p.imports, name)
	}
	exports, err := p.load(name)
	if err != nil {
		if thrown := (*goja.Exception)(nil); errors.As(err, &thrown) {
			panic(err) // keep the exception and its position
		}
		if stopped := (*goja.InterruptedError)(nil); errors.As(err, &stopped) {
			panic(err)
		}
		panic(p.vm.ToValue(p.located(name, err)))
	}
	return exports
}

// sibling finds an imported file in the same directory.
func (p *program) sibling(wanted string) (string, bool) {
	name, relative := strings.CutPrefix(wanted, "./")
	if !relative || path.Base(name) != name {
		return "", false
	}
	for _, candidate := range []string{name, name + ".ts", strings.TrimSuffix(name, ".js") + ".ts"} {
		if _, ok := p.files[candidate]; ok {
			return candidate, true
		}
	}
	return "", false
}

// define implements defineAgent.
func (p *program) define(call goja.FunctionCall) goja.Value {
	object, ok := call.Argument(0).(*goja.Object)
	at := p.caller()
	if _, callable := goja.AssertFunction(call.Argument(0)); !ok || callable || object.ClassName() == "Array" || isPromise(object) {
		panic(p.vm.ToValue(&fileError{in: at.Filename, line: at.Line, message: "calls defineAgent without an object"}))
	}
	p.defined, p.at = object, at.Line
	return object
}

// caller returns the position at which the file called one of our functions.
func (p *program) caller() file.Position {
	for _, frame := range p.vm.CaptureCallStack(0, nil) {
		if at := frame.Position(); at.Line > 0 {
			return at
		}
	}
	return file.Position{Line: 1}
}

// located converts an error to a fileError with its position.
func (p *program) located(name string, err error) *fileError {
	f := &fileError{in: name, line: 1}
	var thrown *goja.Exception
	var stopped *goja.InterruptedError
	var overflow *goja.StackOverflowError
	var stack []goja.StackFrame
	switch {
	case errors.As(err, &overflow):
		f.message, stack = fmt.Sprintf("calls functions in each other more than %d deep", maxCalls), overflow.Stack()
	case errors.As(err, &stopped):
		f.message, stack = fmt.Sprint(stopped.Value()), stopped.Stack()
	case errors.As(err, &thrown):
		if known, ok := ours(thrown.Value()); ok {
			return p.named(name, known)
		}
		f.message, stack = "throws "+p.text(thrown), thrown.Stack()
	default:
		if known := (*fileError)(nil); errors.As(err, &known) {
			return p.named(name, known)
		}
		f.message = "cannot be evaluated: " + err.Error()
		return f
	}
	for _, frame := range stack {
		if at := frame.Position(); at.Line > 0 {
			f.in, f.line = at.Filename, at.Line
			break
		}
	}
	return p.named(name, f)
}

// ours returns the fileError that one of our functions threw. It runs no code of the file.
func ours(thrown goja.Value) (*fileError, bool) {
	if thrown.ExportType() != reflect.TypeFor[*fileError]() {
		return nil, false
	}
	known, ok := thrown.Export().(*fileError)
	return known, ok
}

// named ensures that the error refers to one of our files.
func (p *program) named(name string, f *fileError) *fileError {
	if _, ok := p.files[f.in]; !ok {
		f.in = name
	}
	return f
}

// text returns the text of an exception in one line.
func (p *program) text(thrown *goja.Exception) string {
	text := "something that is no text"
	_ = p.inside(func() { text = thrown.Value().String() }) // on failure, keep the default text
	const most = 200
	if runes := []rune(strings.Join(strings.Fields(text), " ")); len(runes) > most {
		return string(runes[:most]) + "…"
	} else if len(runes) > 0 {
		return string(runes)
	}
	return "an empty text"
}

// literalLines returns the lines of the literal values in the argument of defineAgent, by place:
// "permissions[0].pattern".
func literalLines(p *ast.Program) map[string]int {
	l := literals{file: p.File, lines: map[string]int{}, named: map[string]ast.Expression{}}
	statement, ok := p.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return l.lines
	}
	function, ok := statement.Expression.(*ast.FunctionLiteral)
	if !ok {
		return l.lines
	}
	for _, s := range function.Body.List {
		switch s := s.(type) {
		case *ast.VariableStatement:
			l.bindings(s.List)
		case *ast.LexicalDeclaration:
			l.bindings(s.List)
		}
	}
	return l.lines
}

type literals struct {
	file  *file.File
	lines map[string]int
	named map[string]ast.Expression
}

func (l literals) bindings(all []*ast.Binding) {
	for _, b := range all {
		if name, ok := b.Target.(*ast.Identifier); ok {
			l.named[string(name.Name)] = b.Initializer
		}
		if call, ok := b.Initializer.(*ast.CallExpression); ok && len(call.ArgumentList) > 0 && isDefine(call.Callee) {
			l.value("", call.ArgumentList[0])
		}
	}
}

// isPromise reports whether a value is a promise. Unlike Export, it runs no code of the file.
func isPromise(o *goja.Object) bool { return o.ExportType() == reflect.TypeFor[*goja.Promise]() }

// isDefine reports whether a callee is defineAgent: (0, import_coven.defineAgent).
func isDefine(callee ast.Expression) bool {
	if s, ok := callee.(*ast.SequenceExpression); ok {
		callee = s.Sequence[len(s.Sequence)-1]
	}
	dot, ok := callee.(*ast.DotExpression)
	return ok && dot.Identifier.Name == "defineAgent"
}

func (l literals) value(where string, x ast.Expression) {
	if name, ok := x.(*ast.Identifier); ok && l.named[string(name.Name)] != nil {
		x = l.named[string(name.Name)]
		delete(l.named, string(name.Name)) // a value can refer to itself
	}
	switch x := x.(type) {
	case *ast.ObjectLiteral:
		for _, property := range x.Value {
			l.property(where, property)
		}
	case *ast.ArrayLiteral:
		for i, item := range x.Value {
			if item == nil {
				continue
			}
			if _, spread := item.(*ast.SpreadElement); spread {
				return
			}
			l.set(fmt.Sprintf("%s[%d]", where, i), item)
		}
	}
}

func (l literals) property(where string, property ast.Property) {
	switch property := property.(type) {
	case *ast.PropertyShort:
		l.set(where+"."+string(property.Name.Name), &property.Name)
	case *ast.PropertyKeyed:
		if key, ok := property.Key.(*ast.StringLiteral); ok && !property.Computed {
			l.lines[where+"."+string(key.Value)] = l.line(key)
			l.value(where+"."+string(key.Value), property.Value)
		}
	}
}

func (l literals) set(where string, x ast.Expression) {
	l.lines[where] = l.line(x)
	l.value(where, x)
}

func (l literals) line(x ast.Expression) int { return l.file.Position(int(x.Idx0()) - 1).Line }
