package agent

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/agent/skill"
	"github.com/coven-run/coven/internal/config/yamldoc"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/text/didyoumean"
	"github.com/coven-run/coven/internal/tool"
)

// Parse reads a definition from Markdown with frontmatter if path ends with .md, or else from YAML. The
// definition is usable if all problems are warnings.
func Parse(path string, content []byte) (Definition, []Problem) {
	d := withDefaults()
	d.Path = path
	base := filepath.Base(path)
	ps := &problems{path: path, agent: strings.TrimSuffix(base, filepath.Ext(base))}
	if !utf8.Valid(content) {
		ps.add(1, "", "", "Agent '%s' is not valid UTF-8", ps.agent)
		return d, ps.all
	}
	front, body, isMarkdown := string(content), "", filepath.Ext(path) == ".md"
	if isMarkdown {
		var ok bool
		if front, body, ok = frontmatter(string(content)); !ok {
			ps.add(1, "", "", "Agent '%s' has no frontmatter: the file must begin with a line ---, and a second one must end the frontmatter", ps.agent)
			return d, ps.all
		}
	}
	offset := 0
	if isMarkdown {
		offset = 1
	}
	r := &reader{problems: ps, offset: offset, into: &d, markdown: isMarkdown}
	r.read(front)
	if isMarkdown {
		d.Prompt = body
	}
	d.Skills = skillNames(d.Skills)
	r.fillIn()
	r.check()
	if isMarkdown && !usable(ps.all) && isClaude(front) {
		ps.all[0].Message += "; coven reads agents of Claude Code from .claude/agents"
	}
	return d, ps.sorted()
}

// frontmatter splits a Markdown file. The body begins after the closing line of the
// frontmatter.
func frontmatter(text string) (front, body string, ok bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, found := strings.Cut(text, "\n")
	if !found || strings.TrimRight(first, " \t\r") != "---" {
		return "", "", false
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			body = strings.TrimPrefix(strings.TrimPrefix(rest[at+len(line):], "\r"), "\n")
			return rest[:at], body, true
		}
		at += len(line)
	}
	return "", "", false
}

// reader fills a definition from YAML.
type reader struct {
	*problems
	into     *Definition
	offset   int // number of lines before the YAML
	markdown bool
	doc      *yamldoc.Document
	errors   int            // number of errors of doc that are already reported
	lines    map[string]int // by key
}

// fields maps each key to the variable or function that receives its value.
func (r *reader) fields() map[string]any {
	d := r.into
	return map[string]any{
		"name": &d.Name, "id": new(string), "description": &d.Description, "model": &d.Model, "permissions": r.permissions,
		"enabled": &d.Enabled, "provider": &d.Provider, "mode": &d.Mode, "role": &d.Role, "domain": &d.Domain,
		"capabilities": &d.Capabilities, "tools": &d.Tools, "tool_prefixes": &d.ToolPrefixes, "always_include": &d.AlwaysInclude,
		"keywords": &d.Keywords, "accepts": &d.Accepts, "returns": &d.Returns, "cannot": &d.Cannot, "skills": &d.Skills, "mcp": &d.MCP,
		"temperature": r.temperature, "maxTokens": &d.MaxTokens, "max_turns": &d.MaxTurns, "timeout": &d.Timeout,
		"enable_reflection": &d.EnableReflection, "max_retries": &d.MaxRetries, "reflection_criteria": &d.ReflectionCriteria,
		"requires_approval": r.approvals, "approval_timeout": &d.ApprovalTimeout, "approval_on_timeout": &d.ApprovalOnTimeout,
		"metadata": r.metadata, "systemPrompt": &d.Prompt,
	}
}

// Fields returns all keys of a definition, sorted.
func Fields() []string {
	return slices.Sorted(maps.Keys((&reader{into: &Definition{}}).fields()))
}

func (r *reader) read(front string) {
	doc, err := yamldoc.Parse(r.path, []byte(front))
	if err != nil {
		r.syntax(err)
		return
	}
	r.doc = doc
	root := doc.Root()
	if !root.IsMap() {
		r.add(1+r.offset, "", "", "Agent '%s' has no fields", r.agent)
		return
	}
	values := doc.Keys(root)
	r.lines = map[string]int{}
	for key, value := range values {
		line, _ := doc.Where(value)
		r.lines[key] = line + r.offset
	}
	r.named(values)
	fields := r.fields()
	for key, value := range values {
		target, known := fields[key]
		if !known {
			near, _ := didyoumean.Nearest(key, Fields())
			r.add(r.lines[key], key, near, "Agent '%s' has unknown field '%s'", r.agent, key)
			continue
		}
		if fill, ok := target.(func(yamldoc.Node)); ok {
			fill(value)
		} else {
			doc.DecodeNode(value, target)
		}
		r.drain(key)
	}
}

// fillIn completes a definition that has an id but no name. Such a definition describes the agent only
// by its domain and role.
func (r *reader) fillIn() {
	_, byID := r.lines["id"]
	if _, named := r.lines["name"]; named || !byID {
		return
	}
	d := r.into
	purpose := d.Name
	if d.Domain != "" {
		purpose = fmt.Sprintf("%s (%s)", d.Name, d.Domain)
	}
	given := func(field string) bool { _, ok := r.lines[field]; return ok }
	if !given("description") {
		d.Description, r.lines["description"] = purpose, r.lines["id"]
	}
	if !given("permissions") {
		d.Permissions, r.lines["permissions"] = permission.Granting("", permission.Baseline()...).Rules, r.lines["id"]
	}
	if d.Prompt == "" && !given("systemPrompt") {
		d.Prompt = fmt.Sprintf("You are the agent %s. Your role is %s", d.Name, d.Role)
		if d.Domain != "" {
			d.Prompt += " and your domain is " + d.Domain
		}
		d.Prompt += ".\n"
	}
}

// syntax reports the errors of invalid YAML.
func (r *reader) syntax(err error) {
	if all, ok := err.(yamldoc.Errors); ok { //nolint:errorlint // Parse guarantees the type
		for _, e := range all {
			r.add(e.Line+r.offset, "", "", "Agent '%s' is not valid YAML: %s", r.agent, e.Msg)
		}
		return
	}
	r.add(1, "", "", "Agent '%s' cannot be read: %v", r.agent, err)
}

// named determines the name first, because all messages contain it.
func (r *reader) named(values map[string]yamldoc.Node) {
	name, id := "", ""
	r.doc.DecodeNode(values["name"], &name)
	r.doc.DecodeNode(values["id"], &id)
	r.errors = countErrors(r.doc) // these errors will occur again
	switch {
	case name != "" && id != "" && name != id:
		r.agent = name
		r.add(r.lines["id"], "id", "", "Agent '%s' has both name '%s' and id '%s'", name, name, id)
	case name == "":
		name = id
	}
	if name != "" {
		r.agent = name
	}
	r.into.Name = name
}

func countErrors(doc *yamldoc.Document) int {
	all, _ := doc.Err().(yamldoc.Errors) //nolint:errorlint // Err guarantees the type
	return len(all)
}

// drain reports the document's new errors about a value as a problem.
func (r *reader) drain(key string) {
	all, _ := r.doc.Err().(yamldoc.Errors) //nolint:errorlint // Err guarantees the type
	if len(all) <= r.errors {
		return
	}
	line := r.lines[key]
	for _, e := range all {
		if e.Line+r.offset >= line { // errors are sorted by line
			text := e.Msg
			if rest, ok := strings.CutPrefix(text, "this "); ok {
				text = "it " + rest
			}
			if e.Hint != "" {
				text += " (" + e.Hint + ")"
			}
			r.add(e.Line+r.offset, key, "", "Agent '%s' has invalid %s: %s", r.agent, key, text)
			break
		}
	}
	r.errors = len(all)
}

// permissions reads a list of permission words and rules.
func (r *reader) permissions(n yamldoc.Node) {
	rules := []permission.Rule{}
	for _, item := range r.doc.Items(n) {
		line, _ := r.doc.Where(item)
		if item.IsMap() {
			if rule, ok := r.rule(item, line+r.offset); ok {
				rules = append(rules, rule)
			}
			continue
		}
		for _, name := range r.word(item, "permissions") {
			rules = append(rules, permission.Rule{Permission: name, Pattern: permission.Everything, Action: permission.Allow})
		}
	}
	r.into.Permissions = rules
}

// word reads the name of a permission or of a bundle of permissions.
func (r *reader) word(item yamldoc.Node, field string) []permission.Name {
	word := ""
	r.doc.DecodeNode(item, &word)
	if word == "" {
		return nil
	}
	names, known := permission.Expand(word)
	if !known {
		line, _ := r.doc.Where(item)
		r.unknown(line+r.offset, field, word, permission.Words())
		return nil
	}
	return names
}

func (r *reader) rule(item yamldoc.Node, line int) (permission.Rule, bool) {
	var raw struct {
		Permission string `yaml:"permission"`
		Pattern    string `yaml:"pattern"`
		Action     string `yaml:"action"`
	}
	before := countErrors(r.doc)
	r.doc.DecodeNode(item, &raw)
	if countErrors(r.doc) > before {
		return permission.Rule{}, false
	}
	rule := permission.Rule{Pattern: cmp.Or(raw.Pattern, permission.Everything), Action: permission.Action(raw.Action)}
	names, known := permission.Expand(raw.Permission)
	if !known {
		r.unknown(line, "permissions", raw.Permission, permission.Words())
		return rule, false
	}
	rule.Permission = names[0]
	if !slices.Contains(permission.Actions(), rule.Action) {
		near, _ := didyoumean.Nearest(raw.Action, []string{"allow", "deny", "ask"})
		r.add(line, "permissions", near, "Agent '%s' has a permission with invalid action '%s'", r.agent, raw.Action)
		return rule, false
	}
	if err := permission.CheckPattern(rule.Permission, rule.Pattern); err != nil {
		r.add(line, "permissions", "", "Agent '%s' has a permission with an %v", r.agent, err)
		return rule, false
	}
	return rule, true
}

func (r *reader) approvals(n yamldoc.Node) {
	for _, item := range r.doc.Items(n) {
		r.into.RequiresApproval = append(r.into.RequiresApproval, r.word(item, "requires_approval")...)
	}
}

func (r *reader) temperature(n yamldoc.Node) {
	value := 0.0
	r.doc.DecodeNode(n, &value)
	r.into.Temperature = &value
}

func (r *reader) metadata(n yamldoc.Node) {
	r.into.Metadata = map[string]any{}
	r.doc.Any(n, &r.into.Metadata)
}

// check validates the whole definition.
func (r *reader) check() {
	d := r.into
	if !usable(r.all) && r.doc == nil {
		return // the file could not be read
	}
	r.required()
	if reason := invalidName(d.Name); d.Name != "" && reason != "" {
		r.add(r.lines["name"], "name", "", "Agent '%s' has invalid name '%s' (%s)", clipped(r.agent), clipped(d.Name), reason)
	}
	if len([]rune(d.Description)) > maxDescription {
		r.add(r.lines["description"], "description", "", "Agent '%s' has a description of more than %d characters", r.agent, maxDescription)
	}
	if d.Model != "" && !KnownModel(d.Model) {
		r.unknown(r.lines["model"], "model", d.Model, Models())
	}
	r.oneOf("mode", d.Mode, "", ModePrimary, ModeSubagent)
	r.oneOf("role", d.Role, roles()...)
	r.oneOf("approval_on_timeout", d.ApprovalOnTimeout, "abort", TimeoutApproves)
	r.numbers()
	r.together()
}

func (r *reader) required() {
	d := r.into
	missing := func(field string, absent bool) {
		if _, given := r.lines[field]; absent || !given {
			r.add(1, field, "", "Agent '%s' is missing required field '%s'", r.agent, field)
		}
	}
	if _, byID := r.lines["id"]; !byID {
		missing("name", d.Name == "")
	}
	missing("description", strings.TrimSpace(d.Description) == "")
	missing("permissions", false)
	_, inFront := r.lines["systemPrompt"]
	switch {
	case r.markdown && inFront:
		r.add(r.lines["systemPrompt"], "systemPrompt", "", "Agent '%s' has both a body and systemPrompt", r.agent)
	case strings.TrimSpace(d.Prompt) == "":
		r.add(1, "systemPrompt", "", "Agent '%s' has no prompt", r.agent)
	}
}

func (r *reader) oneOf(field, value string, known ...string) {
	if !slices.Contains(known, value) {
		r.unknown(r.lines[field], field, value, known)
	}
}

func (r *reader) numbers() {
	d := r.into
	between := func(field string, value, least, most float64) {
		if _, given := r.lines[field]; given && (value < least || value > most) {
			r.add(r.lines[field], field, "", "Agent '%s' has invalid %s (it must be between %g and %g)", r.agent, field, least, most)
		}
	}
	if d.Temperature != nil {
		between("temperature", *d.Temperature, 0, maxHeat)
	}
	if line, given := r.lines["maxTokens"]; given && d.MaxTokens < 1 {
		r.add(line, "maxTokens", "", "Agent '%s' has invalid maxTokens (at least 1)", r.agent)
	}
	between("max_turns", float64(d.MaxTurns), 1, maxTurns)
	between("max_retries", float64(d.MaxRetries), 0, maxRetries)
	between("approval_timeout", float64(d.ApprovalTimeout), 1, maxWait)
	if d.Timeout < time.Second {
		r.add(r.lines["timeout"], "timeout", "", "Agent '%s' has invalid timeout (at least 1s)", r.agent)
	}
}

// together validates fields that depend on each other.
func (r *reader) together() {
	d := r.into
	d.Capabilities = unique(d.Capabilities)
	if d.Role == "orchestrator" && len(d.Tools) > 0 {
		r.add(r.lines["tools"], "tools", "", "Agent '%s' is an orchestrator and cannot have tools", r.agent)
	}
	if _, given := r.lines["max_retries"]; given && !d.EnableReflection {
		r.warn(r.lines["max_retries"], "max_retries", "Agent '%s' has max_retries without enable_reflection", r.agent)
	}
	if _, given := r.lines["reflection_criteria"]; given && !d.EnableReflection {
		r.warn(r.lines["reflection_criteria"], "reflection_criteria", "Agent '%s' has reflection_criteria without enable_reflection", r.agent)
	}
	if d.EnableReflection && d.Mode != ModeSubagent {
		r.warn(r.lines["enable_reflection"], "enable_reflection", "Agent '%s' has enable_reflection, which applies to it as a subagent only, not as the agent of a step", r.agent)
	}
	granted := d.Grants()
	for _, name := range d.RequiresApproval {
		if len(d.Permissions) > 0 && !slices.Contains(granted, name) {
			r.warn(r.lines["requires_approval"], "requires_approval", "Agent '%s' requires approval of %s, which it is not granted", r.agent, name.Word())
		}
	}
	for _, rule := range d.Permissions {
		if rule.Permission == permission.FileRead && rule.Action == permission.Deny && rule.Pattern == permission.Everything {
			r.warn(r.lines["permissions"], "permissions", "Agent '%s' may read no file: it cannot do its work", r.agent)
		}
	}
	_, d.LimitsTurns = r.lines["max_turns"]
	at := func(field string) (int, bool) { line, given := r.lines[field]; return line, given }
	r.ignored(d, at)
	r.passedOn(d, at)
}

// passedOn warns about a model that coven does not know.
func (ps *problems) passedOn(d *Definition, at func(field string) (int, bool)) {
	if KnownModel(d.Model) && !slices.Contains(Models(), d.Model) && !specificRE.MatchString(d.Model) {
		line, _ := at("model")
		ps.warn(line, "model", "Agent '%s' has model '%s', which coven does not know and passes on", ps.agent, d.Model)
	}
}

// ignored warns about fields that this version does not apply. at returns the line of a field, if the file
// has it.
func (ps *problems) ignored(d *Definition, at func(field string) (int, bool)) {
	if d.Provider == "" || d.Provider == "claude" {
		for _, field := range []string{"temperature", "maxTokens"} {
			if line, given := at(field); given {
				ps.warn(line, field, "Agent '%s' has %s, ignored by provider 'claude'", ps.agent, field)
			}
		}
	}
	line, _ := at("tools")
	if _, unknown := tool.IDs(d.Tools); len(unknown) > 0 {
		ps.warn(max(line, 1), "tools", "%s", unknownTools(ps.agent, unknown))
	}
}

func unknownTools(agent string, names []string) string {
	return fmt.Sprintf("Agent '%s' names tools that this version does not have: %s", agent, strings.Join(names, ", "))
}

// skillNames returns the names of skills in the form that package skill gives them.
func skillNames(given []string) []string {
	for i, name := range given {
		given[i] = cmp.Or(skill.Name(name), name)
	}
	return given
}

func unique(items []string) []string {
	var all []string
	for _, item := range items {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}
