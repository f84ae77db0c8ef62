package fakeclaude_test

import (
	"fmt"
	"os"
	"slices"
)

const notebook = `{"cells":[{"cell_type":"code","id":"c1","source":["x=1"],"metadata":{},"outputs":[],"execution_count":null}],` +
	`"metadata":{"language_info":{"name":"python"}},"nbformat":4,"nbformat_minor":5}`

// contractCases returns all cases. Those of tools and the gate are here, the others in
// lifecases_test.go, messagecases_test.go and limitcases_test.go.
func contractCases() []contractCase {
	return slices.Concat(toolCases(), lifeCases(), messageCases(), limitCases())
}

func toolCases() []contractCase {
	files := map[string]string{"a.txt": "hello\nworld\n", "b.txt": "bee\n", ".env": "SECRET=1\n", "n.ipynb": notebook}
	return []contractCase{
		{name: "all tools allowed", files: files, scenario: `
conversations:
- turns:
  - {text: first, tools: [{name: Bash, input: {command: "echo one > out.txt"}}]}
  - tools: [{name: Read, input: {file_path: "${CWD}/a.txt"}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/a.txt", old_string: hello, new_string: HELLO}}]
  - tools: [{name: Write, input: {file_path: "${CWD}/new/n.txt", content: "x\n"}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/n.ipynb"}}]
  - tools: [{name: NotebookEdit, input: {notebook_path: "${CWD}/n.ipynb", cell_id: c1, new_source: y=2}}]
  - tools: [{name: Glob, input: {pattern: "*.txt"}}]
  - tools: [{name: Grep, input: {pattern: bee}}]
  - tools: [{name: mcp__coven__spawn_agent, input: {agent: helper}}]
  - {text: bye, usage: {input: 1000, output: 200}}
`},
		{name: "all tools denied", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: "touch DENY"}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/DENY.txt"}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/a.txt"}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/a.txt", old_string: hello, new_string: DENY}}]
  - tools: [{name: Write, input: {file_path: "${CWD}/n.txt", content: DENY}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/n.ipynb"}}]
  - tools: [{name: NotebookEdit, input: {notebook_path: "${CWD}/n.ipynb", cell_id: c1, new_source: DENY y=2}}]
  - tools: [{name: Glob, input: {pattern: "DENY*"}}]
  - tools: [{name: Grep, input: {pattern: DENY}}]
  - tools: [{name: mcp__coven__spawn_agent, input: {agent: DENY}}]
  - text: bye
`},
		{name: "harmless calls are asked", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: ls}}]
  - tools: [{name: Bash, input: {command: git status}}]
  - tools: [{name: Bash, input: {command: cat .env}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/.env"}}]
  - text: bye
`},
		{name: "calls that are refused unasked", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Read, input: {path: x}}]
  - tools: [{name: Bash, input: {cmd: x}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/b.txt", old_string: bee, new_string: B}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/absent.txt", old_string: bee, new_string: B}}]
  - tools: [{name: Write, input: {file_path: "${CWD}/b.txt", content: B}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/a.txt"}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/a.txt", old_string: absent, new_string: B}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/a.txt", old_string: o, new_string: B}}]
  - tools: [{name: Edit, input: {file_path: "${CWD}/a.txt", old_string: o, new_string: o}}]
  - tools: [{name: NotebookEdit, input: {notebook_path: "${CWD}/n.ipynb", cell_id: c1, new_source: y=2}}]
  - tools: [{name: Nonsense, input: {x: 1}}]
  - tools: [{name: DeferredToolPlaceholder, input: {}}]
  - tools: [{name: DeferredToolPlaceholder, input: {name: Bash, input: {command: "touch ran"}}}]
  - tools: [{name: WebFetch, input: {url: "http://127.0.0.1:1/", prompt: x}}]
  - tools: [{name: mcp__coven__approve, input: {tool_name: x, input: {}}}]
  - text: bye
`},
		{name: "calls that fail are asked", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Read, input: {file_path: "${CWD}/absent.txt"}}]
  - tools: [{name: Read, input: {file_path: "${CWD}"}}]
  - tools: [{name: Bash, input: {command: "echo out; exit 3"}}]
  - text: bye
`},
		{name: "paths are asked absolute", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Read, input: {file_path: a.txt}}]
  - tools: [{name: Read, input: {file_path: "~/absent.txt"}}]
  - tools: [{name: Read, input: {file_path: "${CWD}/../work/./b.txt"}}]
  - tools: [{name: Write, input: {file_path: dir/new.txt, content: new}}]
  - text: bye
`},
		{name: "answers that are not allow", files: files, scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: touch BARE}}]
  - tools: [{name: Bash, input: {command: touch ASK}}]
  - tools: [{name: Bash, input: {command: touch GARBAGE}}]
  - tools: [{name: Bash, input: {command: touch REWRITE}}]
  - text: bye
`},
		{name: "denial that interrupts", files: files, scenario: `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: touch INTERRUPT}}]}
  - text: bye
`},
		{name: "several calls in a turn", files: files, scenario: `
conversations:
- turns:
  - text: pre
    tools:
    - {name: Write, input: {file_path: "${CWD}/f", content: "1"}}
    - {name: Bash, input: {command: "cat f; mv f g"}}
    - {name: Read, input: {file_path: "${CWD}/g"}}
    - {name: Read, input: {file_path: "${CWD}/a.txt"}}
    - {name: Bash, input: {command: "touch DENY"}}
    - {name: Write, input: {file_path: "${CWD}/h", content: "2"}}
  - text: bye
`},
		{name: "server dead at the start", files: files, dead: true, scenario: `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: touch ran}}]}
  - text: bye
`},
		{name: "server dead and not needed", dead: true, scenario: `
conversations:
- turns: [{text: bye}]
`},
		{name: "server that serves late", late: true, drive: serveLate, scenario: `
conversations:
- turns: [{text: bye}]
`},
		{name: "server dies when asked", scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: touch one}}]
  - tools: [{name: Bash, input: {command: touch DIE}}]
  - tools: [{name: Bash, input: {command: touch three}}]
  - text: bye
`, drive: func(w *world, p *process) []string {
			p.send("hello")
			p.wait()
			return []string{fmt.Sprintf("servers: %d", w.servers())}
		}},
		{name: "server killed between calls", scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: touch one}}]
  - {hold: killing, tools: [{name: Bash, input: {command: touch two}}]}
  - text: bye
`, drive: func(w *world, p *process) []string {
			p.send("hello")
			p.held("killing")
			w.killServer()
			w.api.Release("killing")
			p.wait()
			return []string{fmt.Sprintf("servers: %d", w.servers())}
		}},
	}
}

// serveLate lets the permission server serve when the CLI has been waiting for it,
// and reports the number of model requests until then.
func serveLate(w *world, p *process) []string {
	p.send("hello")
	eventually(w.t, func() bool {
		_, err := os.Stat(w.log + ".begun")
		return err == nil
	})
	early := len(w.turns())
	check(w.t, os.WriteFile(w.log+".go", nil, 0o600))
	p.results(1)
	return []string{fmt.Sprintf("model asked before the server was there: %d times", early)}
}
