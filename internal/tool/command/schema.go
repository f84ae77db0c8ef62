package command

import "github.com/coven-run/coven/internal/schema"

// Schema returns the JSON Schema of a file with a tool.
func Schema() *schema.Schema {
	s := schema.Of(file{})
	schema.Set(s, "parameters", &schema.Schema{Type: "object"}) // a JSON Schema itself
	return s
}
