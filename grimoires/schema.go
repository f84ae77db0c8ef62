package grimoires

import "github.com/coven-run/coven/internal/schema"

// Schema is the JSON Schema of a grimoire.
func Schema() *schema.Schema {
	s := schema.Of(grimoireKeys{})
	s.Definitions = map[string]*schema.Schema{"step": stepSchema()}
	set(s, "steps", listOf("#/$defs/step"))
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
	set(s, "steps", listOf("#/$defs/step"))
	return s
}

func reviewSchema() *schema.Schema {
	s := schema.Of(reviewKeys{})
	set(s, "reviewers", judgesSchema())
	return s
}

func agentLoopSchema() *schema.Schema {
	s := schema.Of(agentLoopKeys{})
	set(s, "steps", listOf("#/$defs/step"))
	set(s, "reviewers", judgesSchema())
	set(s, "arbiter", judgeSchema())
	return s
}

// judgeSchema is the schema of a plugin that judges: its name, or a map.
func judgeSchema() *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{schema.Text(), schema.Of(judgeKeys{})}}
}

func judgesSchema() *schema.Schema {
	one := uint64(1)
	return &schema.Schema{Type: "array", Items: judgeSchema(), MinItems: &one}
}

// MatchersSchema is the JSON Schema of the rules that choose grimoires.
func MatchersSchema() *schema.Schema { return schema.Of(matchersKeys{}) }

// set puts another schema in the place of that of a key, whose description stays.
func set(s *schema.Schema, key string, with *schema.Schema) {
	if old, ok := s.Properties.Get(key); ok {
		with.Description = old.Description
	}
	s.Properties.Set(key, with)
}

func listOf(of string) *schema.Schema {
	one := uint64(1)
	return &schema.Schema{Type: "array", Items: &schema.Schema{Ref: of}, MinItems: &one}
}
