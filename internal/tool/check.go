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

	"github.com/coven-run/coven/internal/text/strictjson"
)

// Check validates arguments against the tool's schema. The error is for the model and lists each
// invalid argument, or names an argument about which readers of JSON disagree.
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
	if _, err := strictjson.Object(arguments); err != nil {
		return fmt.Errorf("wrong arguments: %w", err)
	}
	return nil
}

// Check validates arguments against the schema of the named tool. The error is for a person.
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
	resolved, err := schema.Resolve(nil) // nil: a schema must not refer to files or addresses
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	return resolved, nil
}

// wrong returns one error text for each invalid argument, or else the text of err, the validator's error.
func wrong(root *jsonschema.Schema, value any, err error) []string {
	all := wrongAt(root, root, value, "")
	if len(all) == 0 {
		all = []string{reason(err)}
	}
	return all
}

// wrongAt returns the errors of the value at a path such as lines/2, including those of its elements.
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
			own.Properties[name] = &jsonschema.Schema{} // already validated
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
	if err != nil { // an unresolvable reference
		return all
	}
	if err := resolved.Validate(value); err != nil && at != "" {
		all = append(all, at+": "+reason(err))
	} else if err != nil {
		all = append(all, reason(err))
	}
	return all
}

// reason returns an error's text without the validator's location.
func reason(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, found := strings.Cut(text, ": ")
		if !found {
			break
		}
		text = rest
	}
	if short := []rune(text); len(short) > maxReason { // the text may quote the value
		text = string(short[:maxReason]) + "…"
	}
	return text
}

// maxReason limits the length of a reason in characters.
const maxReason = 300
