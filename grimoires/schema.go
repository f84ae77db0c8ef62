package grimoires

import (
	"github.com/coven-run/coven/internal/config/schema"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Schema returns the JSON Schema of a grimoire. It accepts more than the reader if validity depends on
// other values: duplicate step names, duplicate reviewers in different notation, and options of built-in
// plugins.
func Schema() *schema.Schema {
	s := schema.Of(Grimoire{})
	s.Defs = map[string]*schema.Schema{"step": stepSchema()}
	schema.Set(s, "steps", listOf(outsideLoop()))
	return s
}

func anyStep() *schema.Schema { return &schema.Schema{Ref: "#/$defs/step"} }

// outsideLoop returns the schema of a step that has no loop to exit.
func outsideLoop() *schema.Schema {
	return &schema.Schema{AllOf: []*schema.Schema{anyStep(), {Not: &schema.Schema{Required: []string{"on_success"}}}}}
}

// stepSchema returns the schema of a step, which depends on its type.
func stepSchema() *schema.Schema {
	type typeKey struct {
		Type string `yaml:"type" need:"true"`
	}
	head := schema.Of(typeKey{})
	schema.Set(head, "type", schema.Words(stepTypes()...))
	step := &schema.Schema{Type: "object", Required: []string{"name", "type"}, Properties: head.Properties, PropertyOrder: head.PropertyOrder}
	for _, k := range kinds {
		kind := k.new()
		of := schema.Of(stepHead{}, Step{}, kind)
		if d, ok := kind.(described); ok {
			d.describe(of)
		}
		bound(of, "retries", maxRetries)
		is := schema.Of(typeKey{})
		schema.Set(is, "type", constant(kind.Type()))
		is.AdditionalProperties = nil
		step.AllOf = append(step.AllOf, &schema.Schema{If: is, Then: of})
	}
	return step
}

// nameSchema returns the schema of a name that matches a pattern.
func nameSchema(form *lazyregexp.Regexp) *schema.Schema {
	s := schema.Text()
	for _, kind := range s.AnyOf {
		if kind.Type == "string" {
			kind.Pattern = form.String()
		}
	}
	return s
}

// bound limits a number to the range from 1 to most.
func bound(s *schema.Schema, key string, most int) {
	if number, ok := s.Properties[key]; ok {
		least, most := 1.0, float64(most)
		number.Minimum, number.Maximum = &least, &most
	}
}

// MatchersSchema returns the JSON Schema of the rules that choose grimoires.
func MatchersSchema() *schema.Schema { return schema.Of(matchersKeys{}) }

// constant returns the schema of a constant text.
func constant(text string) *schema.Schema {
	value := any(text)
	return &schema.Schema{Const: &value}
}

func listOf(of *schema.Schema) *schema.Schema {
	one := 1
	return &schema.Schema{Type: "array", Items: of, MinItems: &one}
}
