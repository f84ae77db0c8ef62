// Package schema generates JSON Schemas for editors from the Go types into which
// coven's files are decoded.
//
// A schema accepts every file that its reader accepts. It does not check things that
// only the reader can know, such as whether a prompt exists. Three field tags add
// information to the types: oneof lists the allowed words, about is a one-line description,
// and need marks required keys.
package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a JSON Schema (draft 2020-12).
type Schema = jsonschema.Schema

// Of returns the schema of a mapping that is decoded into structs with yaml tags. Other keys are
// not allowed.
func Of(v any, more ...any) *Schema {
	s := object(reflect.TypeOf(v))
	for _, other := range more {
		fields(s, reflect.Indirect(reflect.ValueOf(other)).Type())
	}
	return s
}

// of returns the schema of a value of any type that coven decodes.
func of(t reflect.Type) *Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem())
	case reflect.String:
		return Text()
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Slice:
		list := &Schema{Type: "array", Items: of(t.Elem())}
		if _, single := t.MethodByName("Single"); single { // see yamldoc
			return &Schema{AnyOf: append(of(t.Elem()).AnyOf, list)}
		}
		return list
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: of(t.Elem())}
	case reflect.Struct:
		return ofStruct(t)
	case reflect.Interface:
		return &Schema{}
	}
	if t == reflect.TypeFor[time.Duration]() {
		return &Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`}
	}
	if t.ConvertibleTo(reflect.TypeFor[int64]()) {
		return &Schema{Type: "integer"}
	}
	panic(fmt.Sprintf("schema: files have no values of type %s", t))
}

func ofStruct(t reflect.Type) *Schema {
	switch {
	case isAt(t):
		return of(t.Field(0).Type)
	case t.NumField() == 1 && !t.Field(0).IsExported(): // a YAML node of any kind
		return &Schema{}
	}
	s := object(t)
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("text") == "true" {
			return &Schema{AnyOf: append(Text().AnyOf, s)}
		}
	}
	return s
}

// object returns the schema of a mapping that is decoded into a struct.
func object(t reflect.Type) *Schema {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: None()}
	fields(s, t)
	return s
}

// fields adds the keys of a struct's fields.
func fields(s *Schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			fields(s, f.Type)
			continue
		}
		if key == "" || key == "-" {
			continue
		}
		property := of(f.Type)
		if words := f.Tag.Get("oneof"); words != "" {
			property = Words(strings.Split(words, "|")...)
		}
		property.Description = f.Tag.Get("about")
		Set(s, key, property)
		if f.Tag.Get("need") == "true" {
			s.Required = append(s.Required, key)
		}
	}
}

// Set sets the schema of a key. It keeps the key's description unless with has one.
func Set(s *Schema, key string, with *Schema) {
	old, ok := s.Properties[key]
	if !ok {
		s.PropertyOrder = append(s.PropertyOrder, key)
	} else if with.Description == "" {
		with.Description = old.Description
	}
	s.Properties[key] = with
}

// None returns the schema that no value matches.
func None() *Schema { return &Schema{Not: &Schema{}} }

// isAt reports whether a type is a yamldoc.At.
func isAt(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && strings.HasPrefix(t.Name(), "At[") && strings.HasSuffix(t.PkgPath(), "/yamldoc")
}

// Words returns the schema of a value that is one of several words.
func Words(words ...string) *Schema {
	s := &Schema{}
	for _, w := range words {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Text returns the schema of a text. YAML decodes 80 and true as a number and a bool,
// so these types are allowed, too.
func Text() *Schema {
	return &Schema{AnyOf: []*Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}
}

// Write returns a schema in the form of a file.
func Write(s *Schema, title string) ([]byte, error) {
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", title
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), nil
}
