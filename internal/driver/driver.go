// Package driver runs one agent: a process of an agent CLI under a pty, controlled through a
// provider plugin. Every tool call of the agent passes the gate. An agent whose calls
// cannot pass the gate runs only if Job.Ungated is set. The worktree is saved on a timer while a
// call that may change files runs, or all the time if the gate does not see the calls.
//
// A run succeeds only if the CLI exited with code 0 after a successful result,
// coven sent it no signal, and the gate decided about each tool call that ran. When
// Run returns, no process of the agent is alive.
//
// A person can send messages to a running agent. A message is stored before it is
// sent. The agent's input stays open until every message is acknowledged and a result
// follows the last acknowledgement. The idle limit stops an agent that returns no result.
package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// Runner starts agents.
type Runner struct {
	Launcher *process.Launcher
	Self     []string // argv prefix of coven; the CLI starts coven's MCP bridge with it
	Environ  func() []string
	Version  string
	Sockets  string // directory for sockets; the path must be short
	// Gates is the directory in which processes find the gates of running agents, to ask whether
	// an agent started them. If it is empty, gates are not announced.
	Gates string

	running sync.Map // member: bool
}

// Job is one run of an agent.
type Job struct {
	Agent    string // the agent's name, for messages
	Depth    int    // of the agent; 0 if a person started it
	Provider provider.Provider
	Input
	Place
	Limits
	Record

	Own []tool.Tool // coven's tools that the agent may call
	// More returns further tools. They may change while the agent works, but a CLI keeps those of its start. May be nil.
	More    func() []tool.Tool
	Gate    Gate
	Ungated bool // allow an agent whose calls do not pass the gate
	Host    Host // performs the CLI's requests; may be nil
	// Messages delivers a person's messages to the running agent. It may be nil. It is not
	// read after the agent's last result. A message is accepted when an AgentMessage event
	// with its ID is durable, not when it is read: a message that is read while the agent
	// ends is not accepted, and the sender keeps it.
	//
	// The provider encodes the text, which is not blank, so that the CLI interprets none of it as a command or
	// a file. If the ID is empty, one is generated. A message whose ID was already accepted in this run is
	// dropped. IDs must not be reused in later runs of the conversation.
	Messages <-chan event.Message
	// Excuse returns the message for a process of another agent, at the given depth, that tries to
	// use this agent's tools. May be nil.
	Excuse func(depth int) string
}

// Input is the task of an agent, and its model.
type Input struct {
	Conversation string // ID of the conversation
	Resume       bool   // continue the conversation
	Prompt       string
	System       string // appended to the CLI's system prompt
	Model        string
	Tools        []string // IDs of the granted tools of the CLI; see the provider.Tool constants
}

// Place is where an agent runs, and the access that it has there.
type Place struct {
	Dir      string        // the worktree
	ReadOnly bool          // the agent must not change the worktree
	StateDir string        // the CLI's directory for settings and conversations; if empty, they are not kept
	Room     *sandbox.Room // the CLI's sandbox; nil for none
	Network  []string      // KEY=VALUE settings for network access; they override the user's
	Pass     []string      // additional variables to inherit from the user's environment
	Env      []string      // KEY=VALUE
	// Forward starts the forwarder of an API, see provider.Command. It returns nil if the
	// user's login method cannot be forwarded. If Forward is nil, no API is forwarded.
	Forward func(ctx context.Context, api string) (Forwarder, error)
}

// Limits are the limits that stop an agent.
type Limits struct {
	MaxTurns int           // limit for answers of the model API, including answers to messages; 0 means no limit
	Idle     time.Duration // limit for the time without output
	// SameCall is the number of times in a row that an agent may make the same call, or
	// the same few calls, with the same result before it is stopped. Zero means no limit.
	SameCall int
	// Spend is called with the usage of the run so far, after each answer of the
	// model API. If it returns an error, the agent is stopped before its next request with
	// the kind Budget. The last answer may exceed the budget. May be nil.
	Spend func(used event.Usage) error
	// Limit is called for each request that the API refuses because of a rate limit or an
	// overload. It reports whether the agent must stop. If it is nil, the CLI may wait.
	Limit func(provider.Limit) (stop bool)
	// Fault is called if the API refused the agent's work for another reason that is not the agent's: see FaultOf. It may
	// be nil.
	Fault func(reason, text string)
}

// Record has the outputs of a run: its transcript, its events, its conversation and saved worktrees.
type Record struct {
	Transcript io.Writer // output of the CLI
	// Emit makes an event durable. It must be safe for concurrent use.
	Emit func(t event.Type, data any) error
	// Say receives each part of the conversation.
	Say func(part provider.Event) error
	// Save saves the worktree if it may be changing. It is called on a timer. It may fail a
	// few times because files change while it reads them. If it keeps failing, an agent whose
	// calls do not pass the gate is stopped. May be nil.
	Save func(ctx context.Context) error
}

// Offered returns coven's tools that the agent currently has.
func (j Job) Offered() []tool.Tool {
	if j.More == nil {
		return j.Own
	}
	return append(slices.Clone(j.Own), j.More()...)
}

// Gate decides about the agent's tool calls.
type Gate interface {
	Decide(ctx context.Context, call gate.Call) gate.Verdict
	Decided(id string) bool
	Refused(id string) bool
	Ended(id string)
}

// Forwarder gives the CLI access to an API without a credential.
type Forwarder interface {
	Env() []string              // KEY=VALUE settings for the CLI
	Port() int                  // on this machine's loopback
	Withholds(name string) bool // reports whether the CLI must not inherit the variable
	Close() error
}

// The kinds of failure.
const (
	None        event.ErrorType = ""
	Timeout                     = event.ErrorTimeout     // out of time or idle for too long
	ProcessExit                 = event.ErrorProcessExit // the CLI ended on its own without success
	Limit                       = event.ErrorLimit       // the API refused for a rate limit or overload, or the account cannot be used
	Login                       = event.ErrorLogin       // the API refused the login of the CLI
	Budget                      = event.ErrorBudget      // Job.Spend returned an error
	Stuck                       = event.ErrorStuck       // the agent repeated the same calls
	Turns                       = event.ErrorTurns       // the agent needed more than Job.MaxTurns
	Failed                      = event.ErrorProvider    // the CLI reported failure
	GateLost                    = event.ErrorGateLost    // the connection to coven's permission server was lost
	Ungated                     = event.ErrorPermission  // a tool ran without a decision by the gate
	Internal                    = event.ErrorInternal    // coven could not record or read the run
)

// Report is the result of a run.
type Report struct {
	Kind         event.ErrorType
	Error        string          // one line, empty on success
	Text         string          // the agent's final message
	Said         []string        // the final message of each stretch of work; a message that is answered separately starts a new one
	Started      bool            // the CLI has started, so the conversation exists
	Conversation string          // the CLI's conversation ID; not every CLI uses the ID from coven
	Acknowledged []string        // IDs of messages in the conversation, including messages that coven did not send
	Result       provider.Result // the last result, with the total turns and usage
	Limit        provider.Limit  // the last limit, if Kind is Limit
	Used         event.Usage     // usage of this run, with or without a result; not set by Recall
}

// Run runs the agent until it ends. It returns an error only if the CLI could not be
// started or ctx was cancelled.
func (r *Runner) Run(ctx context.Context, job Job) (Report, error) {
	run := newRun(job)
	r.running.Store(run, true)
	defer r.running.Delete(run)
	listener, err := mcp.Listen(context.WithoutCancel(ctx), mcp.Options{
		Version: r.Version, Dir: r.Sockets, Decider: run.job.Gate, Admit: run.admit, Refused: run.turnedAway,
		Tools: paused(run.gated(job.Offered()), run.process), Excuse: func(pid int) string { return r.excuse(job, pid) }, Member: r.depthOf,
	})
	if err != nil {
		return Report{}, err
	}
	defer listener.Close() //nolint:errcheck // a leftover directory in the runtime directory is harmless
	defer close(run.ended)
	if r.Gates != "" {
		withdraw, err := listener.Announce(r.Gates)
		if err != nil {
			return Report{}, err
		}
		defer withdraw() //nolint:errcheck // the next process that finds it removes it
	}
	at, err := newEnvironment(job.Place, listener.Dir(), listener.Env())
	if err != nil {
		return Report{}, err
	}
	run.request = r.request(job, listener, at)
	command, err := r.command(ctx, job, run.request, listener.Dir())
	if err != nil {
		return Report{}, err
	}
	run.command, run.audit.gated, run.audit.met = command, command.Gated, listener.Connected
	// Output is not recorded after coven decides to stop the agent: a CLI whose shell
	// command was killed may continue and report success.
	record := &transcript{to: job.Transcript, partial: []byte(command.Partial)}
	defer record.end()
	run.stop = sync.OnceFunc(func() {
		record.end()
		run.asks.cancel()
		close(run.stopping)
	})
	if err := at.forward(ctx, command); err != nil {
		return Report{}, err
	}
	defer at.close()
	boundary, err := at.boundary(command)
	if err != nil {
		return Report{}, err
	}
	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		run.interrupt()
		end(context.Cause(ctx))
	})()
	run.child, err = r.Launcher.Start(working, process.Spec{
		Argv: command.Argv, Dir: job.Dir, Env: at.environment(r.Environ(), command), Boundary: boundary,
		Transcript: record, OnStop: run.stop, Idle: job.Idle,
	})
	if err != nil {
		return Report{}, fmt.Errorf("start the agent: %w", err)
	}
	close(run.started)
	report := run.follow(ctx, listener.Lost())
	return report, cmp.Or(context.Cause(ctx), run.noResume)
}

// excuse returns the message for a process that may not use the tools of an agent.
func (r *Runner) excuse(refuser Job, pid int) string {
	if refuser.Excuse == nil {
		return ""
	}
	depth, ok := r.depthOf(pid)
	if !ok {
		return ""
	}
	return refuser.Excuse(depth)
}

type member interface {
	holds(pid int) bool
	depth() int
}

// depthOf returns the depth of the running agent that owns a process.
func (r *Runner) depthOf(pid int) (depth int, ok bool) {
	r.running.Range(func(key, _ any) bool {
		if one := key.(member); one.holds(pid) {
			depth, ok = one.depth(), true
			return false
		}
		return true
	})
	return depth, ok
}

// request returns the provider's request for a job.
func (r *Runner) request(job Job, listener *mcp.Listener, at cliEnvironment) provider.Request {
	return provider.Request{
		Conversation: job.Conversation, Resume: job.Resume, Prompt: job.Prompt, System: job.System,
		Model: job.Model, Tools: job.Tools, Dir: job.Dir, FilesDir: at.files, StateDir: at.state, TempDir: at.temp,
		Gate:     provider.Server{Name: mcp.Name, Argv: slices.Concat(r.Self, []string{"gate"}), Env: listener.Env()},
		GateTool: mcp.ApproveTool,
	}
}

// command gets the command from the provider and writes its files to dir.
func (r *Runner) command(ctx context.Context, job Job, request provider.Request, dir string) (provider.Command, error) {
	command, err := job.Provider.Command(ctx, request)
	switch {
	case err != nil:
		return provider.Command{}, err
	case len(command.Argv) == 0:
		return provider.Command{}, errors.New("the provider plugin returned no command")
	case !command.Gated && !job.Ungated:
		return provider.Command{}, errors.New("the provider's tool calls do not pass coven's gate; coven does not run it without a sandbox")
	}
	for _, f := range command.Files {
		if filepath.Base(f.Name) != f.Name {
			return provider.Command{}, fmt.Errorf("the provider plugin names a file %q outside its directory", f.Name)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Content, 0o600); err != nil {
			return provider.Command{}, fmt.Errorf("write the agent's files: %w", err)
		}
	}
	return command, nil
}
