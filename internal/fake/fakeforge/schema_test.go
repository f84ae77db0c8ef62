package fakeforge

import (
	"errors"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// The fake's schema is a part of GitHub's public one: each of its fields, arguments and values exists there with the same type.
func TestSchema(t *testing.T) {
	whole, err := PublicSchema()
	if errors.Is(err, ErrNoSchema) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, part := range schema().Types {
		if part.BuiltIn || name[:1] == "_" {
			continue
		}
		real := whole.Types[name]
		if real == nil || real.Kind != part.Kind {
			t.Errorf("there is no %s %s", part.Kind, name)
			continue
		}
		for _, field := range part.Fields {
			compareField(t, name, field, real.Fields.ForName(field.Name))
		}
		for _, value := range part.EnumValues {
			if real.EnumValues.ForName(value.Name) == nil {
				t.Errorf("%s has no value %s", name, value.Name)
			}
		}
		for _, member := range append(part.Types, part.Interfaces...) {
			if !contains(append(real.Types, real.Interfaces...), member) {
				t.Errorf("%s has no %s", name, member)
			}
		}
	}
}

func compareField(t *testing.T, name string, part, real *ast.FieldDefinition) {
	t.Helper()
	if part.Name[:1] == "_" {
		return
	}
	if real == nil || real.Type.String() != part.Type.String() {
		t.Errorf("%s has no field %s: %s", name, part.Name, part.Type)
		return
	}
	for _, argument := range part.Arguments {
		if its := real.Arguments.ForName(argument.Name); its == nil || its.Type.String() != argument.Type.String() {
			t.Errorf("%s.%s has no argument %s: %s", name, part.Name, argument.Name, argument.Type)
		}
	}
}

func contains(list []string, one string) bool {
	for _, s := range list {
		if s == one {
			return true
		}
	}
	return false
}
