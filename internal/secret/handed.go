package secret

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// telling matches the names of variables that hold credentials.
var telling = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE|HEADERS)`)

// IsTelling reports whether a variable of this name holds a credential.
func IsTelling(name string) bool { return telling.MatchString(name) }

// plainValue matches values that say nothing: words, numbers, versions.
var plainValue = regexp.MustCompile(`^([A-Za-z]{1,15}|[0-9][0-9._:-]{0,11})$`)

// Handed hides the values of variables that a process is handed: those that hold a
// credential by their name, and those that are no plain word, number, file or address.
// Of an address its password is hidden, in any variable. It returns the names of
// variables that hold a credential which is too short to be found.
func (s *Store) Handed(env []string, isNamed func(name string) bool) (short []string) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if password := passwordIn(value); len(password) >= MinLength {
			s.hideOnce(password)
		}
		switch {
		case !isNamed(name) || value == "":
		case telling.MatchString(name) && len(value) < MinLength:
			short = append(short, name)
		case len(value) < MinLength:
		case telling.MatchString(name) && !isFile(value), !isPlain(value):
			s.hideOnce(value)
		}
	}
	return short
}

// isPlain reports whether a value is no secret by itself.
func isPlain(value string) bool {
	if plainValue.MatchString(value) || isFile(value) {
		return true
	}
	u, err := url.Parse(value)
	return err == nil && u.Scheme != "" && u.Host != "" && u.User == nil && u.RawQuery == ""
}

// isFile reports whether a value is the path of something that is there.
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

// hideOnce is hide of a value that may be hidden already.
func (s *Store) hideOnce(value string) {
	if !slices.Contains(s.hidden(), value) {
		s.hide(value)
	}
}

// FromEnvironment reports whether a secret is taken from a variable of the user's: the
// file does not have it, and the variable is set.
func (s *Store) FromEnvironment(name string) bool {
	_, ok := s.file[name]
	return !ok && s.getenv(Variable(name)) != ""
}

// Variable is the variable that a secret comes from when the file does not have it.
func Variable(name string) string { return strings.ToUpper(name) }

// ShortWarning reports that values are too short to be hidden.
func ShortWarning(names []string) string {
	return fmt.Sprintf("values of fewer than %d characters are not hidden in records: %s", MinLength, strings.Join(names, ", "))
}
