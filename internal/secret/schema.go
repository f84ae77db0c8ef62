package secret

import "github.com/coven-run/coven/internal/config/schema"

// Schema returns the JSON Schema of secrets.yaml.
func Schema() *schema.Schema {
	least := MinLength
	value := &schema.Schema{Type: "string", MinLength: &least}
	return &schema.Schema{
		Type: "object", PatternProperties: map[string]*schema.Schema{nameRE.String(): value}, AdditionalProperties: schema.None(),
	}
}
