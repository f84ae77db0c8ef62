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

// Why a file was interrupted.
var (
	tooSlow  = fmt.Sprintf("takes more than %v of processor time", maxTime)
	tooLarge = fmt.Sprintf("needs more than %d MB of memory", maxMemory>>20)
)

// program evaluates one file, with what it imports.
type program struct {
	files   map[string]string
	vm      *goja.Runtime
	loaded  map[string]*goja.Object // modules, by name
	imports []string
	refused *fileError   // an import; nil: all were possible
	defined *goja.Object // what the last defineAgent returned
	at      int          // its line
	lines   map[string]int
}

func newProgram(files map[string]string) *program {
	p := &program{files: files, vm: goja.New(), loaded: map[string]*goja.Object{}}
	p.vm.SetMaxCallStackSize(maxCalls)
	p.vm.SetTimeSource(func() time.Time { return time.Unix(0, 0).UTC() })
	p.vm.SetRandSource(rand.New(rand.NewPCG(0, 0)).Float64) //nolint:gosec // it must be the same each time
	return p
}

// fileError is an error at a place of a file.
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
	case p.refused != nil: // whatever the file made of it
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

// lineOf returns the line of a value: its own, or that of what contains it.
func (p *program) lineOf(where string) int {
	for where != "" {
		if line, ok := p.lines[where]; ok {
			return line
		}
		where = where[:max(strings.LastIndexAny(where, ".["), 0)]
	}
	return p.at
}

// inside runs a function that uses values of the file.
func (p *program) inside(do func()) error {
	call, _ := goja.AssertFunction(p.vm.ToValue(func(goja.FunctionCall) goja.Value { do(); return nil }))
	_, err := call(goja.Undefined())
	return err
}

func (p *program) get(object *goja.Object, key string) (value goja.Value, err error) {
	err = p.inside(func() { value = object.Get(key) })
	return value, err
}

// load runs a file and returns what it exports.
func (p *program) load(name string) (*goja.Object, error) {
	if exports, ok := p.loaded[name]; ok {
		return exports, nil // also while it is running
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
	replaced, err := p.get(module, "exports") // esbuild does
	if err != nil {
		return nil, err
	}
	if object, ok := replaced.(*goja.Object); ok {
		p.loaded[name] = object
	}
	return p.loaded[name], nil
}

// javascript turns a file into a function of its module.
func javascript(name, text string) (string, error) {
	r := api.Transform(text, api.TransformOptions{
		Loader: api.LoaderTS, Format: api.FormatCommonJS, Target: api.ES2020, Sourcefile: name,
		Sourcemap: api.SourceMapInline, SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone,
		Banner: "(function (exports, require, module) {", Footer: "})",
		TsconfigRaw: `{"compilerOptions": {"verbatimModuleSyntax": true}}`, // an import that is not used is an import, too
		Supported:   map[string]bool{"dynamic-import": false},              // it becomes require, which refuses it
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

// require is what import calls.
func (p *program) require(call goja.FunctionCall) goja.Value {
	wanted := call.Argument(0).String()
	if wanted == "coven" {
		ours := p.vm.NewObject()
		_ = ours.Set("defineAgent", p.define) // of a new object
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
			panic(err) // as it was thrown, with its place
		}
		if stopped := (*goja.InterruptedError)(nil); errors.As(err, &stopped) {
			panic(err)
		}
		panic(p.vm.ToValue(p.located(name, err)))
	}
	return exports
}

// sibling returns the file beside the one that imports it.
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

// define is defineAgent.
func (p *program) define(call goja.FunctionCall) goja.Value {
	object, ok := call.Argument(0).(*goja.Object)
	at := p.caller()
	if _, callable := goja.AssertFunction(call.Argument(0)); !ok || callable || object.ClassName() == "Array" || isPromise(object) {
		panic(p.vm.ToValue(&fileError{in: at.Filename, line: at.Line, message: "calls defineAgent without an object"}))
	}
	p.defined, p.at = object, at.Line
	return object
}

// caller returns where the file called a function of ours.
func (p *program) caller() file.Position {
	for _, frame := range p.vm.CaptureCallStack(0, nil) {
		if at := frame.Position(); at.Line > 0 {
			return at
		}
	}
	return file.Position{Line: 1}
}

// located returns what is wrong, and where.
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

// ours returns the error that a function of ours threw. It runs nothing of the file.
func ours(thrown goja.Value) (*fileError, bool) {
	if thrown.ExportType() != reflect.TypeFor[*fileError]() {
		return nil, false
	}
	known, ok := thrown.Export().(*fileError)
	return known, ok
}

// named makes sure that an error is in a file of ours.
func (p *program) named(name string, f *fileError) *fileError {
	if _, ok := p.files[f.in]; !ok {
		f.in = name
	}
	return f
}

// text returns what an exception says, in a line.
func (p *program) text(thrown *goja.Exception) string {
	text := "something that is no text"
	_ = p.inside(func() { text = thrown.Value().String() }) // it stays
	const most = 200
	if runes := []rune(strings.Join(strings.Fields(text), " ")); len(runes) > most {
		return string(runes[:most]) + "…"
	} else if len(runes) > 0 {
		return string(runes)
	}
	return "an empty text"
}

// literalLines returns the lines of the values in the argument of defineAgent, as far as it is
// written there: "permissions[0].pattern".
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

// isPromise runs nothing of the file, as exporting the value would.
func isPromise(o *goja.Object) bool { return o.ExportType() == reflect.TypeFor[*goja.Promise]() }

// isDefine reports whether a call is one of defineAgent: (0, import_coven.defineAgent).
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
		delete(l.named, string(name.Name)) // a value can name itself
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
