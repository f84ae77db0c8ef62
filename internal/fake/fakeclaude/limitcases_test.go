package fakeclaude_test

import (
	"strings"
	"syscall"
)

// limitCases returns the cases about rate limits, overload and usage.
func limitCases() []contractCase {
	partial := []string{"--include-partial-messages"}
	watchdog := []string{"CLAUDE_CODE_RETRY_WATCHDOG=1"}
	subscriber := []string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=dummy"}
	const session = "limits: {status: rejected, reset: 1h, claim: five_hour}"
	return []contractCase{
		{name: "long retry-after", scenario: `
conversations:
- turns: [{fail: [{status: 429, retry_after: 600s}], text: bye}]
`},
		{name: "long retry-after with watchdog", env: watchdog, drive: stopAtRetry, scenario: `
conversations:
- turns: [{fail: [{status: 429, retry_after: 600s}], text: bye}]
`},
		{name: "overload with long retry-after and watchdog", env: watchdog, drive: stopAtRetry, scenario: `
conversations:
- turns: [{fail: [{status: 529, retry_after: 600s}], text: bye}]
`},
		{name: "subscriber at the limit", env: subscriber, scenario: `
conversations:
- turns: [{fail: [{status: 429, ` + session + `}], text: bye}]
`},
		{name: "subscriber at the limit with watchdog", env: append(watchdog, subscriber...), drive: stopAtRetry, scenario: `
conversations:
- turns: [{fail: [{status: 429, ` + session + `}], text: bye}]
`},
		{name: "subscriber and a busy server", env: subscriber, scenario: `
conversations:
- turns: [{fail: [{status: 429}], text: bye}]
`},
		{name: "subscriber is told of the limits", env: subscriber, scenario: `
conversations:
- turns:
  - {limits: {status: allowed, reset: 1h, claim: five_hour}, tools: [{name: Bash, input: {command: touch one}}]}
  - {text: bye}
`},
		{name: "overload and watchdog", env: append(watchdog, "CLAUDE_CODE_MAX_RETRIES=1"), scenario: `
conversations:
- turns: [{fail: [{status: 529, times: 3}], text: bye}]
`},
		{name: "retries used up with watchdog", env: append(watchdog, "CLAUDE_CODE_MAX_RETRIES=1"), scenario: `
conversations:
- turns: [{fail: [{status: 500, times: 9}], text: bye}]
`},
		{name: "pieces of answers", flags: partial, scenario: `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: "sleep 0.5; touch one"}}], usage: {input: 100, output: 42}}
  - {text: bye, usage: {input: 200, output: 8}}
`},
	}
}

// stopAtRetry ends the CLI while it waits for a retry, and resumes the
// conversation.
func stopAtRetry(w *world, p *process) []string {
	p.send("hello")
	eventually(w.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.lines) > 0 && strings.Contains(p.lines[len(p.lines)-1], `"api_retry"`)
	})
	p.signal(syscall.SIGTERM)
	<-p.closed
	return w.again("--resume", w.id)
}
