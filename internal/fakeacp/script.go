package fakeacp

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"time"
)

// Script is what the agent does.
type Script struct {
	Version       int            `yaml:"version"`  // of the protocol; 0: 1
	Loads         bool           `yaml:"loads"`    // it can load sessions
	Models        []string       `yaml:"models"`   // names; the first is the usual one
	Stubborn      bool           `yaml:"stubborn"` // it ignores the end of its input
	Error         string         `yaml:"error"`    // with which each prompt ends
	Conversations []Conversation `yaml:"conversations"`
}

// Conversation is what the agent does for a prompt.
type Conversation struct {
	Match string `yaml:"match"` // a text in the prompt
	Steps []Step `yaml:"steps"`
}

// Step is one of these things. In texts, ${CWD} is the directory of the session, and ${LAST} the
// last answer.
type Step struct {
	Text    string            `yaml:"text"` // said in two parts
	Thought string            `yaml:"thought"`
	Call    string            `yaml:"call"`   // ID of a tool call that is reported as begun
	Done    string            `yaml:"done"`   // ID of a tool call that is reported as completed
	Ask     *Ask              `yaml:"ask"`    // for permission
	Method  string            `yaml:"method"` // of a request with Params; its answer is waited for
	Params  map[string]any    `yaml:"params"`
	Nowait  bool              `yaml:"nowait"` // the answer is not waited for
	Run     string            `yaml:"run"`    // a command in a terminal, to its end
	Tool    *Tool             `yaml:"tool"`   // a call of a tool of an MCP server of the client; its text is the last answer
	Raw     string            `yaml:"raw"`    // a line
	Long    int               `yaml:"long"`   // the length of a line without meaning
	Write   map[string]string `yaml:"write"`  // files that the agent writes itself
	Link    map[string]string `yaml:"link"`   // symbolic links that it makes, and where they lead
	Fifo    string            `yaml:"fifo"`   // a pipe that it makes
	Await   string            `yaml:"await"`  // a file that it waits for
	End     bool              `yaml:"end"`    // answers the prompt; the steps go on
	Repeat  int               `yaml:"repeat"` // how often the step is done; 0: once
}

// Ask is a request for permission.
type Ask struct {
	ID      string         `yaml:"id"`
	Title   string         `yaml:"title"` // empty: harmless
	Kind    string         `yaml:"kind"`
	Raw     map[string]any `yaml:"raw"`     // rawInput
	Options []string       `yaml:"options"` // kinds; none: the usual ones
}

// steps returns the steps for a prompt.
func (s Script) steps(prompt string) []Step {
	for _, c := range s.Conversations {
		if strings.Contains(prompt, c.Match) {
			return c.Steps
		}
	}
	return nil
}

func (a *agent) do(ctx context.Context, prompt json.RawMessage, s Step) {
	for range max(s.Repeat, 1) {
		a.speak(s)
		a.request(ctx, s)
		a.touch(s)
		if s.Await != "" {
			a.await(ctx, a.fill(s.Await))
		}
		if s.End {
			a.stop(prompt, "end_turn")
			a.ended = true
		}
	}
}

// speak does what needs no answer.
func (a *agent) speak(s Step) {
	if s.Text != "" {
		text := a.fill(s.Text)
		a.keep("agent_message_chunk", text)
		a.chunk("agent_message_chunk", text[:len(text)/2])
		a.chunk("agent_message_chunk", text[len(text)/2:])
	}
	if s.Thought != "" {
		a.chunk("agent_thought_chunk", s.Thought)
	}
	if s.Call != "" {
		a.update("tool_call", map[string]any{"toolCallId": s.Call, "title": s.Call, "kind": "other", "status": "in_progress"})
	}
	if s.Done != "" {
		a.update("tool_call_update", map[string]any{"toolCallId": s.Done, "status": "completed"})
	}
	if s.Raw != "" {
		a.line(a.fill(s.Raw))
	}
	if s.Long > 0 {
		a.line(strings.Repeat("x", s.Long))
	}
}

// request makes a request.
func (a *agent) request(ctx context.Context, s Step) {
	switch {
	case s.Ask != nil:
		options := []any{}
		for _, kind := range s.Ask.options() {
			options = append(options, map[string]any{"optionId": "id-" + kind, "name": kind, "kind": kind})
		}
		a.call(ctx, "session/request_permission", map[string]any{"options": options, "toolCall": map[string]any{
			"toolCallId": s.Ask.ID, "title": cmp.Or(s.Ask.Title, "harmless"), "kind": s.Ask.Kind, "rawInput": a.filled(s.Ask.Raw),
		}})
	case s.Run != "":
		a.run(ctx, a.fill(s.Run))
	case s.Tool != nil:
		a.use(ctx, *s.Tool)
	case s.Method != "" && s.Nowait:
		go a.call(ctx, s.Method, a.filled(s.Params))
	case s.Method != "":
		a.call(ctx, s.Method, a.filled(s.Params))
	}
}

// run runs a command in a terminal; its output is the last answer.
func (a *agent) run(ctx context.Context, command string) {
	var made struct {
		TerminalID string `json:"terminalId"`
	}
	r := a.call(ctx, "terminal/create", map[string]any{"command": command})
	if json.Unmarshal(r.Result, &made) != nil || made.TerminalID == "" {
		return
	}
	terminal := func() map[string]any { return map[string]any{"terminalId": made.TerminalID} }
	a.call(ctx, "terminal/wait_for_exit", terminal())
	out := a.call(ctx, "terminal/output", terminal())
	a.call(ctx, "terminal/release", terminal())
	a.last = out.text()
}

func (k *Ask) options() []string {
	if k.Options == nil {
		return []string{"allow_always", "allow_once", "reject_once"}
	}
	return k.Options
}

// touch changes files itself. What the sandbox refuses is noted.
func (a *agent) touch(s Step) {
	for file, content := range s.Write {
		if err := os.WriteFile(a.fill(file), []byte(content), 0o600); err != nil {
			a.note("write " + err.Error())
		}
	}
	for file, to := range s.Link {
		if err := os.Symlink(a.fill(to), a.fill(file)); err != nil {
			a.note("link " + err.Error())
		}
	}
	if s.Fifo != "" {
		if err := syscall.Mkfifo(a.fill(s.Fifo), 0o600); err != nil {
			a.note("fifo " + err.Error())
		}
	}
}

// await waits for a file.
func (a *agent) await(ctx context.Context, file string) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// fill replaces what stands for something else in a text.
func (a *agent) fill(text string) string {
	return strings.NewReplacer("${CWD}", a.cwd, "${LAST}", a.last, "${SESSION}", a.session).Replace(text)
}

// filled is fill for all texts of parameters.
func (a *agent) filled(params map[string]any) map[string]any {
	all := map[string]any{}
	for name, value := range params {
		if text, ok := value.(string); ok {
			value = a.fill(text)
		}
		all[name] = value
	}
	return all
}
