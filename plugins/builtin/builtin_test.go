package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/plugins"
)

// Only the plugin of an API gets its credential.
func TestCredentials(t *testing.T) {
	user := []string{"OPENAI_API_KEY=a=b", "ANTHROPIC_API_KEY=c", "ANTHROPIC_BASE_URL=d", "ANTHROPIC_API_KEYS=e", "PATH=f", "GH_TOKEN=e", "GITLAB_TOKEN=f"}
	for need, want := range map[plugins.Need][]string{
		{Kind: plugins.KindModel, Name: "openai"}:       {"OPENAI_API_KEY=a=b"},
		{Kind: plugins.KindModel, Name: "anthropic"}:    {"ANTHROPIC_API_KEY=c", "ANTHROPIC_BASE_URL=d"},
		{Kind: plugins.KindModel, Name: "scripted"}:     nil,
		{Kind: plugins.KindForge, Name: "github"}:       {"GH_TOKEN=e"},
		{Kind: plugins.KindForge, Name: "gitlab"}:       {"GITLAB_TOKEN=f"},
		{Kind: plugins.KindForge, Name: "gitea"}:        nil,
		{Kind: plugins.KindModel, Name: "github"}:       nil,
		{Kind: plugins.KindReviewer, Name: "anthropic"}: nil,
	} {
		if got := Credentials(need, user, nil); !slices.Equal(got, want) {
			t.Errorf("%v: %q", need, got)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ provider, set, why, next string }{
		{"claude", "", "claude is not logged in", "claude auth login"},
		{"claude", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY is wrong", "export ANTHROPIC_API_KEY=..."},
		{"claude", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN is wrong", "export CLAUDE_CODE_OAUTH_TOKEN=..."},
		{"codex", "", "codex is not logged in", "codex login"},
		{"codex", "CODEX_API_KEY", "CODEX_API_KEY is wrong", "export CODEX_API_KEY=..."},
		{"codex", "CODEX_API_KEY OPENAI_BASE_URL OPENAI_API_KEY", "OPENAI_API_KEY is wrong", "export OPENAI_API_KEY=..."},
		{"codex", "CODEX_API_KEY OPENAI_BASE_URL", "OPENAI_API_KEY is not set", "export OPENAI_API_KEY=..."},
		{"qwen", "", "OPENAI_API_KEY is not set", "export OPENAI_API_KEY=..."},
	} {
		cli, ok := CLIOf(c.provider)
		why, next := cli.Refused(func(name string) string {
			if slices.Contains(strings.Fields(c.set), name) {
				return "x"
			}
			return ""
		})
		if !ok || why != c.why || next != c.next {
			t.Errorf("%s with %q: %q, %q", c.provider, c.set, why, next)
		}
	}
	if _, ok := CLIOf("style"); ok {
		t.Error("a CLI of a plugin that is not built in")
	}
}
