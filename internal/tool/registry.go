package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Builtin is the source of coven's own tools.
const Builtin = "builtin"

// Categories returns the categories of tools.
func Categories() []string {
	return []string{"file", "code", "document", "search", "api", "data", "shell", "communication", "utility"}
}

// nameRE matches a name that all model APIs accept.
var nameRE = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// DuplicateError means that a tool with the same name or ID exists.
type DuplicateError struct {
	Name   string
	Source string // of the existing tool
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("duplicate tool %s: %s has one", e.Name, e.Source)
}

// Registry holds tools with unique names and IDs. The zero value is empty and ready to use.
type Registry struct{ tools []Tool }

// Define adds a tool. It returns a *DuplicateError if the name or ID is taken, or another error if the tool is
// invalid. A tool without an ID gets its name as ID.
func (r *Registry) Define(t Tool) error {
	t.ID = cmp.Or(t.ID, t.Name)
	t.Source = cmp.Or(t.Source, Builtin)
	for _, other := range r.tools {
		for _, taken := range []string{other.Name, other.ID} {
			if taken == t.Name || taken == t.ID {
				return &DuplicateError{taken, other.Source}
			}
		}
	}
	if err := t.valid(); err != nil {
		return fmt.Errorf("tool %s: %w", t.Name, err)
	}
	r.tools = append(r.tools, t)
	return nil
}

func (t Tool) valid() error {
	switch {
	case !nameRE.MatchString(t.Name):
		return errors.New("a name has 1 to 64 letters, digits, _ and -")
	case !slices.Contains(Categories(), t.Category):
		return fmt.Errorf("unknown category %q%s", t.Category, didyoumean.Aside(t.Category, Categories()))
	case strings.TrimSpace(t.Description) == "":
		return errors.New("it has no description")
	case t.Call == nil:
		return errors.New("it does nothing")
	}
	schema, err := t.compiled()
	if err == nil && schema.Schema().Type != "object" {
		err = errors.New("its parameters are not an object: the schema needs \"type\": \"object\"")
	}
	return err
}

// Tools returns the tools in the order in which they were defined.
func (r *Registry) Tools() []Tool { return slices.Clone(r.tools) }

// Find returns the tool with a name or an ID.
func Find(tools []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name || t.ID == name && name != "" })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}
