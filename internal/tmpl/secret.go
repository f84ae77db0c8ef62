package tmpl

import (
	"errors"
	"fmt"
	"strings"
)

// Secret stands for a value that no record may hold. A command names a variable
// in its place (SecretVariable), a variable of the environment a mark that Reveal
// replaces when a process is started.
type Secret struct{ Name string }

// errSecret is what every other use of a secret gives.
var errSecret = errors.New(`a secret can only be used alone, in a command or a variable: {{.secrets.NAME}}`)

// String hides even the name from print.
func (Secret) String() string { return "***" }

// MarshalJSON refuses.
func (Secret) MarshalJSON() ([]byte, error) { return nil, errSecret }

// SecretVariable is the variable that a command finds a secret in.
func SecretVariable(name string) string { return "COVEN_SECRET_" + name }

// nul is in no other value of a variable: see put.
const nul = "\x00"

// Variable renders a template that becomes the value of an environment variable.
// Secrets in it are marks.
func Variable(name, text string, data map[string]any) (string, error) {
	return render(name, text, variable, data, nil)
}

// CheckVariable finds what is wrong in a template for Variable.
func CheckVariable(name, text string) (Uses, error) { return check(name, text, variable) }

// Reveal puts secrets in the place of the marks that Variable leaves.
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

// putSecret is what an action prints for a secret.
func (p *program) putSecret(s Secret) (string, error) {
	switch p.form {
	case command:
		return fmt.Sprintf(`"$%s"`, SecretVariable(s.Name)), nil
	case variable:
		return nul + s.Name + nul, nil
	}
	return "", errSecret
}
