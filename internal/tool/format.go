package tool

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Formats returns the names of the description formats for tools.
func Formats() []string { return []string{"anthropic", "openai", "mcp"} }

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type openAITool struct {
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations mcpAnnotations  `json:"annotations"`
}

type mcpAnnotations struct {
	ReadOnly bool `json:"readOnlyHint"`
}

// ToProvider converts tools to a format of a model API or an MCP client. The result is a list to encode
// as JSON, with one element for each tool.
func ToProvider(tools []Tool, format string) (any, error) {
	all := []any{}
	for _, t := range tools {
		switch format {
		case "anthropic":
			all = append(all, anthropicTool{t.Name, t.Description, t.Schema})
		case "openai":
			all = append(all, openAITool{"function", openAIFunction{t.Name, t.Description, t.Schema}})
		case "mcp":
			all = append(all, mcpTool{t.Name, t.Description, t.Schema, mcpAnnotations{t.ReadOnly}})
		default:
			return nil, fmt.Errorf("unknown format %q; there are %s", format, strings.Join(Formats(), ", "))
		}
	}
	return all, nil
}
