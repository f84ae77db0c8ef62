package fakeclaude_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/fake/fakeapi"
)

// commandForever writes its process ID and outlives the test unless it is killed.
const commandForever = `echo $$ > starting; mv starting started; sleep 60; touch late`

const heldScenario = `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: touch one}}]}
  - {hold: model, text: after}
`

const commandScenario = `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: "` + commandForever + `"}}]}
  - text: after
`

func lifeCases() []contractCase {
	once := []string{"CLAUDE_CODE_MAX_RETRIES=1"}
	return []contractCase{
		{name: "overloaded three times", scenario: `
conversations:
- turns: [{fail: [{status: 529, times: 3}], text: bye}]
`},
		{name: "rate limit with retry-after", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 429, retry_after: 1s}], text: bye}]
`},
		{name: "retries used up", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 500, times: 9}], text: bye}]
`},
		{name: "not authenticated", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 401, times: 9}], text: bye}]
`},
		{name: "bad request", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 400, times: 9}], text: bye}]
`},
		{name: "no credit", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 400, times: 9, text: "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."}], text: bye}]
`},
		{name: "payment required", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 402, times: 9, text: the account has no credit}], text: bye}]
`},
		{name: "organization not allowed", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 403, times: 9, text: OAuth authentication is currently not allowed for this organization.}], text: bye}]
`},
		{name: "forbidden", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 403, times: 9, text: This organization has been disabled.}], text: bye}]
`},
		{name: "unknown model", env: once, scenario: `
conversations:
- turns: [{fail: [{status: 404, times: 9, text: "model: claude-nope"}], text: bye}]
`},
		{name: "stream cut in a block", env: once, drive: cutWhileHeld, scenario: `
conversations:
- turns: [{chunks: [{text: whole}, {text: half, hold: model}], cut: true}, {text: rest}]
`},
		{name: "streams cut again and again", env: once, drive: cutEachStream, scenario: `
conversations:
- turns:
  - {chunks: [{text: whole}, {text: half, hold: cut1}], cut: true}
  - {chunks: [{text: whole}, {text: half, hold: cut2}], cut: true}
  - {chunks: [{text: whole}, {text: half, hold: cut3}], cut: true}
  - {chunks: [{text: whole}, {text: half, hold: cut4}], cut: true}
  - {text: rest}
`},
		{name: "max turns", flags: []string{"--max-turns", "2"}, scenario: `
conversations:
- turns:
  - tools: [{name: Bash, input: {command: touch one}}]
  - tools: [{name: Bash, input: {command: touch two}}]
  - tools: [{name: Bash, input: {command: touch three}}]
`},
		{name: "unknown flag", flags: []string{"--nonsense"}, scenario: "conversations: []", drive: silent},
		{name: "no input", scenario: "conversations: []", drive: silent},
		{name: "text in blocks while the model holds", drive: firstLineWhileHeld, scenario: `
conversations:
- turns: [{chunks: [{text: one}, {text: two, hold: model}, {text: " more", join: true}]}]
`},
		{name: "message after the result", drive: followUp, scenario: `
conversations:
- turns: [{text: first}, {text: second}]
`},
		{name: "appended system prompt", flags: []string{"--append-system-prompt", "APPENDED-1"}, drive: systemHas("APPENDED-1"), scenario: `
conversations:
- turns: [{text: bye}]
`},
		{name: "TERM while the model works", scenario: heldScenario, drive: signalHeld(syscall.SIGTERM)},
		{name: "INT while the model works", scenario: heldScenario, drive: signalHeld(syscall.SIGINT)},
		{name: "TERM in a command", scenario: commandScenario, drive: signalCommand(syscall.SIGTERM)},
		{name: "INT in a command", scenario: commandScenario, drive: signalCommand(syscall.SIGINT)},
		{name: "TERM when idle", scenario: heldScenario, drive: signalIdle(syscall.SIGTERM)},
		{name: "INT when idle", scenario: heldScenario, drive: signalIdle(syscall.SIGINT)},
		{name: "resume after KILL while the model works", scenario: heldScenario, drive: resumeAfterKill},
		{name: "resume after KILL in a command", scenario: commandScenario, drive: resumeAfterKillInCommand},
		{name: "resume of nothing", scenario: "conversations: []", flags: nil, drive: resumeUnknown},
		{name: "session id in use", scenario: heldScenario, drive: sessionInUse},
	}
}

func silent(*world, *process) []string { return nil }

func firstLineWhileHeld(w *world, p *process) []string {
	p.send("hello")
	p.held("model")
	eventually(w.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.lines) == 3 // init, the taken message, and the first text
	})
	w.api.Release("model")
	return nil
}

// cutWhileHeld is like firstLineWhileHeld, but the answer is then cut off. It costs one more token if the
// cut-off piece has arrived.
func cutWhileHeld(w *world, p *process) []string {
	p.unpaid = true
	return firstLineWhileHeld(w, p)
}

// cutEachStream cuts off each answer after its first text. The last answer may cost more, as above.
func cutEachStream(w *world, p *process) []string {
	p.unpaid = true
	p.send("hello")
	for i := range 4 {
		p.printed(`"text":"whole"`, i+1)
		w.api.Release(fmt.Sprintf("cut%d", i+1))
	}
	p.results(1)
	return nil
}

func followUp(_ *world, p *process) []string {
	p.send("hello")
	p.results(1)
	p.send("more")
	p.results(2)
	return nil
}

func systemHas(text string) func(*world, *process) []string {
	return func(w *world, p *process) []string {
		p.send("hello")
		p.results(1)
		has := false
		for _, request := range w.api.Requests() {
			has = has || strings.Contains(request.System, text)
		}
		return []string{fmt.Sprintf("system prompt has it: %t", has)}
	}
}

func signalHeld(sig syscall.Signal) func(*world, *process) []string {
	return func(_ *world, p *process) []string {
		p.send("hello")
		p.held("model")
		p.signal(sig)
		<-p.closed // with its input still open
		return nil
	}
}

// signalCommand also reports whether the command survived. It does not compare the exit
// code of the real CLI after INT, which varies between 0 and 1.
func signalCommand(sig syscall.Signal) func(*world, *process) []string {
	return func(w *world, p *process) []string {
		p.send("hello")
		pid := w.startedFile()
		p.signal(sig)
		p.wait()
		if sig == syscall.SIGINT {
			eventually(w.t, func() bool { return syscall.Kill(pid, 0) != nil })
			p.exit = "not compared"
		}
		return []string{fmt.Sprintf("command lives: %t", syscall.Kill(pid, 0) == nil)}
	}
}

func signalIdle(sig syscall.Signal) func(*world, *process) []string {
	return func(w *world, p *process) []string {
		w.api.Release("model")
		p.send("hello")
		p.results(1)
		p.signal(sig)
		<-p.closed
		return nil
	}
}

func resumeAfterKill(w *world, p *process) []string {
	p.send("hello")
	p.held("model")
	w.transcriptHas(`"tool_result"`)
	return w.killAndResume(p)
}

func resumeAfterKillInCommand(w *world, p *process) []string {
	p.send("hello")
	pid := w.startedFile()
	w.transcriptHas(`"tool_use"`)
	noted := w.killAndResume(p)
	return append(noted, fmt.Sprintf("command lives: %t", syscall.Kill(pid, 0) == nil))
}

func (w *world) killAndResume(p *process) []string {
	w.t.Helper()
	p.signal(syscall.SIGKILL)
	p.wait()
	w.api.Release("model")
	return w.again("--resume", w.id)
}

// again runs the CLI once more in the same world. The flags follow the
// usual flags.
func (w *world) again(flags ...string) []string {
	w.t.Helper()
	second := w.start(nil, flags...)
	second.send("go on")
	lines := append([]string{"again " + flags[0]}, second.wait().describe()...)
	var last string
	for _, request := range w.turns() {
		last = ""
		for _, message := range request.Messages {
			last += heard(message)
		}
	}
	return append(lines, "last request:"+last)
}

// heard returns a message as the model received it, without the CLI's descriptions of itself
// and of its environment.
func heard(message fakeapi.Message) string {
	said := ""
	for _, block := range message.Content {
		own := strings.HasPrefix(block.Text, "<system-reminder>") || strings.HasPrefix(block.Text, "# Environment")
		if block.Type != "text" || !own {
			said += " [" + block.Type + " " + block.Text + "]"
		}
	}
	if said == "" {
		return ""
	}
	return " " + message.Role + said
}

func resumeUnknown(w *world, _ *process) []string {
	return w.again("--resume", "22222222-2222-4222-8222-222222222222")
}

func sessionInUse(w *world, p *process) []string {
	w.api.Release("model")
	p.send("hello")
	p.results(1)
	p.wait()
	return w.again("--session-id", w.id)
}

// transcriptHas waits until the transcript on disk contains the text. The real
// CLI writes it a little later than it prints.
func (w *world) transcriptHas(text string) {
	w.t.Helper()
	eventually(w.t, func() bool { return strings.Contains(w.transcript(), text) })
}

// transcript returns the transcript on disk, or "" if there is none yet.
func (w *world) transcript() string {
	paths, err := filepath.Glob(filepath.Join(w.home, ".claude", "projects", "*", w.id+".jsonl"))
	if err != nil || len(paths) != 1 {
		return ""
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		return ""
	}
	return string(data)
}
