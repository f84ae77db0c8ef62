package launch

import (
	"testing"

	"github.com/coven-run/coven/grimoires"
)

// Another provider or model of a session replaces those of the plan, but not a provider that a step names.
func TestDriven(t *testing.T) {
	plan := &grimoires.Plan{Provider: "claude", Model: "sonnet"}
	for _, tt := range []struct {
		now            [2]string // provider and model of the session
		provider       string    // of the step
		model          string
		wants, wantsOn string
	}{
		{[2]string{"claude", "sonnet"}, "", "opus", "claude", "opus"},
		{[2]string{"claude", "sonnet"}, "qwen", "", "qwen", ""},
		{[2]string{"codex", ""}, "", "opus", "codex", ""},
		{[2]string{"codex", "gpt"}, "claude", "opus", "codex", "gpt"},
		{[2]string{"codex", "gpt"}, "qwen", "m", "qwen", "m"},
		{[2]string{"claude", "haiku"}, "", "opus", "claude", "haiku"},
	} {
		l := &Launcher{Plan: plan, Provider: tt.now[0], Model: tt.now[1]}
		if provider, model := l.driven(tt.provider, tt.model); provider != tt.wants || model != tt.wantsOn {
			t.Errorf("%v: a step of %q with %q runs with %q and %q", tt.now, tt.provider, tt.model, provider, model)
		}
	}
}
