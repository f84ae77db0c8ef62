package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A task is a task and the end that it must have.
type task struct {
	ID   string
	Kind string
}

// Kinds of tasks.
const (
	plain     = "plain"     // an agent makes a file
	reviewed  = "reviewed"  // a reviewer finds an error, and an agent fixes it
	limited   = "limited"   // the agent's account is limited until the end of the limits
	asked     = "asked"     // a person approves
	rejected  = "rejected"  // a person rejects
	cancelled = "cancelled" // a person cancels it while its agent works
)

// lands reports whether a task must land.
func (t task) lands() bool { return t.Kind != rejected && t.Kind != cancelled }

// tasks returns n tasks.
func tasks(n int) []task {
	kinds := []string{plain, asked, reviewed, plain, limited, plain, reviewed, asked, plain, plain}
	var all []task
	for i := range n {
		t := task{ID: fmt.Sprintf("t-%05d", i), Kind: kinds[i%len(kinds)]}
		switch i % 30 {
		case 7:
			t.Kind = rejected
		case 9:
			t.Kind = cancelled
		}
		all = append(all, t)
	}
	return all
}

// grimoires are the workflows by name.
var grimoires = map[string]string{
	"plain": `
  - {name: work, type: agent, prompt: implement, expect: changes}
  - {name: land, type: merge, require_review: false}
`,
	"asked": `
  - {name: work, type: agent, prompt: implement, expect: changes}
  - {name: land, type: merge}
`,
	"reviewed": `
  - {name: work, type: agent, prompt: implement, expect: changes}
  - name: quality
    type: agent-loop
    reviewers: [{name: draft, plugin: command, with: {command: "! grep -Hn draft t-*", severity: error}}]
  - {name: land, type: merge, require_review: false}
`,
}

// grimoire returns the name of the workflow of a task.
func (t task) grimoire() string {
	switch t.Kind {
	case reviewed:
		return "reviewed"
	case asked, rejected:
		return "asked"
	}
	return "plain"
}

// limit is how long the account of an agent is limited.
const limit = 10 * time.Second

// files is the number of files that the tasks leave in the repository.
const files = 200

// script returns the script of all agents. The agent of a task makes a file with the task's name in a second or two, and deletes an old one, so that the repository
// does not grow.
func script(limits bool) string {
	work := func(word string) string {
		return fmt.Sprintf("sleep 1; b=$(git branch --show-current); echo %s of $b > ${b#*/}; rm -f $(printf t-%%05d $(expr ${b#*t-} - %d))", word, files)
	}
	text := "conversations:\n"
	if limits {
		text += fmt.Sprintf("- {match: kind limited, turns: [{limit: {reason: rate_limit, after: %s}}]}\n", limit)
	}
	return text + `- {match: kind cancelled, turns: [{stall: true}]}
- match: draft
  turns:
    - tools: [{name: bash, input: {command: "sed -i s/draft/final/ t-*"}}]
    - text: fixed
- match: kind reviewed
  turns:
    - tools: [{name: bash, input: {command: "` + work("draft") + `"}}]
    - text: done
- match: kind
  turns:
    - tools: [{name: bash, input: {command: "` + work("final") + `"}}]
    - text: done
`
}

// tracker returns the file with the tasks.
func tracker(all []task) string {
	var text strings.Builder
	for _, t := range all {
		line, err := json.Marshal(map[string]any{
			"_type": "issue", "id": t.ID, "title": "Make " + t.ID + ", kind " + t.Kind, "status": "open", "issue_type": "task",
			"labels": []string{"grimoire:" + t.grimoire()}, "created_at": "2026-01-01T00:00:00Z",
		})
		if err == nil {
			text.Write(append(line, '\n'))
		}
	}
	return text.String()
}

// write writes files, by path, in a directory.
func write(dir string, files map[string]string) error {
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
