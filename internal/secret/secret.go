// Package secret hides secret values from records.
//
// A secret comes from .coven/secrets.yaml in the main checkout, which git must
// ignore, or else from the environment: api_key from $API_KEY. Only the processes that
// need it get the value. Plans, events, transcripts and commit messages contain ***
// instead.
package secret

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// File is the path of the secrets file, relative to the project.
const File = ".coven/secrets.yaml"

// MinLength is the minimum length of a secret in bytes. A shorter secret would occur in
// every text.
const MinLength = 6

const maxFile = 1 << 20

var nameRE = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// IsName reports whether a name is a valid name of a secret.
func IsName(name string) bool { return nameRE.MatchString(name) }

// UnknownError means that a secret does not exist.
type UnknownError struct {
	Name string
	Hint string
}

// Error returns "secret not found: x (...)".
func (e *UnknownError) Error() string {
	return fmt.Sprintf("secret not found: %s (%s)", e.Name, e.Hint)
}

// NextCommand returns the command that explains secrets.
func (e *UnknownError) NextCommand() string { return "coven help secrets" }

// Store holds the secrets of a project. It is safe for concurrent use.
type Store struct {
	file   map[string]string
	getenv func(string) string

	mu      sync.RWMutex
	known   []string // values to hide, longest first
	encoded []string // known, also in JSON encoding
}

// Open reads the secrets of a project. root is its main checkout; getenv reads the
// user's environment. If the file is invalid, the error is a yamldoc.Errors.
func Open(root string, getenv func(string) string) (*Store, error) {
	s := &Store{file: map[string]string{}, getenv: getenv}
	data, err := regularfile.ReadIn(root, File, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", File, err)
	}
	doc, err := yamldoc.Parse(File, data)
	if err != nil {
		return nil, err
	}
	keys := map[string]yamldoc.At[string]{}
	doc.Decode(&keys)
	for name, value := range keys {
		switch {
		case !IsName(name):
			doc.Fail(value, fmt.Sprintf("%q cannot be the name of a secret", name), "letters, digits and _, not starting with a digit")
		case len(value.Value) < MinLength:
			doc.Fail(value, fmt.Sprintf("the secret %q has fewer than %d characters", name, MinLength), "")
		case strings.ContainsRune(value.Value, 0):
			doc.Fail(value, fmt.Sprintf("the secret %q contains a NUL", name), "")
		}
		s.file[name] = value.Value
		s.hide(value.Value)
	}
	return s, doc.Err()
}

// Exists reports whether the project has a secrets file.
func Exists(root string) bool {
	_, err := os.Lstat(path.Join(root, File))
	return err == nil
}

// Value returns a secret and hides it from then on. The error is an *UnknownError if
// the secret does not exist.
func (s *Store) Value(name string) (string, error) {
	if value, ok := s.file[name]; ok {
		return value, nil
	}
	variable := Variable(name)
	value := s.getenv(variable)
	switch {
	case value == "":
		near := didyoumean.Hint(name, slices.Collect(maps.Keys(s.file)))
		hint := cmp.Or(near, fmt.Sprintf("put it into %s, or set $%s", File, variable))
		return "", &UnknownError{Name: name, Hint: hint}
	case len(value) < MinLength:
		return "", fmt.Errorf("the secret %s of $%s has fewer than %d characters", name, variable, MinLength)
	}
	s.hide(value)
	return value, nil
}
