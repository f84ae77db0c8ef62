package grimoires

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/coven-run/coven/internal/schema"
)

// Schema returns the JSON Schema of a grimoire. It accepts more than the reader where
// validity depends on other values: duplicate names of steps, duplicate reviewers
// written differently, and options of built-in plugins.
func Schema() *schema.Schema {
	s := schema.Of(grimoireKeys{})
	s.Definitions = map[string]*schema.Schema{"step": stepSchema()}
	set(s, "steps", listOf(outsideLoop()))
	return s
}

func anyStep() *schema.Schema { return &schema.Schema{Ref: "#/$defs/step"} }

// outsideLoop is a step without a loop around it to exit.
func outsideLoop() *schema.Schema {
	return &schema.Schema{AllOf: []*schema.Schema{anyStep(), {Not: &schema.Schema{Required: []string{"on_success"}}}}}
}

// ofRound is a step of an agent-loop: it cannot exit the loop, and cannot have the
// name of a part of a round.
func ofRound() *schema.Schema {
	s, taken := outsideLoop(), schema.Of(struct {
		Name text `yaml:"name" need:"true"`
	}{})
	set(taken, "name", schema.Words(roundLeaves()...))
	taken.AdditionalProperties = nil
	s.AllOf = append(s.AllOf, &schema.Schema{Not: taken})
	return s
}

// stepSchema chooses the schema of a step by its type.
func stepSchema() *schema.Schema {
	step := &schema.Schema{Type: "object", Required: []string{"name", "type"}, Properties: schema.Of(struct {
		Type text `yaml:"type" oneof:"agent|script|loop|review|agent-loop|merge"`
	}{}).Properties}
	for _, kind := range []struct {
		name string
		of   *schema.Schema
	}{
		{agentType, agentSchema()},
		{scriptType, scriptSchema()},
		{loopType, loopSchema()},
		{reviewType, reviewSchema()},
		{agentLoopType, agentLoopSchema()},
		{mergeType, schema.Of(mergeKeys{})},
	} {
		bound(kind.of, "retries", maxRetries)
		is := schema.Of(struct {
			Type text `yaml:"type" need:"true"`
		}{})
		set(is, "type", &schema.Schema{Const: kind.name})
		is.AdditionalProperties = nil
		step.AllOf = append(step.AllOf, &schema.Schema{If: is, Then: kind.of})
	}
	return step
}

func agentSchema() *schema.Schema {
	s := schema.Of(agentKeys{})
	set(s, "agent", schema.Words(Agents()...))
	set(s, "provider", nameSchema(pluginRE))
	s.AnyOf = []*schema.Schema{{Required: []string{"prompt"}}, {Required: []string{"spell"}}}
	return s
}

func scriptSchema() *schema.Schema {
	s := schema.Of(scriptKeys{})
	s.AnyOf = []*schema.Schema{{Required: []string{"command"}}, {Required: []string{"checks"}}}
	return s
}

func loopSchema() *schema.Schema {
	s := schema.Of(loopKeys{})
	set(s, "steps", listOf(anyStep()))
	bound(s, "max_iterations", maxIterations)
	return s
}

func reviewSchema() *schema.Schema {
	s := schema.Of(reviewKeys{})
	set(s, "reviewers", judgesSchema())
	return s
}

func agentLoopSchema() *schema.Schema {
	s := schema.Of(agentLoopKeys{})
	set(s, "steps", listOf(ofRound()))
	set(s, "reviewers", judgesSchema())
	set(s, "arbiter", judgeSchema())
	bound(s, "max_iterations", maxIterations)
	bound(s, "patience", maxIterations)
	return s
}

// judgeSchema is the schema of a reviewer or arbiter: the name of a plugin, or a map.
func judgeSchema() *schema.Schema {
	s := schema.Of(judgeKeys{})
	set(s, "plugin", nameSchema(pluginRE))
	set(s, "name", nameSchema(nameRE))
	if with, ok := s.Properties.Get("with"); ok {
		with.PropertyNames = &schema.Schema{Not: &schema.Schema{Const: "prompt"}}
	}
	return &schema.Schema{AnyOf: []*schema.Schema{nameSchema(pluginRE), s}}
}

func judgesSchema() *schema.Schema {
	s := listOf(judgeSchema())
	s.UniqueItems = true
	return s
}

// nameSchema is the schema of a name that matches a pattern.
func nameSchema(form *regexp.Regexp) *schema.Schema {
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
