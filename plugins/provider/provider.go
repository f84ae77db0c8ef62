// Package provider defines the contract of provider plugins, which let coven drive an agent CLI.
//
// A provider starts no process. It returns the command line of the CLI (Command), parses the output of the
// CLI (Parse) and encodes messages from the user (Message). coven manages the process with its terminal,
// time limits and termination. A CLI that sends requests to coven needs a fourth method, Answer; see
// Answerer. The methods are stateless, so one plugin process serves all tasks of a run.
package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Provider drives one agent CLI.
type Provider interface {
	// Command returns the command line of the CLI for one run of an agent. If Request.Resume is set and the
	// CLI cannot resume conversations, it returns pluginerr.ErrUnsupported, and coven starts a new
	// conversation in the same worktree.
	Command(ctx context.Context, req Request) (Command, error)
	// Parse converts complete lines of the CLI's output, each with its newline, to events. It skips unknown
	// lines and does not fail because of them.
	Parse(ctx context.Context, lines []byte) ([]Event, error)
	// Message encodes a message from the user for the CLI's standard input. The CLI
	// must confirm each message with Acknowledged. If the CLI accepts no input while it
	// works, Message returns pluginerr.ErrUnsupported.
	Message(ctx context.Context, message Message) ([]byte, error)
}

// Message is a message from the user to a working agent.
type Message struct {
	ID   string // a UUID chosen by coven, unique in the conversation
	Text string // literal text: the CLI must not interpret commands or paths in it
}

// Request describes one run of an agent.
type Request struct {
	Conversation string   // ID of the conversation, a UUID chosen by coven
	Resume       bool     // resume the conversation instead of starting it
	Prompt       string   // the first message
	System       string   // appended to the CLI's own system prompt
	Model        string   // alias or full ID; empty for the CLI's default
	Tools        []string // IDs of the granted tools; see the Tool constants
	Dir          string   // absolute working directory
	FilesDir     string   // absolute directory for Command.Files; the CLI cannot write there
	StateDir     string   // absolute directory for the CLI's settings and conversations; unchanged when it resumes
	TempDir      string   // absolute directory for temporary files
	Gate         Server   // coven's MCP server
	GateTool     string   // the tool of Gate that decides about tool calls
}

var uuidRE = lazyregexp.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// CheckConversation returns pluginerr.ErrInvalid unless the conversation ID is a UUID, which no CLI
// mistakes for a flag.
func (r Request) CheckConversation() error {
	if !uuidRE.MatchString(r.Conversation) {
		return fmt.Errorf("conversation ID %q is not a UUID: %w", r.Conversation, pluginerr.ErrInvalid)
	}
	return nil
}

// The IDs of the tools that can be granted to an agent.
const (
	ToolRead  = "fs_read"
	ToolWrite = "fs_write"
	ToolEdit  = "fs_edit"
	ToolBash  = "exec_bash"
)

// ReadOnly reports whether no tool except ToolRead is granted.
func (r Request) ReadOnly() bool {
	return !slices.ContainsFunc(r.Tools, func(id string) bool { return id != ToolRead })
}

// Server is an MCP server that the CLI starts and calls over standard input and output.
type Server struct {
	Name string
	Argv []string
	Env  []string // KEY=VALUE
}

// Command is the command line of the CLI.
type Command struct {
	Argv  []string // Argv[0] is looked up on PATH
	Env   []string // KEY=VALUE, added to the CLI's environment
	Pass  []string // variables inherited from the user's environment; a trailing * matches any suffix
	Input []byte   // initial bytes for standard input
	Once  bool     // standard input is closed after Input, so the CLI accepts no messages
	Files []File   // written before the CLI starts; only the user can read them
	Gated bool     // all tool calls of this command pass the gate
	// ReadOnly promises that the CLI cannot change anything. Reviewing agents require it if the command is
	// not gated.
	ReadOnly bool
	// Server means that the CLI works until its input ends. coven stops it if it has not exited a few
	// seconds later, and ignores the exit code.
	Server  bool
	Account string // for usage and rate limits: anthropic, openai or local
	// Forward optionally names the API whose requests coven forwards: ForwardAnthropic. The CLI gets the
	// address of coven's forwarder and a placeholder instead of the user's credential. If Forward is empty,
	// or if the user's way of logging in cannot be forwarded, the CLI gets Pass and Logins.
	Forward string
	// Logins are the absolute paths of the user's files with the CLI's login. Each existing file is linked
	// into Request.StateDir under its base name. The CLI can read and change it.
	Logins []string
	// Partial is the prefix of output lines that hold fragments of a later, complete line. The log of the
	// run omits these lines. It may be empty.
	Partial string
}

// ForwardAnthropic is the Anthropic API as used by Claude Code.
const ForwardAnthropic = "anthropic"

// UserFiles returns the paths of files in the user's directory of a CLI, for Command.Logins. The
// environment variable selects the directory; it defaults to dir below the user's home. The result is empty
// if getenv is nil or the environment selects no absolute directory.
func UserFiles(getenv func(string) string, variable, dir string, names ...string) []string {
	if getenv == nil {
		return nil
	}
	from := getenv(variable)
	if home := getenv("HOME"); from == "" && filepath.IsAbs(home) {
		from = filepath.Join(home, dir)
	}
	if !filepath.IsAbs(from) {
		return nil
	}
	var files []string
	for _, name := range names {
		files = append(files, filepath.Join(from, name))
	}
	return files
}

// File is a file for the CLI.
type File struct {
	Name    string // a base name; the file is created in Request.FilesDir
	Content []byte
}

// Event is an event in the CLI's output: one of the types below.
type Event interface{ event() }

// Started is the first event of the CLI's run.
type Started struct {
	Conversation  string
	Model         string
	Tools         []string // as named by the CLI
	FailedServers []string // MCP servers that the CLI failed to reach
}

// Text is text from the agent.
type Text struct{ Text string }

// Reasoning is the reasoning of the agent.
type Reasoning struct{ Text string }

// ToolCall is a tool call of the agent.
type ToolCall struct {
	ID    string
	Name  string // as named by the CLI
	Input json.RawMessage
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	ID       string
	Text     string
	IsError  bool
	NeverRan bool // the CLI rejected the call without asking the gate
}

// Retry reports that the CLI will repeat a request to its model API.
type Retry struct {
	Attempt     int
	MaxAttempts int
	DelayMS     int64
	Status      int // HTTP status
	Reason      string
}

// Result is the CLI's final event for a message.
type Result struct {
	OK     bool
	Text   string // the agent's final message
	Error  string // set if not OK
	Limit  bool   // the cause is a rate limit or an overloaded API
	Status int    // HTTP status of the API's last error, or 0
	Turns  int
	// Usage holds the tokens since the previous result of the process and the total cost of the process. If
	// it is zero, coven adds up the Spent events.
	Usage Usage
}

// Acknowledged reports that the CLI added a message to its conversation. The next Result answers the
// message. The ID is arbitrary for messages that coven did not send, such as the first one.
type Acknowledged struct{ ID string }

// Spent is the usage of one answer of the model API so far. If there are several for an answer, the maximum
// of each number counts.
type Spent struct {
	ID    string // of the answer; empty for the same answer as the previous Spent, unless Next is set
	Next  bool   // this is another answer than the previous Spent, for a CLI without answer IDs
	Model string // the answering model; empty if unknown
	Usage Usage
	Done  bool // the answer is complete and Usage is final
	More  bool // the complete answer calls tools, so the CLI will ask the model again
}

// Limit reports that the model API refused a request because of a rate limit or an overload. It must be
// derived from structured output of the CLI, never from text that an agent could have written.
type Limit struct {
	Until  time.Time     // end of the limit; zero if unknown or given by After
	After  time.Duration // end of the limit relative to this event; 0 if unknown
	Again  time.Duration // delay until the CLI retries by itself; 0 if it does not, or only after a long time
	Reason string        // one word: rate_limit, overloaded, five_hour
	Status int           // HTTP status, or 0
}

// Usage is the usage of a run reported by the CLI.
type Usage struct {
	InputTokens      int64   `json:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		CostUSD:          u.CostUSD + v.CostUSD,
	}
}

// Tokens returns the total number of tokens.
func (u Usage) Tokens() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

func (Started) event()      {}
func (Text) event()         {}
func (Reasoning) event()    {}
func (ToolCall) event()     {}
func (ToolResult) event()   {}
func (Retry) event()        {}
func (Result) event()       {}
func (Acknowledged) event() {}
func (Spent) event()        {}
func (Limit) event()        {}
