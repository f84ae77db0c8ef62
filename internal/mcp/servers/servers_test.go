package servers_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/mcp/servers"
)

// T-23: Both formats of the file.
func TestParse(t *testing.T) {
	list := `{ "servers": [{ "name": "playwright", "command": "npx @playwright/mcp", "args": ["--headless"] }, {"name": "docs", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}] }`
	got, err := servers.Parse("mcp.json", []byte(list))
	want := []servers.Server{
		{Name: "docs", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}},
		{Name: "playwright", Line: "npx @playwright/mcp", Argv: []string{"--headless"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	common := `{"mcpServers": {
		"files": {"type": "stdio", "command": "/opt/my files/serve", "args": ["${ROOT:-/tmp}"], "env": {"A": "${B}"}},
		"old": {"type": "sse", "url": "http://localhost:1/sse"},
		"off": {"command": "x", "disabled": true}}}`
	got, err = servers.Parse("mcp.json", []byte(common))
	want = []servers.Server{
		{Name: "files", Argv: []string{"/opt/my files/serve", "${ROOT:-/tmp}"}, Env: map[string]string{"A": "${B}"}},
		{Name: "old", URL: "http://localhost:1/sse", Events: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
	if v := got[0].Variables(); !reflect.DeepEqual(v, []string{"B", "ROOT"}) {
		t.Errorf("variables: %v", v)
	}
	if got, err := servers.Parse("mcp.json", []byte(`{}`)); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"servers\": [\n{\"name\": \"a\", \"comand\": \"b\"}]}": `mcp.json:3: unknown key "comand" (did you mean "command"?)`,
		"{\n\"server\": []}":                                                                             `mcp.json:2: unknown key "server" (did you mean "servers"?)`,
		`{"servers": [], "mcpServers": {}}`:                                                              `mcp.json:1: it has both servers and mcpServers: move all to one of them`,
		`{"servers": [{"command": "b"}]}`:                                                                `mcp.json:1: a server has no name`,
		`{"servers": [{"name": "a/b", "command": "b"}]}`:                                                 `mcp.json:1: invalid name "a/b" of a server: use letters, digits, - and _, at most 32`,
		`{"servers": [{"name": "a"}]}`:                                                                   `mcp.json:1: server a has neither a command nor a url`,
		`{"servers": [{"name": "a", "command": "b", "url": "c"}]}`:                                       `mcp.json:1: server a has both a command and a url`,
		`{"servers": [{"name": "a", "command": "b", "type": "htp"}]}`:                                    `mcp.json:1: server a: unknown type "htp" (did you mean "http"?)`,
		`{"servers": [{"name": "a", "command": "b", "type": "http"}]}`:                                   `mcp.json:1: server a: type http does not fit the rest`,
		"{\"servers\": [{\"name\": \"a\", \"command\": \"b\"},\n{\"name\": \"a\", \"command\": \"c\"}]}": `mcp.json:1: two servers are named a`,
		`{"servers": [{"name": "a", "command": 5}]}`:                                                     `mcp.json:1: cannot unmarshal number into Go struct field entry.command of type string`,
		"{\n\n\"servers\": [}":                                                                           `mcp.json:3: invalid character '}' looking for beginning of value`,
		`{} {}`:                                                                                          `mcp.json:1: something follows the object`,
		``:                                                                                               `mcp.json:1: EOF`,
		`{"mcpServers": {"a": {"args": ["x"]}}}`:                                                         `mcp.json:1: server a has args and no command`,
	} {
		_, err := servers.Parse("mcp.json", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
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
		if err != nil && all != nil {
			t.Error("both servers and an error")
		}
		for _, s := range all {
			if e, err := s.Expand(func(string) string { return "v" }); err == nil && len(e.Argv) == 0 && e.URL == "" {
				t.Errorf("%+v expands to nothing", s)
			}
		}
	})
}
