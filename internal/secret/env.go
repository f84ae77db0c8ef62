package secret

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// credentialName matches the names of variables that hold credentials.
var credentialName = lazyregexp.New(`(?i)(KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|HEADERS)`)

// IsCredentialName reports whether a variable of this name holds a credential.
func IsCredentialName(name string) bool { return credentialName.MatchString(name) }

// plainValue matches values that reveal nothing: words, numbers, versions.
var plainValue = lazyregexp.New(`^([A-Za-z]{1,15}|[0-9][0-9._:-]{0,11})$`)

// HideEnv hides the values of a process's environment variables. Of the variables that
// isNamed accepts, it hides those whose names suggest a credential and those whose values are not a
// plain word, number, file or URL. In all variables it hides the password of a URL. It returns the
// names of variables with credentials that are too short to hide.
func (s *Store) HideEnv(env []string, isNamed func(name string) bool) (short []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if password := passwordIn(value); len(password) >= MinLength {
			s.hideOnce(password)
		}
		switch {
		case !isNamed(name) || value == "":
		case credentialName.MatchString(name) && len(value) < MinLength:
			short = append(short, name)
		case len(value) < MinLength:
		case credentialName.MatchString(name) && !isFile(value), !isPlain(value):
			s.hideOnce(value)
		}
	}
	return short
}

// HideEnvFile hides the credentials in a file of variables, such as .env. In lines of the form
// NAME=VALUE it hides the values of credential names, and passwords in URLs.
func (s *Store) HideEnvFile(text string) {
	var env []string
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if name = strings.TrimSpace(name); !found || !nameRE.MatchString(name) {
			continue
		}
		env = append(env, name+"="+unquoted(strings.TrimSpace(value)))
	}
	s.HideEnv(env, IsCredentialName)
}

// unquoted returns a value without its quotes, or without a trailing comment.
func unquoted(value string) string {
	if value != "" && strings.ContainsRune("'\"`", rune(value[0])) {
		if inside, _, closed := strings.Cut(value[1:], value[:1]); closed {
			return inside
		}
	}
	bare, _, _ := strings.Cut(value, " #")
	return strings.TrimSpace(bare)
}

// isPlain reports whether a value cannot be a secret, judging by the value alone.
func isPlain(value string) bool {
	if plainValue.MatchString(value) || isFile(value) {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.Scheme != "" && u.Host != "" && u.User == nil && u.RawQuery == ""
}

// isFile reports whether a value is the absolute path of an existing file.
func isFile(value string) bool {
	_, err := os.Lstat(value)
	return filepath.IsAbs(value) && err == nil
}

func passwordIn(value string) string {
	u, err := url.Parse(value)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// hideOnce hides a value unless it is hidden already.
func (s *Store) hideOnce(value string) {
	if !slices.Contains(s.hidden(), value) {
		s.hide(value)
	}
}

// FromEnvironment reports whether a secret comes from the user's environment: it is not
// in the file, and the variable is set.
func (s *Store) FromEnvironment(name string) bool {
	_, ok := s.file[name]
	return !ok && s.getenv(Variable(name)) != ""
}

// Variable returns the environment variable for a secret that is not in the
// file.
func Variable(name string) string { return strings.ToUpper(name) }

// ShortWarning returns the warning about values that are too short to hide.
func ShortWarning(names []string) string {
	return fmt.Sprintf("values of fewer than %d characters are not hidden in records: %s", MinLength, strings.Join(names, ", "))
}
