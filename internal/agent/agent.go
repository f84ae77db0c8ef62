// Package agent runs one agent: one process of an agent CLI under a pty, driven
// by a provider plugin, every tool call of it through the gate. An agent whose
// calls cannot pass the gate runs only where Job.Ungated says so: then its worktree
// is stored on a timer instead.
//
// Rules. The run counts as a success only when the CLI ended with exit code 0
// after it gave a result that is no error, coven sent it no signal, and each
// tool that ran had been asked about. When Run returns, no process of the agent
// is alive.
//
// A person may say something to an agent at work. Such a message is on disk
// before the agent is told, and the agent's input stays open until a result has
// come after the agent took each of them into its conversation: an agent that
// gives none is ended by its idle limit, like any other.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/provider"
)

// Runner starts agents.
type Runner struct {
	Launcher *process.Launcher
	Self     []string // argv prefix of coven itself: how the CLI starts coven's MCP bridge
	Environ  func() []string
	Version  string
	Sockets  string // the directory of sockets: a short path
}

// Job is one run of an agent.
type Job struct {
	Provider     provider.Provider
	Conversation string // id of the conversation
	Resume       bool   // go on with it
	Prompt       string
	System       string // added to the CLI's own system prompt
	Model        string
	Tools        []string
	Dir          string   // the worktree
	Pass         []string // more names to hand on from the user's environment
	Env          []string // KEY=VALUE, set for the agent
	Idle         time.Duration
	Gate         Gate
	// Ungated stores the worktree, if it has changed, while an agent works whose
	// calls do not pass the gate; its error stops the agent. nil: no such agent is
	// started.
	Ungated    func(ctx context.Context) error
	Transcript io.Writer
	// Messages is what a person says while the agent works; nil is nobody. After
	// the agent's last result nothing is read from it any more. A message is
	// taken when an AgentMessage event with its ID is durable, not when it was
	// read: one that is read when the agent comes to its end is not taken, and
	// stays with its sender.
	Messages <-chan Message
	// Spend is told what the run used so far, at the end of each answer of the model
	// API. Its error stops the agent before it asks for another: see Budget. An
	// answer after which the agent is done is let be. nil: there is no budget.
	Spend func(used event.Usage) error
	// Limit is told of each refusal of the API for a rate limit or an overload, and
	// reports whether the agent must stop. nil: it never is; the CLI may wait.
	Limit func(provider.Limit) (stop bool)
	// SameCall is how often in a row an agent may make the same call, or the same
	// few calls, with the same result: then it is stopped. 0: as often as it likes.
	SameCall int
	// Emit makes an event durable. Called from several goroutines.
	Emit func(t event.Type, data any) error
	// Say takes each part of the conversation as it comes.
	Say func(part provider.Event) error
}

// Message is what a person says to an agent at work. It may say anything: the
// provider sees to it that the CLI takes nothing in it for a command or a file.
type Message struct {
	// ID is a UUID; empty: one is made. A second message with an ID that was
	// taken in this run is dropped, and none may have one of an earlier run of
	// the conversation.
	ID   string
	Text string // not blank
	By   string // a person's name
}

// Gate decides about the agent's tool calls.
type Gate interface {
	Decide(ctx context.Context, call gate.Call) gate.Verdict
	Decided(id string) bool
	Refused(id string) bool
}

// The kinds of failure.
const (
	None        event.ErrorType = ""
	Timeout                     = event.ErrorTimeout     // out of time, or silent for too long
	ProcessExit                 = event.ErrorProcessExit // the CLI ended on its own without success
	Limit                       = event.ErrorLimit       // the API refused for a rate limit or overload
	Budget                      = event.ErrorBudget      // Job.Spend said so
	Stuck                       = event.ErrorStuck       // it made the same calls over and over
	Failed                      = event.ErrorProvider    // the CLI says that it failed
	GateLost                    = event.ErrorGateLost    // coven's permission server went away
	Ungated                     = event.ErrorPermission  // a tool ran that nobody was asked about
	Internal                    = event.ErrorInternal    // coven could not record or read the run
)

// Report is how a run went.
type Report struct {
	Kind         event.ErrorType
	Error        string          // one line, empty on success
	Text         string          // the agent's final message
	Said         []string        // the final message of each stretch of work: one more for each message of a person that was answered by itself
	Started      bool            // the CLI told of itself: its conversation exists
	Conversation string          // what the CLI calls its conversation: not every CLI takes the id that coven chose
	Heard        []string        // ids of messages that are in the conversation, and of others that coven did not send
	Result       provider.Result // the last one, with the turns and the usage of all
	Limit        provider.Limit  // what was said of the last limit, when Kind is Limit
	Used         event.Usage     // by this run, whether it gave a result or not; not after Recall
}

// Run runs the agent to its end. The error is coven's own: the CLI could not be
// started, or ctx was cancelled.
func (r *Runner) Run(ctx context.Context, job Job) (Report, error) {
	run := newRun(job)
	listener, err := mcp.Listen(context.WithoutCancel(ctx), mcp.Options{
		Version: r.Version, Dir: r.Sockets, Decider: run.job.Gate, Admit: run.admit, Refused: run.turnedAway,
	})
	if err != nil {
		return Report{}, err
	}
	defer listener.Close() //nolint:errcheck // a leftover directory in the runtime directory harms nobody
	defer close(run.ended)
	command, err := r.command(ctx, job, listener)
	if err != nil {
		return Report{}, err
	}
	run.command, run.met = command, listener.Met
	// What an agent says after coven decided to stop it is no part of its
	// record: a CLI whose shell command is ended under it may go on and claim
	// success.
	record := &transcript{to: job.Transcript, partial: []byte(command.Partial)}
	defer record.end()
	stop := func() {
		record.end()
		close(run.stopping)
	}
	run.child, err = r.Launcher.Start(ctx, process.Spec{
		Argv: command.Argv, Dir: job.Dir, Env: r.environment(job, command),
		Transcript: record, OnStop: stop, Idle: job.Idle,
	})
	if err != nil {
		return Report{}, fmt.Errorf("start the agent: %w", err)
	}
	close(run.started)
	report := run.follow(ctx, listener.Lost())
	return report, context.Cause(ctx)
}

// command asks the provider how to start, and writes the files that it needs.
func (r *Runner) command(ctx context.Context, job Job, listener *mcp.Listener) (provider.Command, error) {
	command, err := job.Provider.Command(ctx, provider.Request{
		Conversation: job.Conversation, Resume: job.Resume, Prompt: job.Prompt, System: job.System,
		Model: job.Model, Tools: job.Tools, FilesDir: listener.Dir(),
		Gate:     provider.Server{Name: mcp.Name, Argv: slices.Concat(r.Self, []string{"gate"}), Env: listener.Env()},
		GateTool: mcp.ApproveTool,
	})
	switch {
	case err != nil:
		return provider.Command{}, err
	case len(command.Argv) == 0:
		return provider.Command{}, errors.New("the provider plugin returned no command")
	case !command.Gated && job.Ungated == nil:
		return provider.Command{}, errors.New("the provider's tool calls do not pass coven's gate; coven does not run it without a sandbox")
	}
	for _, f := range command.Files {
		if filepath.Base(f.Name) != f.Name {
			return provider.Command{}, fmt.Errorf("the provider plugin names a file %q outside its directory", f.Name)
		}
		if err := os.WriteFile(filepath.Join(listener.Dir(), f.Name), f.Content, 0o600); err != nil {
			return provider.Command{}, fmt.Errorf("write the agent's files: %w", err)
		}
	}
	return command, nil
}

func (r *Runner) environment(job Job, command provider.Command) []string {
	env := Environment(r.Environ(), slices.Concat(job.Pass, command.Pass))
	env = append(env, command.Env...)
	return append(env, job.Env...)
}
