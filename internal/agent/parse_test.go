package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/permission"
)

const head = "name: foo\ndescription: What foo does\npermissions: [FilesystemRead]\n"

// Each field is validated, and problems have the right line.
func TestParseProblems(t *testing.T) {
	for front, want := range map[string]string{
		head + "enabled: maybe\n":                           `5: Agent 'foo' has invalid enabled: it must be true or false, not "maybe"`,
		"name: Foo\ndescription: x\npermissions: []\n":      `2: Agent 'Foo' has invalid name 'Foo' (use lowercase letters, digits and '-')`,
		"name: user\ndescription: x\npermissions: []\n":     `2: Agent 'user' has invalid name 'user' (it is reserved)`,
		head + "id: bar\n":                                  `5: Agent 'foo' has both name 'foo' and id 'bar'`,
		"name: foo\npermissions: []\n":                      `1: Agent 'foo' is missing required field 'description'`,
		"name: foo\ndescription: x\n":                       `1: Agent 'foo' is missing required field 'permissions'`,
		"description: x\npermissions: []\n":                 `1: Agent 'file' is missing required field 'name'`,
		head + "model: sonet\n":                             `5: Agent 'foo' has invalid model 'sonet' (did you mean 'sonnet'?)`,
		head + "role: specialst\n":                          `5: Agent 'foo' has invalid role 'specialst' (did you mean 'specialist'?)`,
		head + "mode: subagnet\n":                           `5: Agent 'foo' has invalid mode 'subagnet' (did you mean 'subagent'?)`,
		head + "temperature: 3\n":                           `5: Agent 'foo' has invalid temperature (it must be between 0 and 2)`,
		head + "maxTokens: 0\n":                             `5: Agent 'foo' has invalid maxTokens (at least 1)`,
		head + "max_turns: 501\n":                           `5: Agent 'foo' has invalid max_turns (it must be between 1 and 500)`,
		head + "enable_reflection: true\nmax_retries: -1\n": `6: Agent 'foo' has invalid max_retries (it must be between 0 and 10)`,
		head + "enable_reflection: true\nmax_retries: 11\n": `6: Agent 'foo' has invalid max_retries (it must be between 0 and 10)`,
		head + "timeout: 20\n":                              `5: Agent 'foo' has invalid timeout: "20" is not a duration (a unit is missing: 20s or 20m?)`,
		head + "approval_timeout: 0\n":                      `5: Agent 'foo' has invalid approval_timeout (it must be between 1 and 86400)`,
		head + "approval_on_timeout: aprove\n":              `5: Agent 'foo' has invalid approval_on_timeout 'aprove' (did you mean 'approve'?)`,
		head + "requires_approval: [WriteFilesystem]\n":     `5: Agent 'foo' has invalid permission 'WriteFilesystem' (did you mean 'FilesystemWrite'?)`,
		head + "role: orchestrator\ntools: [read]\n":        `6: Agent 'foo' is an orchestrator and cannot have tools`,
		head + "systemPrompt: x\n":                          `5: Agent 'foo' has both a body and systemPrompt`,
		"name: foo\ndescription: x\npermissions:\n  - permission: file.write\n    pattern: /src/[\n    action: allow\n": `5: Agent 'foo' has a permission with an invalid pattern "/src/["`,
		"name: foo\ndescription: x\npermissions:\n  - {permission: file.rite, action: allow}\n":                         `5: Agent 'foo' has invalid permission 'file.rite' (did you mean 'file.write'?)`,
		"name: [\n": `: Agent 'file' is not valid YAML`,
		"- a\n":     `2: Agent 'file' has no fields`,

		"name: foo\ndescription: " + strings.Repeat("x", 501) + "\npermissions: []\n": `3: Agent 'foo' has a description of more than 500 characters`,
	} {
		_, problems := Parse("a/file.md", []byte("---\n"+front+"---\nA prompt.\n"))
		texts := []string{}
		for _, p := range problems {
			if p.Path != "a/file.md" {
				t.Errorf("%+v", p)
			}
			texts = append(texts, strings.TrimPrefix(p.String(), "a/file.md:"))
		}
		got := strings.ReplaceAll(strings.Join(texts, "\n"), " error: ", " ")
		if !strings.Contains(got, want) {
			t.Errorf("%q:\n got %s\nwant %s", front, got, want)
		}
	}
	for content, want := range map[string]string{
		"no frontmatter": "has no frontmatter", "---\nname: x\n": "has no frontmatter", "---\n" + head + "---\n \n": "has no prompt", "---\nname: \xff\n---\nx": "is not valid UTF-8",
	} {
		if _, problems := Parse("file.md", []byte(content)); len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Message, want) {
			t.Errorf("%q: %v", content, problems)
		}
	}
}

func TestParseWarnings(t *testing.T) {
	for front, want := range map[string]string{
		"max_retries: 2":                       "Agent 'foo' has max_retries without enable_reflection",
		"reflection_criteria: Be right.":       "Agent 'foo' has reflection_criteria without enable_reflection",
		"enable_reflection: true":              "Agent 'foo' has enable_reflection, which applies to it as a subagent only, not as the agent of a step",
		"temperature: 0.5":                     "Agent 'foo' has temperature, ignored by provider 'claude'",
		"maxTokens: 100":                       "Agent 'foo' has maxTokens, ignored by provider 'claude'",
		"tools: [read, gh_x, Grep, browse]":    "Agent 'foo' names tools that this version does not have: gh_x, browse",
		"requires_approval: [FilesystemWrite]": "Agent 'foo' requires approval of FilesystemWrite, which it is not granted",
	} {
		_, problems := Parse("file.md", []byte("---\n"+head+front+"\n---\nA prompt.\n"))
		if len(problems) != 1 || !problems[0].Warning || problems[0].Message != want || problems[0].Line != 5 {
			t.Errorf("%s: %v", front, problems)
		}
	}
}

// Settings that the Claude Code CLI does not support are warnings, never errors, even in its own agent files.
func TestClaudeWarnings(t *testing.T) {
	const file = "---\nname: a\ndescription: x\ntools: Read, WebFetch, mcp__gh__search\ntemperature: 0.2\nskills: pdf\nmaxTurns: 7\n---\nx"
	d, problems := ParseClaude(".claude/agents/a.md", []byte(file))
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		".claude/agents/a.md:5: warning: Agent 'a' has temperature, ignored by provider 'claude'",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if d.MaxTurns != 7 || !d.LimitsTurns {
		t.Errorf("max_turns: %d, %v", d.MaxTurns, d.LimitsTurns)
	}
}

// The same agent as YAML and as Markdown, with all fields.
func TestParse(t *testing.T) {
	const fields = `name: foo
description: What foo does
model: claude-sonnet-4-20250514  # a comment
permissions:
  - FilesystemRead
  - bash.execute
  - {permission: file.write, pattern: "/src/**", action: allow}
  - permission: file.write
    pattern: "*.lock"
    action: deny
provider: other
mode: subagent
role: advisor
domain: analysis
capabilities: [a, b, a]
tools: [read, fs_*]
tool_prefixes: [deploy_]
always_include: true
keywords: [x]
accepts: text
returns: more text
cannot: [fly]
skills: [s]
mcp: [m]
temperature: 0.5
maxTokens: 1000
max_turns: 7
timeout: 90s
enable_reflection: true
max_retries: 2
reflection_criteria: |
  Be right.
requires_approval: [FilesystemWrite]
approval_timeout: 10
approval_on_timeout: approve
metadata: {team: {name: x}}
`
	md, problems := Parse("foo.md", []byte("---\n"+fields+"---\n\nA prompt with {{x}}.\n---\nMore.\n"))
	if !usable(problems) {
		t.Fatal(problems)
	}
	if md.Prompt != "A prompt with {{x}}.\n---\nMore.\n" || md.MaxTurns != 7 || md.Timeout.String() != "1m30s" || *md.Temperature != 0.5 || strings.Join(md.Capabilities, " ") != "a b" || !md.AlwaysInclude {
		t.Errorf("%+v", md)
	}
	want := []permission.Rule{
		{Permission: permission.FileRead, Pattern: "/**", Action: permission.Allow},
		{Permission: permission.BashExecute, Pattern: "/**", Action: permission.Allow},
		{Permission: permission.FileWrite, Pattern: "/src/**", Action: permission.Allow},
		{Permission: permission.FileWrite, Pattern: "*.lock", Action: permission.Deny},
	}
	if !slices.Equal(md.Permissions, want) {
		t.Errorf("%+v", md.Permissions)
	}
	if !slices.Equal(md.RequiresApproval, []permission.Name{permission.FileWrite}) || md.Metadata["team"] == nil {
		t.Errorf("%+v", md)
	}
	asYAML, problems := Parse("foo.yaml", []byte(fields+"systemPrompt: |\n  A prompt with {{x}}.\n  ---\n  More.\n"))
	if !usable(problems) || asYAML.Prompt != md.Prompt || asYAML.Model != md.Model || !slices.Equal(asYAML.Permissions, want) {
		t.Errorf("%+v %v", asYAML, problems)
	}
	byID, problems := Parse("x.yml", []byte("id: foo\ndescription: x\npermissions: []\nsystemPrompt: x\n"))
	if len(problems) > 0 || byID.Name != "foo" || !byID.Enabled || byID.Role != "specialist" || byID.MaxTurns != 50 || byID.ApprovalTimeout != 300 {
		t.Errorf("%+v %v", byID, problems)
	}
}

// Parse terminates for any file, and a usable definition has all required fields.
func FuzzParse(f *testing.F) {
	f.Add([]byte("---\n" + head + "---\nx"))
	f.Add([]byte("---\nname: a: b\ntools: Read, Bash(git:*), mcp__x__y\n---\nx"))
	f.Add([]byte("---\npermissions: &a [*a]\n---\n"))
	f.Add([]byte("---\n? [a]\n: b\n---\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, parse := range []func(string, []byte) (Definition, []Problem){Parse, ParseClaude} {
			d, problems := parse("dir/file.md", content)
			if usable(problems) && (!nameRE.MatchString(d.Name) || d.Description == "" || strings.TrimSpace(d.Prompt) == "" || d.Permissions == nil) {
				t.Errorf("this is usable: %+v", d)
			}
			for _, p := range problems {
				if p.Message == "" || p.Path == "" {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}
