package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Check returns an error for the model unless arguments fit the tool's schema. It names each
// argument that is wrong.
func (t Tool) Check(arguments json.RawMessage) error {
	schema, err := t.compiled()
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(arguments, &value); err != nil {
		return errors.New("the arguments are not JSON")
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("wrong arguments: %s", strings.Join(wrong(schema.Schema(), value, err), "; "))
	}
	return nil
}

// Check returns an error for a person unless there is a tool of a name whose schema the arguments fit.
func Check(tools []Tool, name string, arguments json.RawMessage) error {
	t, ok := Find(tools, name)
	if !ok {
		return fmt.Errorf("there is no tool %s", name)
	}
	return t.Check(arguments)
}

func (t Tool) compiled() (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	err := json.Unmarshal(t.Schema, &schema)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	resolved, err := schema.Resolve(nil) // a tool's schema may not refer to files or addresses
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	return resolved, nil
}

// wrong returns what is wrong with a value, a text for each argument; err is what the validator says of all.
func wrong(root *jsonschema.Schema, value any, err error) []string {
	all := wrongAt(root, root, value, "")
	if len(all) == 0 {
		all = []string{reason(err)}
	}
	return all
}

// wrongAt returns what is wrong with the value at a place, such as lines/2, and with what it contains.
func wrongAt(root, s *jsonschema.Schema, value any, at string) (all []string) {
	own := *s.CloneSchemas()
	own.Defs, own.Definitions = root.CloneSchemas().Defs, root.CloneSchemas().Definitions
	own.Default, own.ID, own.Schema = nil, "", root.Schema
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if v, given := value[name]; given {
				all = append(all, wrongAt(root, s.Properties[name], v, path.Join(at, name))...)
			}
			own.Properties[name] = &jsonschema.Schema{} // it has been looked at
		}
	case []any:
		for i, v := range value {
			if s.Items != nil {
				all = append(all, wrongAt(root, s.Items, v, path.Join(at, strconv.Itoa(i)))...)
			}
		}
		own.Items = nil
	}
	resolved, err := own.Resolve(nil)
	if err != nil { // it refers to something that is not here
		return all
	}
	if err := resolved.Validate(value); err != nil && at != "" {
		all = append(all, at+": "+reason(err))
	} else if err != nil {
		all = append(all, reason(err))
	}
	return all
}

// reason returns what is wrong, without where the validator found it.
func reason(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, found := strings.Cut(text, ": ")
		if !found {
			break
		}
		text = rest
	}
	if short := []rune(text); len(short) > maxReason { // it quotes the value
		text = string(short[:maxReason]) + "…"
	}
	return text
}

// maxReason is how many characters of a reason the model is told.
const maxReason = 300
