package accounts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A machine is the environment of a user, and the files in the home.
type machine struct{ env, login, config string }

// identity returns the name of the account of a provider on a machine. Each machine has a home of its own.
func (m machine) identity(t *testing.T, provider string) string {
	t.Helper()
	home := t.TempDir()
	for name, text := range map[string]string{filepath.Join(".claude", ".credentials.json"): m.login, ".claude.json": m.config} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := &Logins{Getenv: func(name string) string {
		for kv := range strings.FieldsSeq(m.env + " HOME=" + home) {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}}
	return l.Identity(provider)
}

// login returns the file of a claude.ai login with a token.
func login(token string) string {
	return fmt.Sprintf(`{"claudeAiOauth": {"accessToken": %q, "refreshToken": "R%s", "expiresAt": %d, "scopes": ["user:inference"]}}`, token, token, time.Now().Add(time.Hour).UnixMilli())
}

// ann is the account of ann in the configuration of the CLI.
const ann = `{"oauthAccount": {"accountUuid": "0b5a8f2e-5c1d-4a57-9d7a-3d1f5e0a0001", "organizationUuid": "7d1c8f2e-5c1d-4a57-9d7a-3d1f5e0a0002", "emailAddress": "ann@example.invalid"}}`

// Machines with the same login have the same name for its account, which reveals nothing. Machines with others have other names.
func TestIdentity(t *testing.T) {
	key := "ANTHROPIC_API_KEY=sk-ant-0123456789abcdef"
	same := [][]struct {
		provider string
		machine  machine
	}{
		{{"claude", machine{env: key}}, {"claude", machine{env: key, config: ann}}, {"anthropic-loop", machine{env: key}}, {"claude", machine{env: key + " ANTHROPIC_BASE_URL=https://api.anthropic.com"}}},
		{{"claude", machine{env: key + "x"}}},
		{{"claude", machine{env: key + " ANTHROPIC_BASE_URL=https://gateway.example.invalid"}}, {"anthropic-loop", machine{env: key + " ANTHROPIC_BASE_URL=https://gateway.example.invalid/"}}},
		{{"claude", machine{env: "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-0123456789abcdef"}}},
		{{"claude", machine{login: login("a"), config: ann}}, {"claude", machine{login: login("b"), config: ann}}},
		{{"claude", machine{login: login("a"), config: strings.Replace(ann, "0001", "0003", 1)}}},
		{{"claude", machine{login: login("a"), config: strings.Replace(ann, "0002", "0003", 1)}}},
		{{"openai-loop", machine{env: "OPENAI_API_KEY=sk-ant-0123456789abcdef"}}},
	}
	seen := map[string]int{}
	for i, all := range same {
		first := all[0].machine.identity(t, all[0].provider)
		if other, ok := seen[first]; ok || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(first) {
			t.Errorf("account %d: %q, like account %d", i, first, other)
		}
		seen[first] = i
		for _, one := range all[1:] {
			if got := one.machine.identity(t, one.provider); got != first {
				t.Errorf("account %d: %s has %q, not %q", i, one.provider, got, first)
			}
		}
	}
}

func TestNoIdentity(t *testing.T) {
	key := "ANTHROPIC_API_KEY=sk-ant-0123456789abcdef"
	for name, c := range map[string]struct {
		provider string
		machine  machine
	}{
		"no login":            {"claude", machine{}},
		"a short key":         {"claude", machine{env: "ANTHROPIC_API_KEY=password"}},
		"a server here":       {"claude", machine{env: key + " ANTHROPIC_BASE_URL=http://127.0.0.1:4000"}},
		"a server here, loop": {"openai-loop", machine{env: "OPENAI_API_KEY=sk-ant-0123456789abcdef OPENAI_BASE_URL=http://localhost:4000/v1"}},
		"headers":             {"claude", machine{env: key + " ANTHROPIC_CUSTOM_HEADERS=Team:one"}},
		"another mode":        {"claude", machine{env: key + " CLAUDE_CODE_USE_BEDROCK=1"}},
		"a login only":        {"claude", machine{login: login("a")}},
		"no organization":     {"claude", machine{login: login("a"), config: strings.Replace(ann, "organizationUuid", "other", 1)}},
		"another provider":    {"codex", machine{env: "CODEX_API_KEY=sk-ant-0123456789abcdef"}},
	} {
		if got := c.machine.identity(t, c.provider); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
