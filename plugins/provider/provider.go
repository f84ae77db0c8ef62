// Package provider is the contract of provider plugins: how coven drives an
// agent CLI.
//
// A provider starts nothing. It says how to start the CLI (Command), reads
// what the CLI prints (Parse) and writes what a person says to it (Message);
// coven owns the process, its terminal, its time limits and its end. The three
// methods keep no state, so one plugin process serves all tasks of a run.
package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/coven-run/coven/plugins/pluginerr"
)

// ErrNoMessages is pluginerr.ErrUnsupported, in words.
//
// Deprecated: return pluginerr.ErrUnsupported.
var ErrNoMessages = fmt.Errorf("its agent CLI takes no messages while it works: %w", pluginerr.ErrUnsupported)

// Provider knows one agent CLI.
type Provider interface {
	// Command says how to start the CLI for one run of an agent. For a CLI that
	// cannot resume a conversation it returns pluginerr.ErrUnsupported when
	// Request.Resume is set: coven then starts a new one in the same worktree.
	Command(ctx context.Context, req Request) (Command, error)
	// Parse turns whole lines of the CLI's output, each with its newline, into
	// events. Lines that say nothing give no event; no line is an error.
	Parse(ctx context.Context, lines []byte) ([]Event, error)
	// Message turns what a person says into bytes for the CLI's standard input.
	// The CLI must say Acknowledged of each message. A provider whose CLI cannot be told
	// anything while it works returns pluginerr.ErrUnsupported.
	Message(ctx context.Context, message Message) ([]byte, error)
}

// Message is what a person says to an agent at work.
type Message struct {
	ID   string // a UUID that coven chose, new to the conversation
	Text string // as it was typed: the CLI must not act on commands or paths in it
}

// Request asks for one run of an agent.
type Request struct {
	Conversation string   // id of the conversation: a UUID that coven chose
	Resume       bool     // go on with that conversation instead of beginning it
	Prompt       string   // the first message
	System       string   // added to the CLI's own system prompt
	Model        string   // alias or full id; empty: the CLI's default
	Tools        []string // ids of the tools that are granted: see Tool constants
	FilesDir     string   // absolute: where Command.Files will be written
	Gate         Server   // coven's MCP server
	GateTool     string   // the tool of that server which decides about a call
}

var uuidRE = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// CheckConversation is a pluginerr.ErrInvalid unless the id of the conversation is a
// UUID, which no CLI takes for a flag.
func (r Request) CheckConversation() error {
	if !uuidRE.MatchString(r.Conversation) {
		return fmt.Errorf("%q is not the id of a conversation, which is a UUID: %w", r.Conversation, pluginerr.ErrInvalid)
	}
	return nil
}

// The ids of the tools that an agent can be granted.
const (
	ToolRead  = "fs_read"
	ToolWrite = "fs_write"
	ToolEdit  = "fs_edit"
	ToolBash  = "exec_bash"
)

// ReadOnly reports whether the agent may read, and nothing else: no other tool is
// granted.
func (r Request) ReadOnly() bool {
	return !slices.ContainsFunc(r.Tools, func(id string) bool { return id != ToolRead })
}

// Server is an MCP server that the CLI starts and speaks to over its standard
// input and output.
type Server struct {
	Name string
	Argv []string
	Env  []string // KEY=VALUE
}

// Command is how to start the CLI.
type Command struct {
	Argv  []string // Argv[0] is looked up on PATH
	Env   []string // KEY=VALUE, set for the CLI
	Pass  []string // names handed on from the user's environment; a trailing * stands for any ending
	Input []byte   // the first bytes on its standard input
	Once  bool     // its input ends with Input: the CLI waits for that, and is told nothing more
	Files []File   // written before the start, readable by the user only
	Gated bool     // every tool call of this command line passes the gate
	// ReadOnly says that the CLI, started so, can change nothing. Agents that review
	// need it of a command that is not gated.
	ReadOnly bool
	Account  string // what rate limits and cost belong to: anthropic, openai, local
	// Partial is how those lines of the output begin that are pieces of what comes
	// whole later: the record of the run leaves them out. Empty: there are none.
	Partial string
}

// File is a file that the CLI needs.
type File struct {
	Name    string // a plain file name inside Request.FilesDir
	Content []byte
}

// Event is one thing that the CLI said: exactly one of the types below.
type Event interface{ event() }

// Started is the CLI's first word.
type Started struct {
	Conversation  string
	Model         string
	Tools         []string // as the CLI names them
	FailedServers []string // MCP servers that the CLI could not reach
}

// Text is what the agent said.
type Text struct{ Text string }

// Reasoning is what the agent thought.
type Reasoning struct{ Text string }

// ToolCall is a tool call that the agent asked for.
type ToolCall struct {
	ID    string
	Name  string // as the CLI names it
	Input json.RawMessage
}

// ToolResult is what became of a tool call.
type ToolResult struct {
	ID       string
	Text     string
	IsError  bool
	NeverRan bool // the CLI refused the call before it asked anybody
}

// Retry says that the CLI will ask its model API again.
type Retry struct {
	Attempt     int
	MaxAttempts int
	DelayMS     int64
	Status      int // HTTP
	Reason      string
}

// Result is the CLI's last word about a message.
type Result struct {
	OK     bool
	Text   string // the agent's final message
	Error  string // why not OK
	Limit  bool   // not OK because of a rate limit or an overloaded API
	Status int    // HTTP status of the API's last refusal, or 0
	Turns  int
	// Usage holds the tokens since the process's last result, and the cost of
	// the whole process so far. Zero: what Spent said counts.
	Usage Usage
}

// Acknowledged says that the CLI took a message into its conversation: the next Result
// answers it. Of messages that coven did not send, such as the first, it may
// name any id.
type Acknowledged struct{ ID string }

// Heard is the former name of Acknowledged.
//
// Deprecated: use Acknowledged.
type Heard = Acknowledged

// Spent is what one answer of the model API has used so far. Of each number, the
// largest that was said of an answer counts.
type Spent struct {
	ID    string // of the answer; empty: the one that the Spent before was about
	Model string // that answered; empty: not said
	Usage Usage
	Done  bool // the answer is complete: Usage is final
	More  bool // it is, and asks for tools: the CLI will ask the model again
}

// Limit says that the model API refused for a rate limit or an overload. It is
// made of what the CLI says in a form of its own, never of a text that an agent
// could have written.
type Limit struct {
	Until  time.Time     // when the limit ends; zero: not known, or After says it
	After  time.Duration // the same, from when this was said; 0: not known
	Again  time.Duration // when the CLI asks again by itself; 0: it does not, or not in a time that makes sense
	Reason string        // a word: rate_limit, overloaded, five_hour
	Status int           // HTTP, or 0
}

// Usage is what a run used, as the CLI reckons it.
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

// Tokens is how many tokens there are of all kinds.
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
