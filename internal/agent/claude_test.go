package agent

import (
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// Claude Code agent files in several formats.
func TestParseClaude(t *testing.T) {
	for content, want := range map[string]string{
		"---\nname: a\ndescription: x\ntools: Read, Write, Bash\n---\nx":                                           "a|x||read write bash|allow file.read /**; allow file.write /**; allow bash.execute /**|",
		"---\nname: a\ndescription: Use it: when, \"so\"\ntools:\n  - Read\n  - Glob\nmodel: opus\n---\nx":         "a|Use it: when, \"so\"|opus|read glob|allow file.read /**; allow code.search /**|",
		"---\nname: My Agent\ndescription: >\n  long\n  text\n---\nx":                                              "my-agent|long text||||",
		"---\ndescription: x\ntools: [Read, mcp__gh__search, mcp__db]\n---\nx":                                     "file|x||read|allow file.read /**; allow mcp.call gh/search; allow mcp.call db/*|gh db",
		"---\nname: a\ndescription: |\n  Examples: a\n  <example>user: \"b: c\"</example>\nmodel: inherit\n---\nx": "a|Examples: a <example>user: \"b: c\"</example>||||",
		"---\nname: a\ndescription: b: c\n  and: d\n# a comment\ncolor: red\ntools: ''\n---\nx":                    "a|b: c and: d||||",
		"---\nname: a\ntools: TodoWrite, Skill\n---\nx":                                                            "a|a||todo|allow file.read /**|",
		"---\nname: a\ntools:\n---\nx":                                                                             "a|a||||",
		"just text":                                                                                                "file|file||||",
		"---\nname: a\n---\nx":                                                                                     "a|a||||",
		"\ufeff---\r\nname: a\r\n---\r\nx":                                                                         "a|a||||",
		"---\nname: a\ntools: Bash(git add:*), Bash(npm run test)\n---\nx":                                         "a|a||bash|allow bash.execute git add *; allow bash.execute npm run test|",
		"---\nname: a\ntools: WebFetch, Task, Unknown\n---\nx":                                                     "a|a||fetch|allow net.fetch /**; allow agent.spawn /**|",
	} {
		d, problems := ParseClaude(".claude/agents/file.md", []byte(content))
		var rules []string
		for _, r := range d.Permissions {
			rules = append(rules, r.String())
		}
		got := strings.Join([]string{d.Name, d.Description, d.Model, strings.Join(d.Tools, " "), strings.Join(rules, "; "), strings.Join(d.MCP, " ")}, "|")
		if got != want || !usable(problems) {
			t.Errorf("%q:\n got %s %v\nwant %s", content, got, problems, want)
		}
	}
	for content, want := range map[string]string{"---\nname: ???\n---\nx": "", "---\nname: a\n---\n": "has no prompt"} {
		if d, problems := ParseClaude("file.md", []byte(content)); want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Message, want)) {
			t.Errorf("%q: %+v %v", content, d, problems)
		}
	}
}

// claudeFiles is the number of agent files in testdata/claude.txtar, and claudeShapes the number of formats.
const (
	claudeFiles  = 318
	claudeShapes = 53
)

// meaning is the expected definition of a file in testdata/claude.txtar.
type meaning struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Model       string   `json:"model"`
	Tools       []string `json:"tools"`
	Rules       []string `json:"rules"`
	MCP         []string `json:"mcp"`
	Skills      []string `json:"skills"`
	Turns       int      `json:"turns"`
	Prompt      string   `json:"prompt"`
}

// Each of over 300 agent files has the expected definition.
func TestClaudeFiles(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/claude.txtar")
	if err != nil {
		t.Fatal(err)
	}
	count, shapes := 0, map[string]bool{}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		file, beside := archive.Files[i], archive.Files[i+1]
		if beside.Name != strings.TrimSuffix(file.Name, ".md")+".json" {
			t.Fatalf("beside %s is %s", file.Name, beside.Name)
		}
		want := meaning{Turns: 50}
		if err := json.Unmarshal(beside.Data, &want); err != nil {
			t.Fatalf("%s: %v", beside.Name, err)
		}
		d, problems := ParseClaude(".claude/agents/"+file.Name, file.Data)
		got := meaning{d.Name, d.Description, d.Model, d.Tools, nil, d.MCP, d.Skills, d.MaxTurns, d.Prompt}
		for _, r := range d.Permissions {
			got.Rules = append(got.Rules, r.String())
		}
		if !reflect.DeepEqual(got, want) || !usable(problems) {
			t.Errorf("%s:\n%q\n got %+v %v\nwant %+v", file.Name, file.Data, got, problems, want)
		}
		count++
		shapes[path.Dir(file.Name)] = true
	}
	if count != claudeFiles || len(shapes) != claudeShapes {
		t.Errorf("%d files in %d shapes", count, len(shapes))
	}
}
