package config

import "github.com/coven-run/coven/internal/schema"

// Schema returns the JSON Schema of config.yaml.
func Schema() *schema.Schema {
	s := schema.Of(Config{})
	if notify, ok := s.Properties.Get("notify"); ok {
		if on, ok := notify.Items.Properties.Get("on"); ok {
			on.Items = schema.Words(States()...)
		}
	}
	return s
}
