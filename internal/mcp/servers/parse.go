package servers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

// MaxFile limits the size of a file in bytes.
const MaxFile = 1 << 20

// maxServers limits the servers in a file.
const maxServers = 64

// Config is the content of a file.
type Config struct {
	Servers  []Server // sorted by name
	Disabled []string // names of servers that the file leaves out
	Problems []Problem
}

// Problem says why a server of a file cannot be used or, if it is a note, which key is not used.
type Problem struct {
	*FileError
	Server string // empty if the key belongs to no server
	IsNote bool
}

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

// Parse reads a file of servers. It knows the formats of several programs. The first is coven's own, a list, in
// which a command is a shell line; in the others it is a program.
//
//	{"servers": [{"name": "playwright", "command": "npx @playwright/mcp"}]}
//	{"mcpServers": {"playwright": {"command": "npx", "args": ["@playwright/mcp"]}}}
//	{"servers": {"playwright": {"command": "npx", "args": ["@playwright/mcp"]}}}
//	{"playwright": {"command": "npx", "args": ["@playwright/mcp"]}}
//
// Comments and trailing commas are allowed. A server that cannot be used is a problem, and so is a key that coven does not know. The error is a *FileError, of
// a file that has none of the formats.
func Parse(file string, data []byte) (Config, error) {
	p := parser{file: file, data: []byte(plainJSON(strings.TrimPrefix(string(data), "\ufeff")))}
	var top map[string]json.RawMessage
	if err := p.decode(p.data, &top); err != nil {
		return Config{}, err
	}
	entries, err := p.entries(top)
	if err != nil {
		return Config{}, err
	}
	if len(entries) > maxServers {
		return Config{}, p.wrong(p.data, "", "it has %d servers, the maximum is %d", len(entries), maxServers)
	}
	seen := map[string]bool{}
	for i := range entries {
		e := &entries[i]
		s, err := p.server(e)
		switch {
		case err != nil:
			p.found.Problems = append(p.found.Problems, Problem{FileError: err, Server: e.Name})
		case seen[s.Name]:
			p.found.Problems = append(p.found.Problems, Problem{FileError: p.wrong(e.part, s.Name, "two servers are named %s", s.Name), Server: s.Name})
		case e.Disabled:
			p.found.Disabled = append(p.found.Disabled, s.Name)
		default:
			p.found.Servers = append(p.found.Servers, s)
		}
		if err == nil {
			seen[s.Name] = true
		}
	}
	slices.SortFunc(p.found.Servers, Compare)
	return p.found, nil
}

type parser struct {
	file  string
	data  []byte
	found Config
}

// wrong returns an error at the first occurrence of a key or name in a part of the file.
func (p *parser) wrong(part []byte, at, format string, args ...any) *FileError {
	e := &FileError{File: p.file, Msg: fmt.Sprintf(format, args...)}
	begin := max(bytes.Index(p.data, part), 0)
	i := bytes.Index(p.data[begin:], []byte(`"`+at+`"`))
	if i < 0 { // the name of a server is before it
		begin, i = 0, bytes.Index(p.data, []byte(`"`+at+`"`))
	}
	if at != "" && i >= 0 {
		e.Line = 1 + bytes.Count(p.data[:begin+i], []byte("\n"))
	}
	return e
}

// note adds a key that is not used.
func (p *parser) note(part []byte, server, key, format string, args ...any) {
	p.found.Problems = append(p.found.Problems, Problem{FileError: p.wrong(part, key, format, args...), Server: server, IsNote: true})
}

// decode decodes a part of the file.
func (p *parser) decode(part []byte, to any) error {
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

// entry is a server of a file.
type entry struct {
	Name     string
	isLine   bool // the command is a shell line
	part     json.RawMessage
	Type     string // stdio, http or sse; derived from the other keys if empty
	Command  argv
	Args     []text
	Env      map[string]text
	URL      string
	Headers  map[string]text
	Disabled bool
}

// entries returns the servers of a file, whatever its format.
func (p *parser) entries(top map[string]json.RawMessage) ([]entry, error) {
	wrappers := []string{"mcpServers", "servers"}
	wrapped := slices.DeleteFunc(slices.Clone(wrappers), func(key string) bool { return top[key] == nil })
	if len(wrapped) == 0 {
		return p.bare(top, wrappers)
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(wrappers, key) && key != "$schema" {
			p.note(p.data, "", key, "unknown key %q%s", key, didyoumean.Aside(key, wrappers))
		}
	}
	var all []entry
	for _, key := range wrapped {
		if key == "servers" && bytes.HasPrefix(bytes.TrimSpace(top[key]), []byte("[")) {
			var list []json.RawMessage
			if err := p.decode(top[key], &list); err != nil {
				return nil, err
			}
			for _, part := range list {
				all = append(all, entry{part: part, isLine: true})
			}
			continue
		}
		var named map[string]json.RawMessage
		if err := p.decode(top[key], &named); err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, entry{Name: name, part: named[name]})
		}
	}
	return all, nil
}

// bare returns the servers of a file that has them at the top.
func (p *parser) bare(top map[string]json.RawMessage, wrappers []string) ([]entry, error) {
	var all []entry
	var others []string
	for _, name := range slices.Sorted(maps.Keys(top)) {
		var keys map[string]json.RawMessage
		if json.Unmarshal(top[name], &keys) == nil && slices.ContainsFunc(slices.Collect(maps.Keys(keys)), func(key string) bool {
			return slices.Contains([]string{"command", "url", "type", "disabled"}, canonical(key))
		}) {
			all = append(all, entry{Name: name, part: top[name]})
		} else if name != "$schema" {
			others = append(others, name)
		}
	}
	for _, key := range others {
		if len(all) == 0 {
			return nil, p.wrong(p.data, key, "unknown key %q%s", key, didyoumean.Aside(key, wrappers))
		}
		p.note(p.data, "", key, "unknown key %q%s", key, didyoumean.Aside(key, wrappers))
	}
	return all, nil
}

// canonical returns the name of a key that other programs name differently.
func canonical(key string) string {
	switch key {
	case "transport", "transportType":
		return "type"
	case "serverUrl", "httpUrl":
		return "url"
	case "environment":
		return "env"
	}
	return key
}

// keys returns the targets of the keys of a server, with the description of their values.
func (e *entry) keys() map[string]struct {
	into any
	want string
} {
	type key = struct {
		into any
		want string
	}
	return map[string]key{
		"type": {&e.Type, "a text"}, "command": {&e.Command, "a text"}, "args": {&e.Args, "a list of texts"},
		"env": {&e.Env, "an object of texts"}, "url": {&e.URL, "a text"}, "headers": {&e.Headers, "an object of texts"},
		"disabled": {&e.Disabled, "true or false"},
	}
}

// read reads the keys of a server.
func (p *parser) read(e *entry) *FileError {
	var given map[string]json.RawMessage
	if json.Unmarshal(e.part, &given) != nil {
		return p.wrong(e.part, e.Name, "a server is not an object: %.20s", e.part)
	}
	known := e.keys()
	names := slices.Sorted(maps.Keys(known))
	if name := given["name"]; e.isLine {
		delete(given, "name")
		if json.Unmarshal(name, &e.Name) != nil || e.Name == "" {
			return p.wrong(p.data, "servers", "a server has no name")
		}
		names = append(names, "name")
	}
	if enabled, ok := given["enabled"]; ok {
		delete(given, "enabled")
		e.Disabled = string(enabled) == "false"
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		key, ok := known[canonical(name)]
		if !ok {
			p.note(e.part, e.Name, name, "server %s: unknown key %q%s", e.Name, name, didyoumean.Aside(name, names))
			continue
		}
		if json.Unmarshal(given[name], key.into) != nil {
			return p.wrong(e.part, name, "server %s: %s must be %s", e.Name, name, key.want)
		}
	}
	return nil
}

// text is a text, or a number or a boolean that means one.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(t))
	}
	if data[0] == '{' || data[0] == '[' || string(data) == "null" {
		return errors.New("it is not a text")
	}
	*t = text(data)
	return nil
}

// argv is a program, or a list of a program and its arguments.
type argv []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *argv) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(a))
	}
	*a = make(argv, 1)
	return json.Unmarshal(data, &(*a)[0])
}

var (
	names = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	// others matches the characters that a name must not have, each run of which becomes an underscore, as for
	// Claude Code.
	others   = lazyregexp.New(`[^A-Za-z0-9_-]+`)
	envForm  = lazyregexp.New(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	askedFor = lazyregexp.New(`\$\{(input|command|config):[^}]*\}`)
)

// server returns the server of an entry.
func (p *parser) server(e *entry) (Server, *FileError) {
	if err := p.read(e); err != nil {
		return Server{}, err
	}
	s := Server{Name: e.Name}
	if !e.isLine {
		s.Name = strings.TrimLeft(others.ReplaceAllString(s.Name, "_"), "_-")
		s.Name = strings.TrimRight(s.Name[:min(len(s.Name), 32)], "_")
	}
	if !names.MatchString(s.Name) {
		return s, p.wrong(e.part, e.Name, "invalid name %q of a server: use letters, digits, - and _, at most 32", e.Name)
	}
	if e.Disabled {
		return s, nil
	}
	if reason := e.invalid(); reason != "" {
		return s, p.wrong(e.part, e.Name, "server %s%s", s.Name, reason)
	}
	if e.isProgram() && len(e.Headers) > 0 {
		p.note(e.part, s.Name, "headers", "server %s: headers are for a url", s.Name)
	}
	if !e.isProgram() && len(e.Env) > 0 {
		p.note(e.part, s.Name, "env", "server %s: env is for a command", s.Name)
	}
	s.fill(e)
	for _, value := range append(s.texts(), s.Line) {
		if asked := askedFor.FindString(value); asked != "" {
			return s, p.wrong(e.part, e.Name, "server %s needs %s, which coven cannot ask for: write ${NAME}, a variable of your environment", s.Name, asked)
		}
	}
	return s, nil
}

func (e *entry) isProgram() bool { return len(e.Command) > 0 && e.Command[0] != "" }

// invalid returns why a server with these keys cannot be used, or "".
func (e *entry) invalid() string {
	program := e.isProgram()
	kind, ok := kinds()[strings.ToLower(e.Type)]
	switch {
	case !ok:
		return fmt.Sprintf(": unknown type %q%s", e.Type, didyoumean.Aside(e.Type, []string{"stdio", "http", "sse"}))
	case program && e.URL != "":
		return " has both a command and a url"
	case !program && e.Args != nil:
		return " has args and no command"
	case !program && e.URL == "":
		return " has neither a command nor a url"
	case kind == "stdio" && !program, (kind == "http" || kind == "sse") && program:
		return fmt.Sprintf(": type %s does not fit the rest", e.Type)
	}
	return ""
}

// kinds maps the names of transports to those of coven.
func kinds() map[string]string {
	return map[string]string{
		"": "", "stdio": "stdio", "local": "stdio", "sse": "sse", "http": "http", "remote": "http",
		"streamable-http": "http", "streamable_http": "http", "streamablehttp": "http", "http-stream": "http",
	}
}

// fill sets the server's command or address.
func (s *Server) fill(e *entry) {
	if !e.isProgram() {
		s.URL, s.Events, s.Headers = withVariables(e.URL), strings.EqualFold(e.Type, "sse"), texts(e.Headers)
		return
	}
	s.Env = texts(e.Env)
	if e.isLine && len(e.Command) == 1 {
		s.Line = e.Command[0]
	} else {
		s.Argv = e.Command
	}
	for _, arg := range e.Args {
		s.Argv = append(s.Argv, withVariables(string(arg)))
	}
}

// withVariables returns a text in which variables of the environment are written as coven does.
func withVariables(value string) string { return envForm.ReplaceAllString(value, "$${$1}") }

func texts(from map[string]text) map[string]string {
	if from == nil {
		return nil
	}
	all := map[string]string{}
	for name, value := range from {
		all[name] = withVariables(string(value))
	}
	return all
}
