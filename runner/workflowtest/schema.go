package workflowtest

import "github.com/coven-run/coven/internal/schema"

// Schema is the JSON Schema of a file of tests.
func Schema() *schema.Schema {
	s := schema.Of(suiteKeys{})
	tests, _ := s.Properties.Get("tests")
	steps, _ := tests.Items.Properties.Get("steps")
	steps.AdditionalProperties = oneOrMore(schema.Of(answerKeys{}))
	expect, _ := tests.Items.Properties.Get("expect")
	given, _ := expect.Properties.Get("given")
	given.AdditionalProperties = oneOrMore(schema.Text())
	return s
}

// oneOrMore is the schema of one thing, or a list of them.
func oneOrMore(of *schema.Schema) *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{of, {Type: "array", Items: of}}}
}
