package tmpl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/coven-run/coven/internal/text/shellword"
)

// functionNames lists the functions that templates may call. The second part is from text/template,
// without call.
var functionNames = []string{
	"default", "join", "upper", "lower", "trim", "indent", "quote", "json", "include", "raw",
	"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index", "slice",
	"print", "printf", "println", "html", "js", "urlquery",
}

// signatures returns the names that the parser accepts as functions.
func signatures() map[string]any {
	names := make(map[string]any, len(functionNames))
	for _, name := range functionNames {
		names[name] = true
	}
	return names
}

// verbatim is text that is passed to a command unquoted because of raw.
type verbatim string

// functions returns the functions for one run.
func (p *program) functions(include func(string, ...any) (string, error), strict bool) template.FuncMap {
	return template.FuncMap{
		"_get": func(base any, number int) (any, error) { return p.field(base, number, strict) }, "_put": p.put, "_each": each,
		"default": orElse, "join": join, "indent": indent, "json": asJSON, "include": include,
		"upper": func(v any) (string, error) { s, err := str(v); return strings.ToUpper(s), err },
		"lower": func(v any) (string, error) { s, err := str(v); return strings.ToLower(s), err },
		"trim":  func(v any) (string, error) { s, err := str(v); return strings.TrimSpace(s), err },
		"quote": p.quote,
		"raw":   func(v any) (verbatim, error) { s, err := str(v); return verbatim(s), err },
	}
}

// put returns the output of an action.
func (p *program) put(v any) (string, error) {
	if secret, ok := v.(Secret); ok {
		return p.putSecret(secret)
	}
	s, err := str(v)
	if err != nil || p.form != command && p.form != variable {
		return s, err
	}
	if strings.Contains(s, nul) {
		return "", errors.New("a value with a NUL byte cannot be given to a command or a variable")
	}
	if _, ok := v.(verbatim); ok || p.form == variable {
		return s, nil
	}
	return shellword.Quote(s), nil
}

// quote returns a text in double quotes. It has no effect in a command, where
// every value is quoted for the shell.
func (p *program) quote(v any) (string, error) {
	s, err := str(v)
	if err != nil || p.form == command {
		return s, err
	}
	return fmt.Sprintf("%q", s), nil
}

// str formats a value for output.
func str(v any) (string, error) {
	v = text(v)
	if _, ok := v.(Secret); ok {
		return "", errSecret
	}
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Invalid:
		return "", nil
	case reflect.String:
		return value.String(), nil
	}
	return asJSON(v)
}

// asJSON encodes a value as JSON. A nil list or map is empty, not null.
func asJSON(v any) (string, error) {
	switch value := reflect.ValueOf(v); {
	case value.Kind() == reflect.Slice && value.IsNil():
		return "[]", nil
	case value.Kind() == reflect.Map && value.IsNil():
		return "{}", nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("write as JSON: %w", err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// orElse implements default: it returns v, or otherwise if v is null or an empty text, list or map.
func orElse(otherwise, v any) any {
	v = text(v)
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Invalid:
		return otherwise
	case reflect.String, reflect.Slice, reflect.Map:
		if value.Len() == 0 {
			return otherwise
		}
	}
	return v
}

func join(sep string, list any) (string, error) {
	value := reflect.ValueOf(list)
	if !value.IsValid() {
		return "", nil
	}
	if value.Kind() != reflect.Slice {
		return "", fmt.Errorf("it takes a separator and a list, not %s", kindOf(list))
	}
	words := make([]string, value.Len())
	for i := range words {
		s, err := str(value.Index(i).Interface())
		if err != nil {
			return "", err
		}
		words[i] = s
	}
	return strings.Join(words, sep), nil
}

// maxIndent limits the argument of indent.
const maxIndent = 200

func indent(spaces int, v any) (string, error) {
	if spaces < 0 || spaces > maxIndent {
		return "", fmt.Errorf("it takes 0 to %d spaces", maxIndent)
	}
	s, err := str(v)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", spaces) + line
		}
	}
	return strings.Join(lines, "\n"), err
}

// each returns the operand of range. It rejects numbers, because such a loop could be endless.
func each(v any) (any, error) {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Invalid, reflect.Slice, reflect.Map:
		return v, nil
	}
	return nil, fmt.Errorf("range goes over a list or a map, not %s", kindOf(v))
}

func kindOf(v any) string {
	switch reflect.ValueOf(text(v)).Kind() {
	case reflect.Invalid:
		return "null"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map:
		return "a map"
	}
	return "a number"
}

// field returns the value of a path, starting at base. A tested path need not exist, unless
// strict is set.
func (p *program) field(base any, number int, strict bool) (any, error) {
	use := p.gets[number]
	for i, key := range use.Path {
		value := reflect.ValueOf(base)
		if o, ok := base.(Output); ok {
			value = reflect.ValueOf(o.Parts)
		}
		if value.Kind() != reflect.Map || value.Type().Key().Kind() != reflect.String {
			return nil, p.missing(use, i, fmt.Sprintf("%s is %s and has no %q", use.label(i), kindOf(base), key), "")
		}
		found := value.MapIndex(reflect.ValueOf(key).Convert(value.Type().Key()))
		if !found.IsValid() && use.Tested && !strict {
			return nil, nil
		}
		if !found.IsValid() {
			return nil, p.missing(use, i, fmt.Sprintf("%s has no %q", use.label(i), key), known(key, keysOf(value)))
		}
		base = found.Interface()
	}
	return text(base), nil
}

func (p *program) missing(use access, index int, msg, hint string) *Error {
	column := use.Column
	for _, before := range use.Path[:index] {
		column += 1 + len([]rune(before))
	}
	return &Error{Name: p.name, Line: use.Line, Column: column, Msg: msg, Hint: hint}
}

// label returns the first parts of the path for messages.
func (a access) label(parts int) string {
	path := ""
	if parts > 0 {
		path = "." + strings.Join(a.Path[:parts], ".")
	}
	if path == "" || strings.HasPrefix(a.base, "$") {
		return a.base + path
	}
	return path
}

func keysOf(m reflect.Value) []string {
	var keys []string
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return keys
}
