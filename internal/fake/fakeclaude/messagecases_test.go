package fakeclaude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// waitingCommand reports its start and runs until the file go exists.
const waitingCommand = `touch started; until test -e go; do sleep 0.01; done`

const answeringScenario = `
conversations:
- turns: [{chunks: [{text: one}, {text: two, hold: model}]}, {text: second}, {text: third}]
`

// messageCases returns the cases about messages that arrive while the CLI works.
func messageCases() []contractCase {
	return []contractCase{
		{name: "message while the model answers", scenario: answeringScenario, drive: sayWhileHeld(2, messageID+"1")},
		{name: "messages that wait become one", scenario: answeringScenario, drive: sayWhileHeld(2, messageID+"1", messageID+"2", messageID+"3")},
		{name: "messages without ids that wait become one", scenario: answeringScenario, drive: sayWhileHeld(2, "", "", "")},
		{name: "message before an answer with a call", drive: sayWhileHeld(1, messageID+"1"), scenario: `
conversations:
- turns: [{hold: model, tools: [{name: Bash, input: {command: touch one}}]}, {text: second}]
`},
		{name: "message while a command runs", drive: sayInCommand(messageID + "1"), scenario: `
conversations:
- turns: [{tools: [{name: Bash, input: {command: "` + waitingCommand + `"}}]}, {text: second}]
`},
		{name: "messages while a command runs", drive: sayInCommand(messageID+"1", "", messageID+"3"), scenario: `
conversations:
- turns: [{tools: [{name: Bash, input: {command: "` + waitingCommand + `"}}]}, {text: second}]
`},
		{name: "message while permission is asked", drive: sayWhileAsked, scenario: `
conversations:
- turns: [{tools: [{name: Bash, input: {command: touch WAIT}}]}, {text: second}]
`},
		{name: "message between the answer and the result", drive: sayAtAnswer, scenario: `
conversations:
- turns: [{text: first}, {text: second}]
`},
		{name: "message with a known id", drive: sayTwice, scenario: `
conversations:
- turns: [{text: first}, {text: second}, {text: third}]
`},
		{name: "message after a result that failed", drive: sayAfterResult, scenario: `
conversations:
- turns: [{text: first, fail: [{status: 400, times: 6}]}, {text: second}]
`},
		{name: "input closed while a message waits", scenario: answeringScenario, drive: sayAndClose},
	}
}

func sayWhileHeld(results int, ids ...string) func(*world, *process) []string {
	return func(w *world, p *process) []string {
		p.send("hello")
		p.held("model")
		p.sayAll(ids)
		w.api.Release("model")
		p.results(results)
		return w.lastHeard(len(ids))
	}
}

func sayInCommand(ids ...string) func(*world, *process) []string {
	return func(w *world, p *process) []string {
		p.send("hello")
		eventually(w.t, func() bool {
			_, err := os.Stat(filepath.Join(w.cwd, "started"))
			return err == nil
		})
		p.sayAll(ids)
		w.write("go", "")
		p.results(1)
		return w.lastHeard(len(ids))
	}
}

func sayWhileAsked(w *world, p *process) []string {
	p.send("hello")
	eventually(w.t, func() bool { return len(w.asked()) == 2 }) // the server's start, and the question
	p.sayAll([]string{messageID + "1"})
	check(w.t, os.WriteFile(w.log+".answer", nil, 0o600))
	p.results(1)
	return w.lastHeard(1)
}

func sayAtAnswer(w *world, p *process) []string {
	p.send("hello")
	p.printed(`"first"`, 1)
	p.say(messageID+"1", "more 1")
	p.results(2)
	return w.lastHeard(1)
}

// sayTwice sends the same message again. It is acknowledged but not answered.
func sayTwice(w *world, p *process) []string {
	p.send("hello")
	p.results(1)
	p.say(messageID+"1", "more 1")
	p.results(2)
	p.say(messageID+"1", "more 1")
	p.printed(messageID+"1", 2)
	return w.lastHeard(1)
}

func sayAfterResult(w *world, p *process) []string {
	p.send("hello")
	p.results(1)
	p.say(messageID+"1", "more 1")
	p.results(2)
	return w.lastHeard(1)
}

// sayAndClose checks that messages sent before the end of the input are answered.
func sayAndClose(w *world, p *process) []string {
	p.send("hello")
	p.held("model")
	p.sayAll([]string{messageID + "1"})
	check(w.t, p.stdin.Close())
	w.api.Release("model")
	p.wait()
	return w.lastHeard(1)
}

// sayAll sends "more 1", "more 2", ... after another message and waits until the CLI has
// read them all.
func (p *process) sayAll(ids []string) {
	p.t.Helper()
	for i, id := range ids {
		p.say(id, fmt.Sprintf("more %d", i+1))
	}
	eventually(p.t, func() bool { return strings.Count(p.transcript(), `"operation":"enqueue"`) > len(ids) })
}

// printed waits for at least count lines that contain the text.
func (p *process) printed(text string, count int) {
	p.t.Helper()
	eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		seen := 0
		for _, line := range p.lines {
			if strings.Contains(line, text) {
				seen++
			}
		}
		return seen >= count
	})
}

// lastHeard returns the roles in which the last request to the model contains the last
// count messages.
func (w *world) lastHeard(count int) []string {
	w.t.Helper()
	var last []fakeapi.Message
	for _, request := range w.turns() {
		last = request.Messages
	}
	var lines []string
	for i := range count {
		text := fmt.Sprintf("more %d", i+1)
		for _, message := range last {
			if strings.Contains(message.Text(), text) {
				lines = append(lines, fmt.Sprintf("%q is a word of %s", text, message.Role))
			}
		}
	}
	return lines
}
