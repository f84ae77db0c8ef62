package tmpl

import (
	"errors"
	"fmt"
	"strings"
)

// Secret is a placeholder for a value that must not be recorded. In a command it becomes
// a reference to a variable (SecretVariable). In an environment variable it becomes a mark
// that Reveal replaces when a process starts.
type Secret struct{ Name string }

// errSecret is the error for any other use of a secret.
var errSecret = errors.New(`a secret can only be used alone, in a command or a variable: {{.secrets.NAME}}`)

// String hides even the name.
func (Secret) String() string { return "***" }

// MarshalJSON always fails.
func (Secret) MarshalJSON() ([]byte, error) { return nil, errSecret }

// SecretVariable returns the name of the variable that contains a secret for commands.
func SecretVariable(name string) string { return "COVEN_SECRET_" + name }

// nul delimits marks. It cannot occur in other values of a variable; see put.
const nul = "\x00"

// Variable renders the value of an environment variable. It contains secrets as marks.
func Variable(name, text string, data map[string]any) (string, error) {
	return render(name, text, variable, data, nil)
}

// CheckVariable checks a template for Variable.
func CheckVariable(name, text string) (Uses, error) { return check(name, text, variable) }

// Reveal replaces the marks in an output of Variable with the secrets.
func Reveal(value string, secret func(name string) (string, error)) (string, error) {
	parts := strings.Split(value, nul)
	for i := 1; i < len(parts); i += 2 {
		text, err := secret(parts[i])
		if err != nil {
			return "", err
		}
		parts[i] = text
	}
	return strings.Join(parts, ""), nil
}

// putSecret returns the output of an action for a secret.
func (p *program) putSecret(s Secret) (string, error) {
	switch p.form {
	case command:
		return fmt.Sprintf(`"$%s"`, SecretVariable(s.Name)), nil
	case variable:
		return nul + s.Name + nul, nil
	}
	return "", errSecret
}
