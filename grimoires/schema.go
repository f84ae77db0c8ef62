package grimoires

import (
	"encoding/json"
	"strconv"

	"github.com/coven-run/coven/internal/lazyregexp"
	"github.com/coven-run/coven/internal/schema"
)

// Schema returns the JSON Schema of a grimoire. It accepts more than the reader where
// validity depends on other values: duplicate names of steps, duplicate reviewers
// written differently, and options of built-in plugins.
func Schema() *schema.Schema {
	s := schema.Of(Grimoire{})
	s.Definitions = map[string]*schema.Schema{"step": stepSchema()}
	set(s, "steps", listOf(outsideLoop()))
	return s
}

func anyStep() *schema.Schema { return &schema.Schema{Ref: "#/$defs/step"} }

// outsideLoop is a step without a loop around it to exit.
func outsideLoop() *schema.Schema {
	return &schema.Schema{AllOf: []*schema.Schema{anyStep(), {Not: &schema.Schema{Required: []string{"on_success"}}}}}
}

// stepSchema chooses the schema of a step by its type.
func stepSchema() *schema.Schema {
	type typeKey struct {
		Type string `yaml:"type" need:"true"`
	}
	head := schema.Of(typeKey{})
	set(head, "type", schema.Words(stepTypes()...))
	step := &schema.Schema{Type: "object", Required: []string{"name", "type"}, Properties: head.Properties}
	for _, k := range kinds {
		kind := k.new()
		of := schema.Of(stepHead{}, Step{}, kind)
		if d, ok := kind.(described); ok {
			d.describe(of)
		}
		bound(of, "retries", maxRetries)
		is := schema.Of(typeKey{})
		set(is, "type", &schema.Schema{Const: kind.Type()})
		is.AdditionalProperties = nil
		step.AllOf = append(step.AllOf, &schema.Schema{If: is, Then: of})
	}
	return step
}

// nameSchema is the schema of a name that matches a pattern.
func nameSchema(form *lazyregexp.Regexp) *schema.Schema {
	s := schema.Text()
	for _, kind := range s.AnyOf {
		if kind.Type == "string" {
			kind.Pattern = form.String()
		}
	}
	return s
}

// bound limits a number to 1 to limit.
func bound(s *schema.Schema, key string, most int) {
	if number, ok := s.Properties.Get(key); ok {
		number.Minimum, number.Maximum = "1", json.Number(strconv.Itoa(most))
	}
}

// MatchersSchema returns the JSON Schema of the rules that choose grimoires.
func MatchersSchema() *schema.Schema { return schema.Of(matchersKeys{}) }

// set replaces the schema of a key and keeps its description.
func set(s *schema.Schema, key string, with *schema.Schema) {
	if old, ok := s.Properties.Get(key); ok {
		with.Description = old.Description
	}
	s.Properties.Set(key, with)
}

func listOf(of *schema.Schema) *schema.Schema {
	one := uint64(1)
	return &schema.Schema{Type: "array", Items: of, MinItems: &one}
}
