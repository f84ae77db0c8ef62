package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Check returns an error for the model unless arguments fit the tool's schema. It names each
// argument that is wrong.
func (t Tool) Check(arguments json.RawMessage) error {
	schema, err := t.compiled()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return errors.New("the arguments are not JSON")
	}
	wrong := (*jsonschema.ValidationError)(nil)
	if err := schema.Validate(value); errors.As(err, &wrong) {
		return fmt.Errorf("wrong arguments: %s", strings.Join(details(wrong), "; "))
	}
	return nil
}

// Check returns an error for a person unless there is a tool of a name whose schema the arguments fit.
func Check(tools []Tool, name string, arguments json.RawMessage) error {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no tool %s", name)
	}
	return tools[i].Check(arguments)
}

func (t Tool) compiled() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(t.Schema))
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(none{})
	if err := compiler.AddResource(t.Name, document); err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	schema, err := compiler.Compile(t.Name)
	if err != nil {
		return nil, fmt.Errorf("the schema of %s: %w", t.Name, err)
	}
	return schema, nil
}

// none loads no schema: a tool's schema may not refer to files or addresses.
type none struct{}

// Load implements jsonschema.URLLoader.
func (none) Load(url string) (any, error) { return nil, fmt.Errorf("%s is not loaded", url) }

// details returns what is wrong, a text for each argument.
func details(e *jsonschema.ValidationError) []string {
	var all []string
	for _, unit := range e.BasicOutput().Errors {
		if unit.Error == nil {
			continue
		}
		text := unit.Error.String()
		if at := strings.Trim(unit.InstanceLocation, "/"); at != "" {
			text = at + ": " + text
		}
		all = append(all, text)
	}
	return all
}
