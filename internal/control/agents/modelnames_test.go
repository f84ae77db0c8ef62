package agents

import (
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins"
)

// Only short names of Claude models are checked: the API may know any other name.
func TestCheckModels(t *testing.T) {
	for _, c := range []struct {
		provider, model string
		wrong           bool
	}{
		{"claude", "", false},
		{"anthropic-loop", "sonnet", false},
		{"anthropic-loop", "claude-x", false},
		{"anthropic-loop", "", true},
		{"openai-loop", "sonnet", true},
		{"openai-loop", "", true},
		{"openai-loop", "mistral", false},
		{"mine-loop", "", false},
	} {
		plan := &grimoires.Plan{Provider: c.provider, Model: c.model, Grimoire: grimoires.NewChat()}
		err := CheckModels(plan, func(plugins.Need) bool { return true })
		if (err != nil) != c.wrong || err != nil && exit.Next(err) == "" {
			t.Errorf("%s %q: %v", c.provider, c.model, err)
		}
		if err := CheckModels(plan, func(plugins.Need) bool { return false }); err != nil {
			t.Errorf("%s %q of another plugin: %v", c.provider, c.model, err)
		}
	}
	if err := Admission(&grimoires.Plan{Provider: "openai-loop", Model: "m-1"}).KnowsModel("opus"); err == nil {
		t.Error("openai-loop knows opus")
	}
}
