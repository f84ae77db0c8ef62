// Package hostservice defines the services that coven offers to a reviewer or an
// arbiter during a call: run an agent, return the diff, read a file, write to the log.
//
// The services are bound to one call and to the worktree of its task. They end with the
// call.
package hostservice

import "context"

// Services is the host as seen by a plugin that handles a call. It is safe for
// concurrent use.
type Services interface {
	// RunAgent sends a prompt to an agent that runs under the user's own account, so a
	// plugin needs no credentials. The agent can only read the worktree. Its usage is
	// charged to the step; when a budget runs out, the context of the call is canceled.
	RunAgent(ctx context.Context, ask Ask) (Answer, error)
	// Diff returns the unified diff of the named files, or of all files. Unlike the diff of the call it is
	// never truncated. It returns pluginerr.ErrTooLarge above 32 MiB.
	Diff(ctx context.Context, paths ...string) (string, error)
	// ReadFile reads a file of the worktree. The path is relative to the worktree and
	// uses slashes. The error is fs.ErrPermission for a path outside the worktree (also
	// through a symbolic link), fs.ErrNotExist, or pluginerr.ErrTooLarge above 32 MiB.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// Log writes a line to the log of the step.
	Log(ctx context.Context, text string) error
}

// Ask is a request to an agent.
type Ask struct {
	Prompt       string
	Model        string // alias or full ID; defaults to the model of Agent, or of the run
	Conversation string // ID from an earlier answer in this call; empty for a new conversation
	// Agent optionally names an agent definition whose prompt and model are used. The agent can only read,
	// even if the definition grants more. An unknown name is pluginerr.ErrInvalid.
	Agent string
}

// Answer is the reply of an agent.
type Answer struct {
	Text         string // its final message
	Conversation string // to continue the conversation in a later Ask
}

// MaxBytes is the size limit of a file or diff, in bytes.
const MaxBytes = 32 << 20
