package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/tool"
)

func sample(name, id string) tool.Tool {
	return tool.Tool{
		Kind: tool.Kind{Name: name, ID: id}, Category: "file", Description: "Does it.", Schema: json.RawMessage(`{"type":"object"}`),
		Call: func(context.Context, json.RawMessage) (string, error) { return "", nil },
	}
}

// T-06, T-07: Valid and invalid tools.
func TestDefine(t *testing.T) {
	var r tool.Registry
	if err := r.Define(sample("sample", "fs_sample")); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"sample": "other", "other": "fs_sample", "fs_sample": "x"} {
		err := r.Define(sample(name, id))
		if taken := (*tool.DuplicateError)(nil); !errors.As(err, &taken) || taken.Source != tool.Builtin {
			t.Errorf("%s with the ID %s: %v", name, id, err)
		}
	}
	for want, change := range map[string]func(*tool.Tool){
		`unknown category "fil" (did you mean "file"?)`: func(t *tool.Tool) { t.Category = "fil" },
		`unknown category ""`:                           func(t *tool.Tool) { t.Category = "" },
		"it has no description":                         func(t *tool.Tool) { t.Description = " \n" },
		"it does nothing":                               func(t *tool.Tool) { t.Call = nil },
		"the schema of":                                 func(t *tool.Tool) { t.Schema = json.RawMessage(`{"type":7}`) },
		`the schema needs "type": "object"`:             func(t *tool.Tool) { t.Schema = json.RawMessage(`{"type":"string"}`) },
	} {
		broken := sample("new", "")
		change(&broken)
		err := r.Define(broken)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, name := range []string{"", "a b", "a.b", strings.Repeat("a", 65)} {
		if err := r.Define(sample(name, "")); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	if all := r.Tools(); len(all) != 1 || all[0].Name != "sample" {
		t.Errorf("the registry has %v", all)
	}
	for _, name := range []string{"sample", "fs_sample"} {
		if found, ok := tool.Find(r.Tools(), name); !ok || found.Name != "sample" {
			t.Errorf("%s is not found", name)
		}
	}
	if _, ok := tool.Find(r.Tools(), ""); ok {
		t.Error("a tool without a name is found")
	}
}

// T-10: The three formats.
func TestToProvider(t *testing.T) {
	one := []tool.Tool{{Kind: tool.Kind{Name: "read"}, Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`), ReadOnly: true}}
	for format, want := range map[string]string{
		"anthropic": `[{"name":"read","description":"Reads.","input_schema":{"type":"object"}}]`,
		"openai":    `[{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object"}}}]`,
		"mcp":       `[{"name":"read","description":"Reads.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]`,
	} {
		value, err := tool.ToProvider(one, format)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(value); err != nil || string(got) != want {
			t.Errorf("%s: %s (%v)", format, got, err)
		}
	}
	if _, err := tool.ToProvider(one, "gemini"); err == nil {
		t.Error("there is a format gemini")
	}
	if value, err := tool.ToProvider(nil, "mcp"); err != nil || len(value.([]any)) != 0 {
		t.Errorf("no tools: %v, %v", value, err)
	}
}
