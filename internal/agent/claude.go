package agent

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/coven-run/coven/internal/permission"
)

// ParseClaude reads an agent file of Claude Code. Many of them are not strict YAML: descriptions
// have unquoted colons, tools are a list or one line with commas. What it does not know it leaves
// out. It fails only if there is no name that coven can use, or no prompt.
func ParseClaude(path string, content []byte) (Definition, []Problem) {
	d := withDefaults()
	d.Path, d.Permissions = path, []permission.Rule{}
	base := filepath.Base(path)
	ps := &problems{path: path, agent: strings.TrimSuffix(base, filepath.Ext(base))}
	text := strings.ToValidUTF8(string(content), string(utf8.RuneError))
	front, body, ok := frontmatter(text)
	if !ok {
		front, body = "", text
	}
	values := looseFields(front)
	d.Name = claudeName(oneText(values["name"]), ps.agent)
	ps.agent = d.Name
	d.Description = shortened(oneText(values["description"]))
	if model := oneText(values["model"]); KnownModel(model) {
		d.Model = model
	}
	if d.Description == "" {
		d.Description = d.Name
	}
	tools := list(values["tools"])
	d.Tools, d.Permissions, d.MCP = claudeTools(tools)
	switch {
	case len(tools) == 0: // all that the agent has that starts it
		d.Permissions = []permission.Rule{}
	case len(d.Permissions) == 0: // none that coven knows
		d.Permissions = []permission.Rule{{Permission: permission.FileRead, Pattern: permission.Everything, Action: permission.Allow}}
	}
	d.Prompt = body
	if !nameRE.MatchString(d.Name) || slices.Contains(reservedNames(), d.Name) {
		ps.add(1, "name", "", "Agent '%s' has invalid name '%s' (use lowercase letters, digits and '-')", ps.agent, d.Name)
	}
	if strings.TrimSpace(body) == "" {
		ps.add(1, "systemPrompt", "", "Agent '%s' has no prompt", ps.agent)
	}
	return d, ps.all
}

// keyRE is a line that begins a field.
var keyRE = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*)|[ \t]*)$`)

// looseFields reads frontmatter as YAML, or, if it is none, line by line.
func looseFields(front string) map[string]any {
	fields := map[string]any{}
	if yaml.Unmarshal([]byte(front), &fields) == nil && fields != nil {
		return fields
	}
	fields = map[string]any{}
	key := ""
	for line := range strings.Lines(front) {
		line = strings.TrimRight(line, "\r\n")
		if m := keyRE.FindStringSubmatch(line); m != nil {
			key = m[1]
			fields[key] = unquote(strings.TrimSpace(m[2]))
			continue
		}
		continued := strings.TrimSpace(line)
		switch item, isItem := strings.CutPrefix(continued, "- "); {
		case key == "" || continued == "" || strings.HasPrefix(continued, "#"):
		case isItem:
			fields[key] = append(list(fields[key]), unquote(strings.TrimSpace(item)))
		default:
			fields[key] = strings.TrimSpace(strings.TrimLeft(oneText(fields[key]), "|>-+") + " " + continued)
		}
	}
	return fields
}

func unquote(text string) string {
	if len(text) >= 2 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0] {
		return text[1 : len(text)-1]
	}
	return text
}

func oneText(value any) string {
	text, _ := value.(string)
	return strings.Join(strings.Fields(text), " ")
}

// list returns the items of a list, or of one text with commas.
func list(value any) []string {
	var items []string
	switch v := value.(type) {
	case string:
		items = strings.Split(strings.Trim(v, "[] "), ",")
	case []string:
		items = v
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok {
				items = append(items, text)
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

func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxDescription {
		return string(runes[:maxDescription-1]) + "…"
	}
	return text
}

// claudeName makes a name of what the file says, or of the file's own name.
func claudeName(name, file string) string {
	if name == "" {
		name = file
	}
	name = strings.ToLower(strings.Join(strings.FieldsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	}), "-"))
	if len(name) > 64 {
		name = strings.Trim(name[:64], "-")
	}
	return name
}

// claudeTools returns the tools, permissions and MCP servers of tools as Claude Code names them:
// Read, Bash(git *), mcp__server__tool.
func claudeTools(names []string) (tools []string, rules []permission.Rule, servers []string) {
	known := map[string]struct {
		tools []string
		needs []permission.Name
	}{
		"Read":         {[]string{"read"}, []permission.Name{permission.FileRead}},
		"NotebookRead": {[]string{"read"}, []permission.Name{permission.FileRead}},
		"Glob":         {[]string{"glob"}, []permission.Name{permission.CodeSearch}},
		"Grep":         {[]string{"grep"}, []permission.Name{permission.CodeSearch}},
		"LS":           {[]string{"ls"}, []permission.Name{permission.FileRead}},
		"Write":        {[]string{"write"}, []permission.Name{permission.FileWrite}},
		"Edit":         {[]string{"edit"}, []permission.Name{permission.FileWrite}},
		"MultiEdit":    {[]string{"edit"}, []permission.Name{permission.FileWrite}},
		"NotebookEdit": {[]string{"edit"}, []permission.Name{permission.FileWrite}},
		"Bash":         {[]string{"bash"}, []permission.Name{permission.BashExecute}},
		"WebFetch":     {[]string{"fetch"}, []permission.Name{permission.NetFetch}},
		"WebSearch":    {nil, []permission.Name{permission.NetFetch}},
		"TodoWrite":    {[]string{"todo"}, nil},
		"Task":         {nil, []permission.Name{permission.AgentSpawn}},
		"Agent":        {nil, []permission.Name{permission.AgentSpawn}},
	}
	grant := func(name permission.Name, pattern string) {
		rule := permission.Rule{Permission: name, Pattern: pattern, Action: permission.Allow}
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	for _, text := range names {
		name, pattern := text, permission.Everything
		if open := strings.IndexByte(text, '('); open > 0 && strings.HasSuffix(text, ")") {
			name = text[:open]
			pattern = strings.ReplaceAll(text[open+1:len(text)-1], ":*", " *")
		}
		if server, ok := strings.CutPrefix(name, "mcp__"); ok {
			server, tool, _ := strings.Cut(server, "__")
			if tool == "" {
				tool = "*"
			}
			servers = append(servers, server)
			grant(permission.MCPCall, server+"/"+tool)
			continue
		}
		k := known[name]
		tools = append(tools, k.tools...)
		for _, need := range k.needs {
			grant(need, pattern)
		}
	}
	return unique(tools), rules, unique(servers)
}
