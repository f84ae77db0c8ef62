package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coven-run/coven/internal/config"
)

// provider is who drives agents where nothing else is said.
func (v *visit) provider() string {
	if v.house == nil {
		return config.Default().Provider
	}
	return v.house.config.Provider
}

// agentCLI reports whether the program is there. Only the one that agents are driven with
// is missed.
func (v *visit) agentCLI(ctx context.Context, c agentCLI) []finding {
	said, err := versionOf(ctx, c.program)
	if err != nil && v.provider() != c.program {
		return good("%v; not needed as long as provider is %s", err, v.provider())
	}
	if err != nil {
		return bad(c.install(), "%v", err)
	}
	switch older, known := olderThan(said, c.tested); {
	case !known:
		return odd(c.program+" --version", "it does not say its version: %s", said)
	case older:
		return odd(c.install(), "%s is older than %s, with which coven is tested", said, c.tested)
	}
	return good("%s", said)
}

// login looks for a credential of the agent CLI, and not into it.
func (v *visit) login(context.Context) []finding {
	switch v.provider() {
	case "codex":
		return v.codexLogin()
	case "qwen":
		return v.key("OPENAI_API_KEY")
	}
	return v.claudeLogin()
}

// key looks for a credential in the environment.
func (v *visit) key(name string) []finding {
	if v.env.getenv(name) == "" {
		return bad("export "+name+"=...", "no credential: %s is not set", name)
	}
	return good("%s is set (nobody has tried it)", name)
}

func (v *visit) codexLogin() []finding {
	switch {
	case v.env.getenv("OPENAI_BASE_URL") != "":
		return v.key("OPENAI_API_KEY")
	case v.env.getenv("CODEX_API_KEY") != "":
		return v.key("CODEX_API_KEY")
	}
	dir := v.env.getenv("CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(v.env.getenv("HOME"), ".codex")
	}
	return loginFile(filepath.Join(dir, "auth.json"), "codex login", "CODEX_API_KEY is not set")
}

func (v *visit) claudeLogin() []finding {
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"} {
		if v.env.getenv(name) != "" {
			return good("%s is set (nobody has tried it)", name)
		}
	}
	dir := v.env.getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(v.env.getenv("HOME"), ".claude")
	}
	return loginFile(filepath.Join(dir, ".credentials.json"), "claude auth login",
		"neither ANTHROPIC_API_KEY nor CLAUDE_CODE_OAUTH_TOKEN is set")
}

// loginFile looks for a CLI's own login. next makes one.
func loginFile(file, next, unset string) []finding {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bad(next, "no credential: %s, and %s is not there", unset, file)
	case err != nil:
		return bad(next, "%v", err)
	case !info.Mode().IsRegular() || info.Size() == 0:
		return bad(next, "%s is empty", file)
	}
	return good("the agent CLI has its own login in %s (nobody has tried it)", file)
}
