// Package servers reads the MCP servers that a repository and its user configure for agents. Package client
// connects to them.
package servers

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// File is the name of the file that lists servers, in .coven and in the user's configuration directory.
const File = "mcp.json"

// PublicFile is the name of the file at the top of a repository in which other programs, such as Claude Code, find
// their servers.
const PublicFile = ".mcp.json"

// Server is an MCP server: a program or an address. Before Expand, its strings may contain ${NAME} or
// ${NAME:-default} for variables of the user's environment.
type Server struct {
	Name    string            `json:"name" yaml:"name"`
	Line    string            `json:"command,omitempty" yaml:"command,omitempty"` // a program and its arguments, in shell syntax
	Argv    []string          `json:"argv,omitempty" yaml:"argv,omitempty"`       // a program and its arguments, or additional arguments for Line
	Env     map[string]string `json:"env,omitempty" yaml:"env,omitempty"`         // of the program
	URL     string            `json:"url,omitempty" yaml:"url,omitempty"`         // address of a server with streamable HTTP
	Events  bool              `json:"sse,omitempty" yaml:"sse,omitempty"`         // the server uses the older HTTP with server-sent events
	Headers map[string]string `json:"headers,omitempty" yaml:"headers,omitempty"` // of the requests
}

// SHA256 returns the hash of the server's definition, in hex. Trust is bound to this hash.
func (s Server) SHA256() string {
	text, err := json.Marshal(s)
	if err != nil { // it has only texts
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// With sets the directory of a server's command, and its variables after those of env. cmd may be nil.
func (s Server) With(cmd *exec.Cmd, dir string, env []string) *exec.Cmd {
	if cmd == nil {
		return nil
	}
	cmd.Dir, cmd.Env = dir, slices.Clone(env)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		cmd.Env = append(cmd.Env, name+"="+s.Env[name])
	}
	return cmd
}

// What describes the server in one line: its command or its address.
func (s Server) What() string {
	if s.URL != "" {
		return s.URL
	}
	return strings.TrimSpace(s.Line + " " + strings.Join(s.Argv, " "))
}

// Compare compares servers by name.
func Compare(a, b Server) int { return cmp.Compare(a.Name, b.Name) }

// variables matches a variable of the user's environment.
var variables = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expand replaces the variables in the server's strings. It moves Line to Argv.
func (s Server) Expand(getenv func(string) string) (Server, error) {
	var missing string
	fill := func(text string) string {
		return variables.ReplaceAllStringFunc(text, func(found string) string {
			part := variables.FindStringSubmatch(found)
			value := getenv(part[1])
			if value == "" && part[2] == "" {
				missing = part[1]
			}
			return cmp.Or(value, part[3])
		})
	}
	argv, err := words(s.Line, getenv)
	if err != nil {
		return s, fmt.Errorf("server %s: command: %w", s.Name, err)
	}
	for _, arg := range s.Argv {
		argv = append(argv, fill(arg))
	}
	s.Line, s.Argv, s.URL = "", argv, fill(s.URL)
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, texts := range []map[string]string{s.Env, s.Headers} {
		for name, text := range texts {
			texts[name] = fill(text)
		}
	}
	if missing != "" {
		return s, fmt.Errorf("server %s needs the variable %s, which is not set", s.Name, missing)
	}
	return s, s.reachable()
}

// reachable checks that an expanded server has a command or an HTTP address.
func (s Server) reachable() error {
	if s.URL == "" {
		if len(s.Argv) == 0 || s.Argv[0] == "" {
			return fmt.Errorf("server %s: its command is empty", s.Name)
		}
		return nil
	}
	if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("server %s: %q is no address of a web server", s.Name, s.URL)
	}
	return nil
}

// words splits a line like a shell, without running anything.
func words(line string, getenv func(string) string) ([]string, error) {
	all, err := shellword.Words(line)
	if err != nil {
		return nil, err
	}
	return expand.Fields(&expand.Config{Env: expand.FuncEnviron(getenv), NoUnset: true}, all...)
}

// Variables returns the sorted names of the variables that the server needs from the user's environment.
func (s Server) Variables() []string {
	found := map[string]bool{}
	parsed, _ := shellword.Words(s.Line) // Expand will report the error
	for _, w := range parsed {
		syntax.Walk(w, func(n syntax.Node) bool {
			if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
				found[p.Param.Value] = true
			}
			return true
		})
	}
	for _, text := range s.texts() {
		for _, part := range variables.FindAllStringSubmatch(text, -1) {
			found[part[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// texts returns the strings that can have variables.
func (s Server) texts() []string {
	return append(append([]string{s.URL}, s.Argv...), slices.Concat(slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))...)
}
