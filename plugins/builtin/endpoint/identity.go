package endpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// minCredential is the length of the shortest credential that cannot be guessed from its hash.
const minCredential = 20

// Identity returns an opaque name of the account that credentials belong to at the API with a base URL. It does not reveal them. It is empty if
// they are too short, or if the API is on this machine: there, other machines have another one at the same URL.
func Identity(base string, credentials ...string) string {
	server, err := url.Parse(base)
	all := strings.Join(credentials, "\n")
	if err != nil || isLoopback(server.Hostname()) || len(all) < minCredential {
		return ""
	}
	sum := sha256.Sum256([]byte("coven account\n" + base + "\n" + all))
	return hex.EncodeToString(sum[:16])
}

// Identity returns the Identity of the user.
func (a API) Identity(getenv func(string) string) string {
	var credentials []string
	for _, name := range a.Keys {
		credentials = append(credentials, strings.TrimSpace(getenv(name)))
	}
	return Identity(a.URL(getenv), credentials...)
}
