// Package endpoint is the client of the model APIs for the built-in model plugins. It contains their
// addresses, credentials and models, sends requests, reads streamed answers, and converts refusals to
// errors.
//
// Rules:
//   - The base URL and the credential come from the user's environment, never from a
//     repository.
//   - No redirect is followed, because it could leak the credential. No request is repeated.
//   - No error contains the credential.
package endpoint

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// Local is the account of all servers on this machine.
const Local = "local"

// API is a model API that a built-in model plugin supports.
type API struct {
	Name    string   // name of the plugin and the account
	Keys    []string // variables with a credential
	BaseURL string   // variable with the base URL

	standard string            // base URL without the variable
	short    map[string]string // IDs of models by short name
	version  string            // version of Anthropic's API
}

// Anthropic returns Anthropic's Messages API.
func Anthropic() API {
	return API{
		Name: "anthropic", Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, BaseURL: "ANTHROPIC_BASE_URL",
		standard: "https://api.anthropic.com/",
		short:    map[string]string{"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "haiku": "claude-haiku-5-5"},
		version:  "2023-06-01",
	}
}

// OpenAI returns OpenAI's Chat Completions API, which many other servers also offer.
func OpenAI() API {
	return API{Name: "openai", Keys: []string{"OPENAI_API_KEY"}, BaseURL: "OPENAI_BASE_URL", standard: "https://api.openai.com/v1/"}
}

// Of returns the API of a built-in model plugin.
func Of(plugin string) (API, bool) {
	for _, a := range []API{Anthropic(), OpenAI()} {
		if a.Name == plugin {
			return a, true
		}
	}
	return API{}, false
}

// Variables returns the user's environment variables that the plugin reads.
func (a API) Variables() []string { return append(slices.Clone(a.Keys), a.BaseURL) }

// ShortNames returns the short names of models, sorted.
func (a API) ShortNames() []string { return slices.Sorted(maps.Keys(a.short)) }

// ModelID returns the ID of a model. name is the ID or a short name.
func (a API) ModelID(name string) string { return cmp.Or(a.short[name], name) }

// Account returns the account that rate limits and usage belong to: the API, or Local.
func (a API) Account(getenv func(string) string) string {
	base, err := url.Parse(a.URL(getenv))
	if err == nil && isLoopback(base.Hostname()) {
		return Local
	}
	return a.Name
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsStandard reports whether the maker's own server is used.
func (a API) IsStandard(getenv func(string) string) bool { return a.URL(getenv) == a.standard }

// URL returns the base URL. It ends with a slash.
func (a API) URL(getenv func(string) string) string {
	base := cmp.Or(strings.TrimSpace(getenv(a.BaseURL)), a.standard)
	return strings.TrimRight(base, "/") + "/"
}

// Check returns the reason why the API cannot be used: an invalid base URL, or pluginerr.ErrLogin for a
// missing credential. Only the maker's own server certainly requires one.
func (a API) Check(getenv func(string) string) error {
	base, err := url.Parse(a.URL(getenv))
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return classified{fmt.Errorf("%s is not the URL of a server", a.BaseURL), pluginerr.ErrInvalid}
	}
	if a.IsStandard(getenv) && a.key(getenv) == "" {
		return classified{fmt.Errorf("%s is not set", a.Keys[0]), pluginerr.ErrLogin}
	}
	return nil
}

// key returns the first variable that contains a credential, or "".
func (a API) key(getenv func(string) string) string {
	for _, name := range a.Keys {
		if getenv(name) != "" {
			return name
		}
	}
	return ""
}

// Refused explains why the API rejected the user, and returns the command that helps.
func (a API) Refused(getenv func(string) string) (why, next string) {
	if key := a.key(getenv); key != "" {
		return key + " is wrong", "export " + key + "=..."
	}
	return a.Keys[0] + " is not set", "export " + a.Keys[0] + "=..."
}

// hide removes the credentials from a text.
func (a API) hide(getenv func(string) string, text string) string {
	for _, name := range a.Keys {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}

// shown formats a text from a server for people: as one short line, without the credentials.
func (a API) shown(getenv func(string) string, text string) string {
	text = strings.Join(strings.Fields(a.hide(getenv, text)), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
