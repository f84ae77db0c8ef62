package forwarder

import (
	"cmp"
	"encoding/json"
	"path/filepath"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
)

// Identity returns an opaque name of the account, which is the same on all machines with this login, or "" if that is unknown. The tokens of a claude.ai login
// differ on each machine, so its account is that in the CLI's configuration.
func (l *Login) Identity() string {
	if len(l.further.header) > 0 { // they may choose the account
		return ""
	}
	api := l.upstream.String()
	if fixed, ok := l.source.(*fixed); ok {
		return endpoint.Identity(api, fixed.credential.key, fixed.credential.bearer)
	}
	var config struct {
		Account struct {
			ID           string `json:"accountUuid"`
			Organization string `json:"organizationUuid"`
		} `json:"oauthAccount"`
	}
	raw, err := regularfile.Read(l.config, maxSettings)
	if err != nil || json.Unmarshal(raw, &config) != nil || config.Account.ID == "" || config.Account.Organization == "" {
		return ""
	}
	return endpoint.Identity(api, config.Account.ID, config.Account.Organization)
}

// configFile returns the configuration of the CLI, which has the account of its saved login.
func configFile(getenv func(string) string, home string) string {
	return filepath.Join(cmp.Or(getenv("CLAUDE_CONFIG_DIR"), home), ".claude.json")
}
