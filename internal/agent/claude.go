package agent

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/dashed"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
)

// ParseClaude reads an agent file of Claude Code. Many of these files are not strict YAML: descriptions
// have unquoted colons, and tools are a list or one comma-separated line. It ignores unknown fields.
// It fails only if the file has no valid name or no prompt.
func ParseClaude(path string, content []byte) (Definition, []Problem) {
	d := withDefaults()
	d.Path = path
	base := filepath.Base(path)
	ps := &problems{path: path, agent: strings.TrimSuffix(base, filepath.Ext(base))}
	front, body, ok := claudeFrontmatter(content)
	if !ok && isClaudeFile(content) {
		ps.add(1, "", "", "Agent '%s' has frontmatter without an end: a line --- must follow its fields", ps.agent)
		return d, ps.all
	}
	if !ok {
		body = claudeText(content)
	}
	values := looseFields(front)
	at := func(field string) (int, bool) { return lineOf(string(content), field), values[field] != nil }
	given := cmp.Or(oneText(values["name"]), ps.agent)
	d.Name = cmp.Or(dashed.Name(given, maxName), dashed.Name(ps.agent, maxName))
	d.Description = cmp.Or(oneline.Clip(oneText(values["description"]), maxDescription), d.Name)
	if reason := invalidName(cmp.Or(d.Name, given)); reason != "" {
		line, _ := at("name")
		ps.add(line, "name", "", "Agent '%s' has invalid name '%s' (%s)", clipped(ps.agent), clipped(given), reason)
	}
	ps.agent = cmp.Or(d.Name, ps.agent)
	model := oneText(values["model"])
	if d.Model, ok = claudeModel(model); !ok {
		line, _ := at("model")
		ps.warn(line, "model", "Agent '%s' has model '%s', which is no name of a model: it has the default model", ps.agent, clipped(model))
	}
	d.Skills = skillNames(list(values["skills"]))
	if turns, ok := values["maxTurns"].(int); ok && turns >= 1 && turns <= maxTurns {
		d.MaxTurns, d.LimitsTurns = turns, true
	}
	d.Tools, d.Permissions, d.MCP = claudeRights(values)
	d.Prompt = body
	ps.ignored(&d, at)
	ps.passedOn(&d, at)
	if strings.TrimSpace(body) == "" {
		ps.add(1, "systemPrompt", "", "Agent '%s' has no prompt", ps.agent)
	}
	return d, ps.all
}

// lineOf returns the line of a field, starting at 1.
func lineOf(text, field string) int {
	line := 0
	for content := range strings.Lines(text) {
		line++
		if strings.HasPrefix(content, field) && strings.HasPrefix(strings.TrimLeft(content[len(field):], " \t"), ":") {
			return line
		}
	}
	return 1
}

// claudeFrontmatter splits an agent file.
func claudeFrontmatter(content []byte) (front, body string, ok bool) {
	return frontmatter(claudeText(content))
}

func claudeText(content []byte) string {
	return strings.TrimLeft(strings.ToValidUTF8(string(content), string(utf8.RuneError)), "\ufeff \t\r\n")
}

// beginsFrontmatter matches the beginning of an agent file: three dashes, and a field. Claude Code ignores other
// files, such as a README.
var beginsFrontmatter = lazyregexp.New(`^---[ \t]*\r?\n\s*(#.*\n\s*)*[A-Za-z][A-Za-z0-9_-]*[ \t]*:`)

// isClaudeFile reports whether a file in .claude/agents is an agent.
func isClaudeFile(content []byte) bool {
	_, _, ok := claudeFrontmatter(content)
	return ok || beginsFrontmatter.MatchString(claudeText(content))
}

// isClaude reports whether all fields of frontmatter are those of Claude Code's agents.
func isClaude(front string) bool {
	fields := looseFields(front)
	for key := range fields {
		if !slices.Contains([]string{
			"name", "description", "tools", "disallowedTools", "model", "permissionMode", "maxTurns", "skills", "mcpServers",
			"hooks", "memory", "background", "effort", "isolation", "color", "initialPrompt",
		}, key) {
			return false
		}
	}
	return len(fields) > 0
}

// claudeModel returns the model of an agent, or "" for the default one. ok is false if the text is no name of a
// model.
func claudeModel(name string) (model string, ok bool) {
	if short := strings.ToLower(name); slices.Contains(Models(), short) {
		return short, true
	}
	if slices.Contains([]string{"", "inherit", "default"}, name) {
		return "", true
	}
	if KnownModel(name) {
		return name, true
	}
	return "", false
}

// claudeRights returns an agent's rights. An agent without tools inherits the rights of the agent that
// starts it, unless the file denies some tools.
func claudeRights(values map[string]any) (tools []string, rules []permission.Rule, servers []string) {
	names, given := list(values["tools"]), isGiven(values["tools"])
	if slices.Contains(names, "*") || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, "all") }) {
		names, given = nil, false
	}
	denied := list(values["disallowedTools"])
	if oneText(values["permissionMode"]) == "plan" { // a planning agent changes nothing
		denied = append(denied, "Write", "Edit", "MultiEdit", "NotebookEdit")
	}
	if !given && len(denied) == 0 {
		return nil, []permission.Rule{}, nil
	}
	if !given {
		names = []string{"Read", "Glob", "Grep", "Write", "Edit", "Bash"}
	}
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(denied, n) })
	tools, rules, servers = claudeTools(names, permission.Allow)
	if len(rules) == 0 { // coven knows none of the tools
		rules = []permission.Rule{{Permission: permission.FileRead, Pattern: permission.Everything, Action: permission.Allow}}
	}
	partly := slices.DeleteFunc(denied, func(n string) bool { return !strings.Contains(n, "(") && !strings.HasPrefix(n, "mcp__") })
	_, denials, _ := claudeTools(partly, permission.Deny)
	return tools, append(rules, denials...), servers
}

// isGiven reports whether a field has a value. An empty list is a value, but an empty text is not.
func isGiven(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return strings.Trim(v, " \t") != ""
	}
	return true
}

// keyRE matches the first line of a field.
var keyRE = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$`)

// looseFields reads frontmatter as YAML or, if it is not valid YAML, line by line.
func looseFields(front string) map[string]any {
	fields := map[string]any{}
	if yaml.Unmarshal([]byte(front), &fields) == nil && fields != nil {
		return fields
	}
	fields = map[string]any{}
	key := ""
	for line := range strings.Lines(front) {
		line = strings.TrimRight(line, " \t\r\n")
		if m := keyRE.FindStringSubmatch(line); m != nil && beginsField(m[1], oneText(fields[key])) {
			key = m[1]
			fields[key] = looseValue(key, strings.TrimSpace(m[2]))
			continue
		}
		continued := strings.TrimSpace(line)
		switch item, isItem := strings.CutPrefix(continued, "- "); {
		case key == "" || continued == "" || strings.HasPrefix(continued, "#"):
		case isItem && key != "description":
			fields[key] = append(list(fields[key]), unquote(strings.TrimSpace(item)))
		default:
			fields[key] = strings.TrimSpace(strings.TrimLeft(oneText(fields[key]), "|>-+") + " " + continued)
		}
	}
	return fields
}

// beginsField reports whether a line such as "model: opus" begins a field, given the preceding field's
// text so far. Lines in an example begin with the speaker, which looks like a field.
func beginsField(key, before string) bool {
	inExample := strings.LastIndex(before, "<example>") > strings.LastIndex(before, "</example>")
	return !inExample || slices.Contains([]string{"tools", "disallowedTools", "model", "color", "name", "skills"}, key)
}

// looseValue returns the value of a one-line field. Only a description may contain a #.
func looseValue(key, text string) string {
	if whole := unquote(text); whole != text || key == "description" {
		return whole
	}
	text, _, _ = strings.Cut(text, " #")
	return unquote(strings.TrimSpace(text))
}

func unquote(text string) string {
	if len(text) >= 2 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

func oneText(value any) string {
	text, _ := value.(string)
	return oneline.Of(text)
}

// list returns the items of a list, the words of a text, or the keys of a map whose value is true.
func list(value any) []string {
	var items []string
	switch v := value.(type) {
	case string:
		items = words(strings.Trim(v, "[] "))
	case []string:
		items = v
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok {
				items = append(items, text)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name] == true {
				items = append(items, name)
			}
		}
	}
	var all []string
	for _, item := range items {
		if item = unquote(strings.TrimSpace(item)); item != "" {
			all = append(all, item)
		}
	}
	return all
}

// words splits a text at commas and spaces outside parentheses.
func words(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(c rune) bool {
		switch c {
		case '(':
			depth++
		case ')':
			depth = max(depth-1, 0)
		}
		return depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\n')
	})
}

// claudeTool is the equivalent of a Claude Code tool.
type claudeTool struct {
	tool  string
	needs permission.Name
}

// knownTool looks up a tool by its name, ignoring case.
func knownTool(name string) claudeTool {
	return map[string]claudeTool{
		"read":         {"read", permission.FileRead},
		"notebookread": {"read", permission.FileRead},
		"glob":         {"glob", permission.CodeSearch},
		"grep":         {"grep", permission.CodeSearch},
		"ls":           {"ls", permission.FileRead},
		"write":        {"write", permission.FileWrite},
		"edit":         {"edit", permission.FileWrite},
		"multiedit":    {"edit", permission.FileWrite},
		"notebookedit": {"edit", permission.FileWrite},
		"bash":         {"bash", permission.BashExecute},
		"webfetch":     {"fetch", permission.NetFetch},
		"websearch":    {"", permission.NetFetch},
		"todowrite":    {"todo", ""},
		"task":         {"", permission.AgentSpawn},
		"agent":        {"", permission.AgentSpawn},
	}[strings.ToLower(name)]
}

// claudeTools converts Claude Code tools such as Read, Bash(git *) or mcp__server__tool to tools, rules
// and MCP servers.
func claudeTools(names []string, action permission.Action) (tools []string, rules []permission.Rule, servers []string) {
	rule := func(name permission.Name, pattern string) {
		r := permission.Rule{Permission: name, Pattern: pattern, Action: action}
		if name != "" && !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	for _, text := range names {
		name, patterns := text, []string{permission.Everything}
		if open := strings.IndexByte(text, '('); open > 0 && strings.HasSuffix(text, ")") {
			name = text[:open]
			patterns = strings.Split(strings.ReplaceAll(text[open+1:len(text)-1], ":*", " *"), ",")
		}
		if server, ok := strings.CutPrefix(name, "mcp__"); ok {
			server, tool, _ := strings.Cut(server, "__")
			servers = append(servers, server)
			rule(permission.MCPCall, server+"/"+cmp.Or(tool, "*"))
			continue
		}
		known := knownTool(name)
		if known.tool != "" {
			tools = append(tools, known.tool)
		}
		for _, pattern := range patterns {
			if pattern = claudePattern(known.needs, strings.TrimSpace(pattern)); pattern != "" {
				rule(known.needs, pattern)
			}
		}
	}
	return unique(tools), rules, unique(servers)
}

// claudePattern converts the pattern of a tool to that of a rule: paths begin at the top of the
// worktree, and hosts have no prefix domain:.
func claudePattern(name permission.Name, pattern string) string {
	switch name {
	case permission.FileRead, permission.FileWrite, permission.CodeSearch:
		if rest, ok := strings.CutPrefix(pattern, "./"); ok {
			return "/" + rest
		}
	case permission.NetFetch:
		return strings.TrimPrefix(pattern, "domain:")
	}
	return pattern
}
