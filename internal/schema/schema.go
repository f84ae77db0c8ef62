// Package schema generates JSON Schemas for editors from the Go types into which
// coven's files are decoded.
//
// Rules. A schema accepts every file that its reader accepts; it does not check what
// only the reader can know, such as whether a prompt exists. Three field tags add
// information to the types: oneof, the allowed words; about, a one-line description;
// and need, for required keys.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// Schema is a JSON Schema (draft 2020-12).
type Schema = jsonschema.Schema

// Of returns the schema of a mapping that fills structs with yaml tags. Other keys are
// not allowed.
func Of(v any, more ...any) *Schema {
	s := of(reflect.TypeOf(v))
	for _, other := range more {
		t := reflect.TypeOf(other)
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		o := of(t)
		for p := o.Properties.Oldest(); p != nil; p = p.Next() {
			s.Properties.Set(p.Key, p.Value)
		}
		s.Required = append(s.Required, o.Required...)
	}
	return s
}

func of(t reflect.Type) *Schema {
	reflector := &jsonschema.Reflector{
		FieldNameTag: "yaml", DoNotReference: true, Anonymous: true, Mapper: mapped,
		RequiredFromJSONSchemaTags: true,
	}
	s := reflector.ReflectFromType(t)
	s.Version, s.ID = "", ""
	describe(s, t)
	return s
}

// mapped returns the schema of types that reflection does not support.
func mapped(t reflect.Type) *Schema {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return &Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	case t.Kind() == reflect.String:
		return Text()
	case isAt(t):
		value := t.Field(0).Type
		if s := mapped(value); s != nil {
			return s
		}
		return of(value)
	case t.Kind() == reflect.Struct && t.NumField() == 1 && !t.Field(0).IsExported(): // a node: anything
		return &Schema{}
	}
	return nil
}

// isAt reports whether a type is a yamldoc.At.
func isAt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.Name(), "At[") && strings.HasSuffix(t.PkgPath(), "/yamldoc")
}

// describe adds the information in field tags to the schema of a struct.
func describe(s *Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
		if s.Items != nil {
			s = s.Items
		}
	}
	if t.Kind() != reflect.Struct || isAt(t) || s.Properties == nil {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			describe(s, f.Type)
			continue
		}
		property, ok := s.Properties.Get(key)
		if key == "" || !ok {
			continue
		}
		if words := f.Tag.Get("oneof"); words != "" {
			property = Words(strings.Split(words, "|")...)
			s.Properties.Set(key, property)
		} else {
			describe(property, f.Type)
		}
		property.Description = f.Tag.Get("about")
		if f.Tag.Get("need") == "true" {
			s.Required = append(s.Required, key)
		}
	}
}

// Words returns the schema of one of several words.
func Words(words ...string) *Schema {
	s := &Schema{}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Text returns the schema of a text. YAML decodes 80 and true as a number and a bool,
// so these are allowed too.
func Text() *Schema {
	return &Schema{AnyOf: []*Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// Write returns a schema as a file.
func Write(s *Schema, title string) ([]byte, error) {
	s.Version, s.Title = jsonschema.Version, title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), nil
}
