package config

import "github.com/coven-run/coven/internal/config/schema"

// Schema returns the JSON Schema of config.yaml.
func Schema() *schema.Schema {
	s := schema.Of(Config{})
	s.Properties["notify"].Items.Properties["on"].Items = schema.Words(States()...)
	s.Properties["notices"].Properties["on"].Items = schema.Words(NeedyStates()...)
	return s
}
