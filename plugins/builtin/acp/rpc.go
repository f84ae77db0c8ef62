package acp

import (
	"encoding/json"
	"fmt"
	"strings"
)

// IDs of coven's requests.
const (
	idInitialize = 1
	idNew        = 2
	idLoad       = 3
)

// Prefixes of the IDs of other requests. The session ID follows, because the responses do not contain it.
const (
	idPrompt    = "prompt "
	idModel     = "model "
	idModelMode = "model, mode " // the mode is chosen next
	idMode      = "mode "
)

// maxID limits the length of the ID of an agent's request, in bytes.
const maxID = 200

// message is a line of the protocol: a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// text returns the error as one line. Agents put important details into the data.
func (e rpcError) text() string {
	var detail string
	var data struct{ Details, Message string }
	if json.Unmarshal(e.Data, &data) == nil {
		detail = data.Details + data.Message
	} else {
		_ = json.Unmarshal(e.Data, &detail) // there may be none
	}
	if detail == "" || strings.Contains(e.Message, detail) {
		return e.Message
	}
	return e.Message + ": " + detail
}

// request encodes a request to the agent.
func request(id any, method string, params any) ([]byte, error) {
	return line(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

// notification encodes a notification to the agent.
func notification(method string, params any) ([]byte, error) {
	return line(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// result encodes the response to a request of the agent.
func result(id json.RawMessage, value any) ([]byte, error) {
	return line(map[string]any{"jsonrpc": "2.0", "id": id, "result": value})
}

// failure encodes an error response to a request of the agent.
func failure(id json.RawMessage, code int, text string) ([]byte, error) {
	return line(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text}})
}

func line(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode a message to the agent: %w", err)
	}
	return append(text, '\n'), nil
}
