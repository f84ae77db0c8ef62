// Package hostservice is what coven does for a reviewer or an arbiter at work: run an
// agent, show the change, read a file, take a line for the log.
//
// They hold for the one call that the plugin is answering and for that task's
// worktree, and end with it.
package hostservice

import "context"

// Services is coven, as a plugin at work sees it. Its methods may be called at
// the same time.
type Services interface {
	// RunAgent has an agent answer a prompt, with the user's own account: a plugin
	// needs no credentials. The agent can read the worktree and nothing more. What
	// it uses is charged to the step; when a budget is spent, ctx of the call ends.
	RunAgent(ctx context.Context, ask Ask) (Answer, error)
	// Diff is the change of some files, or of all when none is named: unified, and
	// not cut as that of the call may be. It is pluginerr.ErrTooLarge above 32 MiB.
	Diff(ctx context.Context, paths ...string) (string, error)
	// ReadFile reads a file of the worktree, named relative to it with slashes:
	// fs.ErrPermission outside of it (links that lead out among them),
	// fs.ErrNotExist, pluginerr.ErrTooLarge above 32 MiB.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// Log puts a line into the log of the step, which people read.
	Log(ctx context.Context, text string) error
}

// Ask is what an agent is asked.
type Ask struct {
	Prompt       string
	Model        string // alias or full ID; empty: that of the run
	Conversation string // that of an earlier answer in this call, to go on with; empty: a new one
}

// Answer is what an agent said.
type Answer struct {
	Text         string // its final message
	Conversation string // for Ask
}

// MaxBytes is the largest file or diff that a plugin is given, in bytes.
const MaxBytes = 32 << 20
