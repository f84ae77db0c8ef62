package workflowtest

import "github.com/coven-run/coven/internal/config/schema"

// Schema returns the JSON Schema of a file of tests.
func Schema() *schema.Schema {
	s := schema.Of(suiteKeys{})
	test := s.Properties["tests"].Items
	test.Properties["steps"].AdditionalProperties = oneOrMore(schema.Of(answerKeys{}))
	test.Properties["expect"].Properties["given"].AdditionalProperties = oneOrMore(schema.Text())
	return s
}

// oneOrMore returns the schema of a single value or a list of values.
func oneOrMore(of *schema.Schema) *schema.Schema {
	return &schema.Schema{AnyOf: []*schema.Schema{of, {Type: "array", Items: of}}}
}
