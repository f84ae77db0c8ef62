// Package servers reads the MCP servers that a repository and its user configure for agents. Package client
// connects to them.
package servers

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os/exec"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// File is the name of the file that lists servers, in .coven and in the user's configuration directory.
const File = "mcp.json"

// MaxFile limits the size of the file in bytes.
const MaxFile = 1 << 20

// maxServers limits the servers in a file.
const maxServers = 64

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

// FileError is an error in a file of servers.
type FileError struct {
	File string
	Line int // starts at 1; 0 if unknown
	Msg  string
}

// Error returns "file:line: msg".
func (e *FileError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// CommandExit returns exit.Usage.
func (e *FileError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that opens the file.
func (e *FileError) NextCommand() string { return shellword.Edit(e.File, e.Line) }

// entry is a server in either format of the file.
type entry struct {
	Name     *string           `json:"name"`
	Type     string            `json:"type" yaml:"type"` // stdio, http or sse; derived from the other keys if empty
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`
}

func entryKeys() []string {
	return []string{"name", "type", "command", "args", "env", "url", "headers", "disabled"}
}

// Parse reads a file of servers. It has one of two formats. The first is a list, where command is a shell line:
//
//	{"servers": [{"name": "playwright", "command": "npx @playwright/mcp"}]}
//
// The second is the format of other programs, where command is a program:
//
//	{"mcpServers": {"playwright": {"command": "npx", "args": ["@playwright/mcp"]}}}
//
// The servers are sorted by name. The error is a *FileError.
func Parse(file string, data []byte) ([]Server, error) {
	p := parser{file: file, data: data}
	var top map[string]json.RawMessage
	if err := p.decode(data, &top); err != nil {
		return nil, err
	}
	for key := range top {
		if key != "servers" && key != "mcpServers" {
			return nil, p.wrong(key, "unknown key %q%s", key, didyoumean.Aside(key, []string{"servers", "mcpServers"}))
		}
	}
	if top["servers"] != nil && top["mcpServers"] != nil {
		return nil, p.wrong("servers", "it has both servers and mcpServers: move all to one of them")
	}
	all, err := p.list(top["servers"])
	if top["mcpServers"] != nil {
		all, err = p.named(top["mcpServers"])
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, Compare)
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, p.wrong(all[i].Name, "two servers are named %s", all[i].Name)
		}
	}
	if len(all) > maxServers {
		return nil, p.wrong("", "it has %d servers, the maximum is %d", len(all), maxServers)
	}
	return all, nil
}

type parser struct {
	file string
	data []byte
}

// wrong returns an error at the first occurrence of a key or name in the file.
func (p parser) wrong(at, format string, args ...any) error {
	e := &FileError{File: p.file, Msg: fmt.Sprintf(format, args...)}
	if i := bytes.Index(p.data, []byte(`"`+at+`"`)); at != "" && i >= 0 {
		e.Line = 1 + bytes.Count(p.data[:i], []byte("\n"))
	}
	return e
}

// decode decodes a part of the file.
func (p parser) decode(part []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(part))
	err := decoder.Decode(to)
	if err == nil && len(part) == len(p.data) {
		if _, rest := decoder.Token(); rest != io.EOF {
			err = errors.New("something follows the object")
		}
	}
	if err == nil {
		return nil
	}
	e := &FileError{File: p.file, Msg: strings.TrimPrefix(err.Error(), "json: ")}
	offset := int64(0)
	if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
		offset = bad.Offset
	}
	if at := bytes.Index(p.data, part); at >= 0 {
		e.Line = 1 + bytes.Count(p.data[:min(at+int(offset), len(p.data))], []byte("\n"))
	}
	return e
}

func (p parser) list(part []byte) ([]Server, error) {
	var raw []json.RawMessage
	if part == nil {
		return nil, nil
	}
	if err := p.decode(part, &raw); err != nil {
		return nil, err
	}
	all := []Server{}
	for _, part := range raw {
		e, err := p.entry(part)
		if err != nil {
			return nil, err
		}
		if e.Name == nil {
			return nil, p.wrong("servers", "a server has no name")
		}
		s := Server{Name: *e.Name, Line: e.Command, Argv: e.Args}
		if all, err = p.add(all, s, e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p parser) named(part []byte) ([]Server, error) {
	var raw map[string]json.RawMessage
	if err := p.decode(part, &raw); err != nil {
		return nil, err
	}
	all := []Server{}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		e, err := p.entry(raw[name])
		if err != nil {
			return nil, err
		}
		if e.Name != nil {
			return nil, p.wrong(name, "server %s has a key name, too", name)
		}
		s := Server{Name: name}
		if e.Command != "" {
			s.Argv = append([]string{e.Command}, e.Args...)
		} else if e.Args != nil {
			return nil, p.wrong(name, "server %s has args and no command", name)
		}
		if all, err = p.add(all, s, e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (p parser) entry(part []byte) (entry, error) {
	var e entry
	var keys map[string]json.RawMessage
	if err := p.decode(part, &keys); err != nil {
		return e, err
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(entryKeys(), key) {
			return e, p.wrong(key, "unknown key %q%s", key, didyoumean.Aside(key, entryKeys()))
		}
	}
	return e, p.decode(part, &e)
}

var (
	names     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	variables = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)
)

// add appends a server to all unless it is disabled.
func (p parser) add(all []Server, s Server, e entry) ([]Server, error) {
	s.Env, s.URL, s.Headers, s.Events = e.Env, e.URL, e.Headers, e.Type == "sse"
	program := s.Line != "" || len(s.Argv) > 0
	switch {
	case !names.MatchString(s.Name):
		return nil, p.wrong(s.Name, "invalid name %q of a server: use letters, digits, - and _, at most 32", s.Name)
	case !slices.Contains([]string{"", "stdio", "http", "sse"}, e.Type):
		return nil, p.wrong(e.Type, "server %s: unknown type %q%s", s.Name, e.Type, didyoumean.Aside(e.Type, []string{"stdio", "http", "sse"}))
	case program && s.URL != "":
		return nil, p.wrong(s.Name, "server %s has both a command and a url", s.Name)
	case !program && s.URL == "":
		return nil, p.wrong(s.Name, "server %s has neither a command nor a url", s.Name)
	case e.Type == "stdio" && !program, (e.Type == "http" || e.Type == "sse") && program:
		return nil, p.wrong(s.Name, "server %s: type %s does not fit the rest", s.Name, e.Type)
	case s.URL != "" && len(s.Env) > 0, program && len(s.Headers) > 0:
		return nil, p.wrong(s.Name, "server %s: env is for a command, headers are for a url", s.Name)
	case e.Disabled:
		return all, nil
	}
	return append(all, s), nil
}

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
	texts := append(append([]string{s.URL}, s.Argv...), slices.Concat(slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers)))...)
	for _, text := range texts {
		for _, part := range variables.FindAllStringSubmatch(text, -1) {
			found[part[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
