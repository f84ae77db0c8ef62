// Package suspect recognizes files that look like secrets of a person, by their names and contents.
package suspect

import (
	"bytes"
	"path"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Name returns the reason why the name of a file is suspect, or "".
func Name(p string) string {
	name := strings.ToLower(path.Base(p))
	switch name {
	case ".env":
		return "an environment file"
	case ".env.example", ".env.sample", ".env.template", ".env.dist":
		return ""
	case "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".pgpass", ".git-credentials":
		return "a credentials file"
	}
	if strings.HasPrefix(name, ".env.") {
		return "an environment file"
	}
	switch path.Ext(name) {
	case ".p12", ".pfx", ".jks", ".keystore":
		return "a private key store"
	}
	return ""
}

// tokens lists the types of secrets. Each secret of a type contains hint.
var tokens = []struct {
	hint, reason string
	pattern      *lazyregexp.Regexp
}{
	{"PRIVATE KEY", "a private key", lazyregexp.New(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)},
	{"AKIA", "an AWS access key", lazyregexp.New(`\bAKIA[0-9A-Z]{16}\b`)},
	{"gh", "a GitHub token", lazyregexp.New(`\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22,})`)},
	{"sk-ant-", "an Anthropic key", lazyregexp.New(`\bsk-ant-[A-Za-z0-9_-]{20,}`)},
}

// Content returns the reason why the content of a file is suspect, or "".
func Content(content []byte) string {
	for _, t := range tokens {
		if !bytes.Contains(content, []byte(t.hint)) {
			continue
		}
		for _, match := range t.pattern.FindAllString(string(content), -1) {
			if !strings.HasSuffix(match, "EXAMPLE") { // AWS's documentation uses such keys
				return t.reason
			}
		}
	}
	return ""
}
