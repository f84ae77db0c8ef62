// Package endpoint is the client of the model APIs that the built-in model plugins speak. It knows
// their addresses, credentials and models, sends requests, reads the streams of answers, and turns
// refusals into errors.
//
// Rules:
//   - The base URL and the credential come from the user's environment, never from a repository.
//   - No redirect is followed: it could take the credential elsewhere. No request is repeated.
//   - No error shows the credential.
package endpoint

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// Local is the account of all servers on this machine.
const Local = "local"

// API is a model API that a built-in model plugin speaks.
type API struct {
	Name    string   // of the plugin and the account
	Keys    []string // variables with a credential
	BaseURL string   // variable with the base URL

	standard string            // base URL without the variable
	short    map[string]string // IDs of models by short name
	version  string            // of Anthropic's API
}

// Anthropic is the Messages API of Anthropic.
func Anthropic() API {
	return API{
		Name: "anthropic", Keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, BaseURL: "ANTHROPIC_BASE_URL",
		standard: "https://api.anthropic.com/",
		short:    map[string]string{"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "haiku": "claude-haiku-5-5"},
		version:  "2023-06-01",
	}
}

// OpenAI is the Chat Completions API of OpenAI, which many other servers offer.
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

// Variables returns the variables of the user that the plugin reads.
func (a API) Variables() []string { return append(slices.Clone(a.Keys), a.BaseURL) }

// ShortNames returns the short names of models, sorted.
func (a API) ShortNames() []string {
	var names []string
	for name := range a.short {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// ModelID returns the ID of a model that is given by its ID or a short name.
func (a API) ModelID(name string) string { return cmp.Or(a.short[name], name) }

// Account returns what rate limits and usage belong to: the API, or Local.
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

// Check returns why the API cannot be used: a base URL that is none, or a
// pluginerr.ErrLogin if there is no credential. Only the maker's own server surely needs one.
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

// key returns the first variable that has a credential, or "".
func (a API) key(getenv func(string) string) string {
	for _, name := range a.Keys {
		if getenv(name) != "" {
			return name
		}
	}
	return ""
}

// Refused explains why the API refused the user, and returns the command that helps.
func (a API) Refused(getenv func(string) string) (why, next string) {
	if key := a.key(getenv); key != "" {
		return key + " is wrong", "export " + key + "=..."
	}
	return a.Keys[0] + " is not set", "export " + a.Keys[0] + "=..."
}

// hide returns a text without the credentials.
func (a API) hide(getenv func(string) string, text string) string {
	for _, name := range a.Keys {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			text = strings.ReplaceAll(text, value, "***")
		}
	}
	return text
}

// shown returns what people see of a text from a server: one line, not long, and without the
// credentials.
func (a API) shown(getenv func(string) string, text string) string {
	text = strings.Join(strings.Fields(a.hide(getenv, text)), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
