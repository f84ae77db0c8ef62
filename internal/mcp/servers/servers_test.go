package servers_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/mcp/servers"
)

// T-23: All formats of the file, and the keys that other programs have.
func TestParse(t *testing.T) {
	for text, want := range map[string]servers.Config{
		`{ "servers": [{ "name": "playwright", "command": "npx @playwright/mcp", "args": ["--headless"] }, {"name": "docs", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}] }`: {Servers: []servers.Server{
			{Name: "docs", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
			{Name: "playwright", Line: "npx @playwright/mcp", Argv: []string{"--headless"}},
		}},
		`{"mcpServers": {
			"files": {"type": "stdio", "command": "/opt/my files/serve", "args": ["${ROOT:-/tmp}", 3000], "env": {"A": "${B}", "N": 1, "T": true}},
			"old": {"type": "sse", "url": "http://localhost:1/sse"},
			"off": {"command": "x", "disabled": true}, "out": {"enabled": false}}, "$schema": "x"}`: {Servers: []servers.Server{
			{Name: "files", Argv: []string{"/opt/my files/serve", "${ROOT:-/tmp}", "3000"}, Env: map[string]string{"A": "${B}", "N": "1", "T": "true"}},
			{Name: "old", URL: "http://localhost:1/sse", Events: true},
		}, Disabled: []string{"off", "out"}},
		`{"servers": {"GitHub": {"url": "https://example.com", "headers": {"K": "${env:KEY}"}}}}`: {Servers: []servers.Server{
			{Name: "GitHub", URL: "https://example.com", Headers: map[string]string{"K": "${KEY}"}},
		}},
		`{"@my/server v2": {"command": ["npx", "x"], "environment": {"A": "b"}}, "remote": {"serverUrl": "https://example.com", "transport": "streamable-http"}}`: {Servers: []servers.Server{
			{Name: "my_server_v2", Argv: []string{"npx", "x"}, Env: map[string]string{"A": "b"}},
			{Name: "remote", URL: "https://example.com"},
		}},
		"{ // of \"all\"\n\"servers\": /* {\n} */ {\"a\": {\"url\": \"https://example.com/*,}\", /**/}, // ,}\n},\n}": {Servers: []servers.Server{
			{Name: "a", URL: "https://example.com/*,}"},
		}},
		`{}`:                {},
		`{"mcpServers":{}}`: {},
	} {
		got, err := servers.Parse(".mcp.json", []byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v %v\nwant %+v", text, got, err, want)
		}
	}
	s := servers.Server{Argv: []string{"${ROOT:-/tmp}"}, Env: map[string]string{"A": "${B}"}}
	if v := s.Variables(); !reflect.DeepEqual(v, []string{"B", "ROOT"}) {
		t.Errorf("variables: %v", v)
	}
}

// A file that has none of the formats is an error.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"server\": []}":                     `mcp.json:2: unknown key "server" (did you mean "servers"?)`,
		"{\n\n\"servers\": [}":                   `mcp.json:3: invalid character '}' looking for beginning of value`,
		"{ // a\n/* \n */ \"server\": []}":       `mcp.json:3: unknown key "server" (did you mean "servers"?)`,
		"{ /* \n}":                               `mcp.json:1: invalid character '/' looking for beginning of object key string`,
		`{} {}`:                                  `mcp.json:1: something follows the object`,
		``:                                       `mcp.json:1: EOF`,
		`[]`:                                     `mcp.json:1: cannot unmarshal array into Go value of type map[string]json.RawMessage`,
		`{"mcpServer": {"a": {"command": "b"}}}`: `mcp.json:1: unknown key "mcpServer" (did you mean "mcpServers"?)`,
	} {
		_, err := servers.Parse("mcp.json", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// One server that cannot be used does not hide another, and an unknown key hides none.
func TestProblems(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "b"}`:                                      `mcp.json:1: a server has no name`,
		`{"name": "a/b", "command": "b"}`:                       `mcp.json:1: invalid name "a/b" of a server: use letters, digits, - and _, at most 32`,
		`{"name": "a"}`:                                         `mcp.json:1: server a has neither a command nor a url`,
		`{"name": "a", "command": "b", "url": "c"}`:             `mcp.json:1: server a has both a command and a url`,
		`{"name": "a", "command": "b", "type": "htp"}`:          `mcp.json:1: server a: unknown type "htp" (did you mean "http"?)`,
		`{"name": "a", "command": "b", "type": "http"}`:         `mcp.json:1: server a: type http does not fit the rest`,
		`{"name": "a", "command": 5}`:                           `mcp.json:1: server a: command must be a text`,
		`{"name": "a", "command": "b", "args": "c"}`:            `mcp.json:1: server a: args must be a list of texts`,
		`{"name": "a", "command": "b", "env": {"c": []}}`:       `mcp.json:1: server a: env must be an object of texts`,
		`{"name": "a", "args": ["x"]}`:                          `mcp.json:1: server a has args and no command`,
		`{"name": "a", "command": "b", "args": ["${input:c}"]}`: "mcp.json:1: server a needs ${input:c}, which coven cannot ask for: write ${NAME}, a variable of your environment",
		"\n{\"name\": \"good\", \"command\": \"c\"}":            `mcp.json:2: two servers are named good`,
		`5`: `mcp.json: a server is not an object: 5`,
	} {
		got, err := servers.Parse("mcp.json", []byte(`{"servers": [{"name": "good", "command": "x"}, `+entry+`]}`))
		if err != nil || len(got.Servers) != 1 || len(got.Problems) != 1 || got.Problems[0].IsNote || got.Problems[0].Error() != want {
			t.Errorf("%s:\n got %+v %v\nwant %s", entry, got, err, want)
		}
	}
	for entry, want := range map[string]string{
		"\n{\"name\": \"a\", \"comand\": \"b\", \"url\": \"c\"}": `mcp.json:2: server a: unknown key "comand" (did you mean "command"?)`,
		`{"name": "a", "command": "b", "headers": {"c": "d"}}`:   `mcp.json:1: server a: headers are for a url`,
		`{"name": "a", "url": "b", "env": {"c": "d"}}`:           `mcp.json:1: server a: env is for a command`,
	} {
		got, err := servers.Parse("mcp.json", []byte(`{"servers": [{"name": "good", "command": "x"}, `+entry+`]}`))
		if err != nil || len(got.Servers) != 2 || len(got.Problems) != 1 || !got.Problems[0].IsNote || got.Problems[0].Error() != want {
			t.Errorf("%s:\n got %+v %v\nwant %s", entry, got, err, want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := func(name string) string { return map[string]string{"A": "a b", "H": "example.com"}[name] }
	s, err := servers.Server{Name: "x", Line: `run "$A" ${B:-c} '$A'`, Argv: []string{"${A}", "$A"}, Env: map[string]string{"V": "${A}!"}}.Expand(env)
	if err != nil || strings.Join(s.Argv, "|") != "run|a b|c|$A|a b|$A" || s.Env["V"] != "a b!" || s.Line != "" {
		t.Errorf("%+v %v", s, err)
	}
	for _, c := range []struct {
		s    servers.Server
		want string
	}{
		{servers.Server{Name: "x", Line: "run $(touch y)"}, "server x: command: "},
		{servers.Server{Name: "x", Line: "run $MISSING"}, "server x: command: MISSING: unbound variable"},
		{servers.Server{Name: "x", URL: "${H}/mcp"}, `server x: "example.com/mcp" is no address of a web server`},
		{servers.Server{Name: "x", URL: "file:///etc/passwd"}, `is no address of a web server`},
		{servers.Server{Name: "x", Argv: []string{"${B}"}}, "server x needs the variable B, which is not set"},
		{servers.Server{Name: "x", Line: `""`}, "server x: its command is empty"},
	} {
		if _, err := c.s.Expand(env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.s, err, c.want)
		}
	}
}

// Any change of a server's definition changes its hash.
func TestSHA256(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []servers.Server{
		{Name: "a", Line: "x"},
		{Name: "b", Line: "x"},
		{Name: "a", Argv: []string{"x"}},
		{Name: "a", URL: "x"},
		{Name: "a", Line: "x", Env: map[string]string{"A": "b"}},
		{Name: "a", URL: "x", Headers: map[string]string{"A": "b"}},
		{Name: "a", URL: "x", Events: true},
	} {
		seen[s.SHA256()] = true
	}
	if len(seen) != 7 {
		t.Errorf("%d hashes", len(seen))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"servers": [{"name": "a", "command": "b ${C}", "args": ["d"]}]}`))
	f.Add([]byte(`{"mcpServers": {"a": {"command": "b"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := servers.Parse("f", data)
		if err != nil && all.Servers != nil {
			t.Error("both servers and an error")
		}
		for _, s := range all.Servers {
			if e, err := s.Expand(func(string) string { return "v" }); err == nil && len(e.Argv) == 0 && e.URL == "" {
				t.Errorf("%+v expands to nothing", s)
			}
		}
	})
}
