package provider

import "context"

// Answerer is a Provider whose CLI sends requests to coven and waits for the answers: to start a
// conversation step by step, to ask for permission, or to have coven perform an action. The method is
// optional. Without it, Parse must not return Asked.
type Answerer interface {
	// Answer encodes the answer to a request for the CLI's standard input. If the CLI turns out to be
	// unable to resume conversations, it returns pluginerr.ErrUnsupported, as Command does.
	Answer(ctx context.Context, answer Answer) (Reply, error)
}

// Asked is an event: a request of the CLI that coven answers. Requests that need a decision of the gate are
// answered in order, the others immediately. Until Started, the other events after a request repeat an
// earlier run of the conversation. coven drops them, except Retry, Limit and Result.
type Asked struct {
	ID string // unique in a run; coven ignores further requests with the same ID
	// Calls are tool calls that the CLI runs if the gate allows all of them. Their names and arguments are
	// those of coven's own tools; see the Call constants. coven reports the calls that Parse did not report
	// as a ToolCall.
	Calls  []ToolCall
	Action Action // optional; coven performs it if the gate allows it
	Data   []byte // opaque data for Answer
}

// The tools that the gate knows, each with the arguments that it evaluates. It refuses calls of other
// tools.
const (
	CallRead  = "read"         // path
	CallWrite = "write"        // path; shows the user the change if content is set
	CallEdit  = "edit"         // path; shows the user the change if oldText and newText are set
	CallGrep  = "grep"         // pattern, path
	CallBash  = "bash"         // command; runs in the directory dir, or at the top of the worktree
	CallFetch = "fetch"        // url
	CallOwn   = "mcp__coven__" // prefix of the tools of coven's MCP server, Request.Gate
)

// Action is an action that coven performs for the CLI: one of the types below. The gate decides about
// reading and writing files and about starting commands.
type Action interface{ action() }

// ReadFile reads a text file in the worktree.
type ReadFile struct {
	Path  string
	Line  int // first line, from 1; 0 for all
	Limit int // maximum number of lines; 0 for all
}

// WriteFile creates or replaces a file in the worktree.
type WriteFile struct{ Path, Content string }

// RunCommand starts a shell command in the sandbox of the task.
type RunCommand struct {
	Command   string // for bash
	Dir       string // working directory; defaults to the top of the worktree
	MaxOutput int    // bytes to store from the end of the output; 0 for coven's maximum
}

// UseTerminal operates on a command that RunCommand started.
type UseTerminal struct {
	ID string // of the command
	Do string // one of the Terminal constants
}

// The operations on a command.
const (
	TerminalOutput  = "output"  // return its output so far and its state
	TerminalAwait   = "await"   // wait for its exit
	TerminalKill    = "kill"    // kill it
	TerminalRelease = "release" // kill it and discard its output
)

func (ReadFile) action()    {}
func (WriteFile) action()   {}
func (RunCommand) action()  {}
func (UseTerminal) action() {}

// Answer is coven's decision about a request, and the result of its action.
type Answer struct {
	Request   Request // of the run, as passed to Command
	Asked     Asked
	Allowed   bool   // it was allowed, and the action succeeded
	Reason    string // for the agent: why it was not allowed, or the error of the action
	NotFound  bool   // the file of ReadFile does not exist
	Cancelled bool   // there is no decision, because the agent is being stopped
	Text      string // of ReadFile, or the output for TerminalOutput
	Terminal  Terminal
}

// Terminal is the state of a command that RunCommand started.
type Terminal struct {
	ID        string
	Truncated bool // Text is not the complete output
	Exited    bool
	Code      int    // exit code
	Signal    string // signal that killed it, or ""
}

// Reply is the data that coven sends to the CLI.
type Reply struct {
	Input []byte // optional
	// Cancel is sent before coven stops the CLI, which may then return a result. It replaces the Cancel of
	// earlier replies unless it is empty.
	Cancel []byte
}

// Chunk is a fragment of a text or of reasoning. coven joins consecutive chunks until another event
// follows.
type Chunk struct {
	Text      string
	Reasoning bool
}

func (Asked) event() {}
func (Chunk) event() {}
