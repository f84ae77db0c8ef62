package provider

import "context"

// Answerer is a Provider whose CLI makes requests to coven and waits for the answers: to start a
// conversation step by step, to ask whether it may do something, or to let coven do it. The
// method is optional: without it, Parse must return no Asked.
type Answerer interface {
	// Answer encodes the answer to a request for the CLI's standard input. If the CLI cannot
	// resume conversations after all, it returns pluginerr.ErrUnsupported, as Command does.
	Answer(ctx context.Context, answer Answer) (Reply, error)
}

// Asked is an event: a request of the CLI that coven answers. Requests that the gate decides
// about are answered in their order, the others at once. Until Started, the other events after a
// request repeat an earlier run of the conversation: all but Retry, Limit and Result are dropped.
type Asked struct {
	ID string // unique among the requests of a run: further ones with the ID are not answered
	// Calls are tool calls that the CLI wants to run if the gate allows all of them. Their names
	// and arguments are those of coven's own tools: see the Call constants. coven reports those
	// that Parse did not report as a ToolCall.
	Calls  []ToolCall
	Action Action // what coven does if the gate allows it; nil: nothing
	Data   []byte // for Answer: coven does not interpret it
}

// The tools of calls that the gate knows, each with the argument that it decides about. It
// refuses calls of other tools.
const (
	CallRead  = "read"         // path
	CallWrite = "write"        // path; a person is shown the change if content is set
	CallEdit  = "edit"         // path; a person is shown the change if oldText and newText are set
	CallGrep  = "grep"         // pattern, path
	CallBash  = "bash"         // command; in the worktree, or in the directory dir if it is set
	CallFetch = "fetch"        // url
	CallOwn   = "mcp__coven__" // begins the name of a tool of coven's MCP server, Request.Gate
)

// Action is what coven does for the CLI: one of the types below. The gate decides about reading
// and writing files and about starting commands.
type Action interface{ action() }

// ReadFile reads a text file in the worktree.
type ReadFile struct {
	Path  string
	Line  int // the first line, from 1; 0: all
	Limit int // maximum number of lines; 0: all
}

// WriteFile replaces a file in the worktree, or creates it.
type WriteFile struct{ Path, Content string }

// RunCommand starts a shell command in the sandbox of the task.
type RunCommand struct {
	Command   string // for bash
	Dir       string // where it runs; empty: at the top of the worktree
	MaxOutput int    // number of bytes of output that are kept, from the end; 0: coven's maximum
}

// UseTerminal is about a command that RunCommand started.
type UseTerminal struct {
	ID string // of the command
	Do string // one of the Terminal constants
}

// What a CLI can do with a command.
const (
	TerminalOutput  = "output"  // return its output so far, and whether it has ended
	TerminalAwait   = "await"   // wait until it has ended
	TerminalKill    = "kill"    // end it
	TerminalRelease = "release" // end it and forget its output
)

func (ReadFile) action()    {}
func (WriteFile) action()   {}
func (RunCommand) action()  {}
func (UseTerminal) action() {}

// Answer is coven's decision about a request, and the result of its action.
type Answer struct {
	Request   Request // of the run, as Command got it
	Asked     Asked
	Allowed   bool   // it is allowed, and the action succeeded
	Reason    string // why it is not allowed, or the error of the action: for the agent
	NotFound  bool   // the file of ReadFile does not exist
	Cancelled bool   // nothing was decided, because the agent is being stopped
	Text      string // of ReadFile, or the output of TerminalOutput
	Terminal  Terminal
}

// Terminal is the state of a command that RunCommand started.
type Terminal struct {
	ID        string
	Truncated bool // Text is not the whole output
	Exited    bool
	Code      int    // its exit code
	Signal    string // that ended it; empty: it ended by itself
}

// Reply is what coven sends to the CLI.
type Reply struct {
	Input []byte // empty: nothing
	// Cancel is sent before coven stops the CLI, which then may return a result. It replaces that
	// of earlier replies; empty: it stays as it was.
	Cancel []byte
}

// Chunk is a part of a text, or of reasoning. coven joins parts until another event follows.
type Chunk struct {
	Text      string
	Reasoning bool
}

func (Asked) event() {}
func (Chunk) event() {}
