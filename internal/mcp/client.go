package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// ErrTool is the error of a failed tool call. Its text is the tool's output.
var ErrTool = errors.New("the tool failed")

type toolError struct{ text string }

func (e *toolError) Error() string        { return e.text }
func (e *toolError) Is(target error) bool { return target == ErrTool }

// InAgent reports whether an agent of a running coven started this process.
func InAgent(getenv func(string) string) bool { return getenv(SocketEnv) != "" }

// Call calls a tool of the coven that runs this process's agent. The error is ErrTool if the
// tool itself fails.
func Call(ctx context.Context, getenv func(string) string, version, tool string, arguments any) (string, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: getenv(SocketEnv), Net: "unix"})
	if err != nil {
		return "", fmt.Errorf("connect to the coven that runs this agent: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the call is over
	if _, err := fmt.Fprintln(conn, getenv(TokenEnv)); err != nil {
		return "", fmt.Errorf("connect to the coven that runs this agent: %w", err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: Name, Version: version}, nil)
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: stream{bufio.NewReader(conn), conn}, Writer: conn, MaxLineLength: maxLine}, nil)
	if err != nil {
		return "", fmt.Errorf("the coven that runs this agent does not answer: %w", err)
	}
	defer session.Close() //nolint:errcheck // the call is over
	raw, err := json.Marshal(arguments)
	if err != nil {
		return "", fmt.Errorf("encode the arguments: %w", err)
	}
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(raw)})
	if err != nil {
		return "", fmt.Errorf("call %s: %w", tool, err)
	}
	var texts []string
	for _, content := range result.Content {
		if block, ok := content.(*sdk.TextContent); ok {
			texts = append(texts, block.Text)
		}
	}
	text := strings.Join(texts, "\n")
	if result.IsError {
		return "", &toolError{text}
	}
	return text, nil
}
