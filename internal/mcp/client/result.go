package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// text converts the result of a call to text for the model. It describes content that is not text.
func text(r *sdk.CallToolResult) (string, error) {
	var all []string
	for _, content := range r.Content {
		switch c := content.(type) {
		case *sdk.TextContent:
			all = append(all, c.Text)
		case *sdk.ImageContent:
			all = append(all, fmt.Sprintf("(an image of type %s, %d bytes)", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			all = append(all, fmt.Sprintf("(audio of type %s, %d bytes)", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			all = append(all, strings.TrimSpace(fmt.Sprintf("(a resource: %s %s)", c.URI, c.Description)))
		case *sdk.EmbeddedResource:
			all = append(all, embedded(c.Resource))
		}
	}
	if len(all) == 0 && r.StructuredContent != nil {
		structured, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return "", fmt.Errorf("its result cannot be read: %w", err)
		}
		all = append(all, string(structured))
	}
	joined := strings.ToValidUTF8(strings.Join(all, "\n"), "�")
	if len(joined) > maxResult {
		joined = fmt.Sprintf("%s\n(%d bytes more are left out)", strings.ToValidUTF8(joined[:maxResult], ""), len(joined)-maxResult)
	}
	if r.IsError {
		return "", errors.New(joined)
	}
	return joined, nil
}

func embedded(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "(an empty resource)"
	case r.Text != "":
		return r.Text
	}
	return fmt.Sprintf("(a resource %s of type %s, %d bytes)", r.URI, r.MIMEType, len(r.Blob))
}
