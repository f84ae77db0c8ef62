package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/doctor/programversion"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/acp"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// provider returns the default provider.
func (v *Examination) provider() string {
	if v.project == nil {
		return config.Default().Provider
	}
	return v.project.Config.Provider
}

// providerUses returns the users of providers other than the default one, by provider.
func (v *Examination) providerUses() map[string]string {
	if v.uses == nil && v.project != nil {
		views, _ := v.sessionViews() // the checkup of sessions reports damaged ones
		v.uses = v.project.ProviderUses(views)
	}
	return v.uses
}

// agentCLI checks the program of a provider, if the repository uses it. A missing program is a failure for
// the default provider, and a warning for others.
func (v *Examination) agentCLI(ctx context.Context, c builtin.AgentCLI) []Finding {
	required, user := v.provider() == c.Program, v.providerUses()[c.Program]
	if !required && user == "" {
		return nil
	}
	said, err := programversion.Of(ctx, c.Program)
	switch {
	case err != nil && required:
		return fail(c.Install(), "%v", err)
	case err != nil:
		return warn(c.Install(), "%v; %s needs it", err, user)
	}
	switch older, known := programversion.OlderThan(said, c.Tested); {
	case !known:
		return warn(c.Program+" --version", "it does not print its version: %s", said)
	case older:
		return warn(c.Install(), "%s is older than %s, the version that coven is tested with", said, c.Tested)
	}
	return ok("%s", said)
}

// agent checks the agent in the user's acp settings, as agentCLI does.
func (v *Examination) agent(context.Context) []Finding {
	required, user := v.provider() == acp.Name, v.providerUses()[acp.Name]
	if !required && user == "" {
		return nil
	}
	err := v.project.CheckProvider(acp.Name)
	switch next := exit.Next(err); {
	case err != nil && required:
		return fail(next, "%v", err)
	case err != nil:
		return warn(next, "%v; %s needs it", err, user)
	}
	return ok("%s", strings.Join(v.project.Config.ACP.Command, " "))
}

// login looks for the credential of the default provider. It does not read it.
func (v *Examination) login(context.Context) []Finding {
	if api, ok := builtin.APIOf(v.provider()); ok {
		return v.api(api)
	}
	if plugin, loop := plugins.LoopModel(v.provider()); loop {
		return ok("model plugin %s needs none, or finds it itself", plugin)
	}
	switch v.provider() {
	case acp.Name:
		return ok("the agent finds it itself: acp.pass and acp.logins name it")
	case "codex":
		return v.codexLogin()
	case "qwen":
		return v.key("OPENAI_API_KEY")
	}
	return v.claudeLogin()
}

// api looks for the credential of a model API that coven's own loop uses.
func (v *Examination) api(api endpoint.API) []Finding {
	if err := api.Check(v.env.Getenv); err != nil {
		_, next := api.Refused(v.env.Getenv)
		if !errors.Is(err, pluginerr.ErrLogin) {
			next = "export " + api.BaseURL + "=..."
		}
		return fail(next, "%v", err)
	}
	for _, name := range api.Keys {
		if v.env.Getenv(name) != "" {
			return ok("%s is set (not tried)", name)
		}
	}
	return ok("%s is set: a server of yours may need no key", api.BaseURL)
}

// key looks for a credential in the environment.
func (v *Examination) key(name string) []Finding {
	if v.env.Getenv(name) == "" {
		return fail("export "+name+"=...", "no credential: %s is not set", name)
	}
	return ok("%s is set (not tried)", name)
}

func (v *Examination) codexLogin() []Finding {
	switch {
	case v.env.Getenv("OPENAI_BASE_URL") != "":
		return v.key("OPENAI_API_KEY")
	case v.env.Getenv("CODEX_API_KEY") != "":
		return v.key("CODEX_API_KEY")
	}
	dir := v.env.Getenv("CODEX_HOME")
	if dir == "" {
		dir = filepath.Join(v.env.Getenv("HOME"), ".codex")
	}
	return loginFile(filepath.Join(dir, "auth.json"), "codex login", "CODEX_API_KEY is not set")
}

func (v *Examination) claudeLogin() []Finding {
	cli, _ := builtin.CLIOf("claude")
	for _, name := range cli.Keys {
		if v.env.Getenv(name) != "" {
			return ok("%s is set (not tried)", name)
		}
	}
	dir := v.env.Getenv("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = filepath.Join(v.env.Getenv("HOME"), ".claude")
	}
	return loginFile(filepath.Join(dir, ".credentials.json"), cli.Login,
		"neither ANTHROPIC_API_KEY nor CLAUDE_CODE_OAUTH_TOKEN is set")
}

// loginFile looks for the login of a CLI. next is the command that logs in.
func loginFile(file, next, unset string) []Finding {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail(next, "no credential: %s, and %s does not exist", unset, file)
	case err != nil:
		return fail(next, "%v", err)
	case !info.Mode().IsRegular() || info.Size() == 0:
		return fail(next, "%s is empty", file)
	}
	return ok("the agent CLI has its own login in %s (not tried)", file)
}
