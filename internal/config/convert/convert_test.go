package convert

import (
	"reflect"
	"strings"
	"testing"
)

// Each setting of claude-squad is converted or named.
func TestClaudeSquad(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Settings
	}{
		"what it writes itself": {
			`{"default_program": "/usr/local/bin/claude", "auto_yes": false, "daemon_poll_interval": 1000, "branch_prefix": "ada/"}`,
			Settings{Provider: "claude", Branch: "{user}/{task}", Left: []string{"daemon_poll_interval: coven has no daemon"}},
		},
		"profiles": {
			`{"default_program": "big", "auto_yes": true, "branch_prefix": "squad/", "profiles": [
				{"name": "big", "program": "codex --model gpt-9 --full-auto"}, {"name": "aider", "program": "aider --model x"}], "theme": "dark"}`,
			Settings{Provider: "codex", Model: "gpt-9", Branch: "squad/{task}", Left: []string{
				"profile aider: choose another provider or model with coven run --provider, --model",
				"default_program: coven chooses the arguments of codex, without --full-auto",
				"auto_yes: rules decide about the calls of agents, see coven help agent",
				"theme: coven does not know this setting",
			}},
		},
		"model":      {`{"default_program": "claude --model=opus"}`, Settings{Provider: "claude", Model: "opus"}},
		"no default": {`{}`, Settings{}},
		"another program": {`{"default_program": "aider --model ollama_chat/gemma3:1b"}`, Settings{Left: []string{
			"default_program aider --model ollama_chat/gemma3:1b: coven has no provider of this name, see coven help providers",
		}}},
		"a shell's command": {`{"default_program": "claude \"$(cat args)\"", "branch_prefix": "-x {you}/"}`, Settings{Left: []string{
			`default_program claude "$(cat args)": it is not a plain command line`,
			"branch_prefix -x {you}/: it has other fields than {user}, {task} and {slug}",
		}}},
	} {
		got, err := ClaudeSquad([]byte(c.text), "Ada")
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n%q, %v, want\n%q", name, got, err, c.want)
		}
	}
	for _, text := range []string{"", "[]", `{"profiles": "x"}`, `{"auto_yes": "yes"}`} {
		if _, err := ClaudeSquad([]byte(text), "ada"); err == nil || !strings.Contains(err.Error(), "claude-squad") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
