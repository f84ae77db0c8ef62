package command

import "github.com/coven-run/coven/internal/config/schema"

// Schema returns the JSON Schema of a tool file.
func Schema() *schema.Schema {
	s := schema.Of(file{})
	schema.Set(s, "parameters", &schema.Schema{Type: "object"}) // the value is a JSON Schema
	return s
}
