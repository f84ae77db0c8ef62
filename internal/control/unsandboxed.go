package control

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/regularfile"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/worktree"
)

// UnsandboxedError reports that this machine has no sandbox, and that the user has not accepted
// that for the repository. Nothing was claimed.
type UnsandboxedError struct {
	Gap  string
	Next string // the command that accepts it
}

// Error implements error.
func (e *UnsandboxedError) Error() string { return "there is no sandbox here: " + e.Gap }

// CommandExit returns exit.Usage.
func (e *UnsandboxedError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that accepts it.
func (e *UnsandboxedError) NextCommand() string { return e.Next }

// The commands that accept a machine without a sandbox.
const (
	runUnsandboxed    = "coven run --unsandboxed"
	resumeUnsandboxed = "coven resume --unsandboxed"
)

const (
	// sandboxLevelFile holds the level that the user has read about.
	sandboxLevelFile = ".coven/run/sandbox-level"
	// unsandboxedFile exists if the user has accepted that there is no sandbox.
	unsandboxedFile = ".coven/run/unsandboxed-accepted"
)

// consent serializes questions about a missing sandbox.
type consent struct{ mu sync.Mutex }

// checkSandbox returns an *UnsandboxedError if there is no sandbox and the user has not accepted
// that for this repository. It may ask. next is the command that accepts it.
func (c *Controller) checkSandbox(ctx context.Context, next string) error {
	s := c.Runtime.Sandbox
	if s.Level() != sandbox.None {
		return nil
	}
	c.Runtime.consent.mu.Lock()
	defer c.Runtime.consent.mu.Unlock()
	root := c.Project.Repo.Root
	_, err := regularfile.ReadIn(root, unsandboxedFile, 1<<10)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	refused := &UnsandboxedError{Gap: strings.Join(s.Gaps(), "; "), Next: next}
	if c.Unsandboxed == nil {
		return refused
	}
	accepted, err := c.Unsandboxed(ctx, refused.Gap)
	if err != nil {
		return err
	}
	if !accepted {
		return refused
	}
	return writeRun(root, unsandboxedFile, "")
}

// AcceptUnsandboxed records that the user accepts for this repository that there is no sandbox,
// if there is none.
func (c *Controller) AcceptUnsandboxed() error {
	if c.Runtime.Sandbox.Level() != sandbox.None {
		return nil
	}
	return writeRun(c.Project.Repo.Root, unsandboxedFile, "")
}

// sandboxLine returns what the user should know about the sandbox before agents start; empty:
// the user has read it for this repository.
func (c *Controller) sandboxLine() string {
	s := c.Runtime.Sandbox
	root, level := c.Project.Repo.Root, string(s.Level())
	known, err := regularfile.ReadIn(root, sandboxLevelFile, 1<<10)
	if err == nil && string(known) == level {
		return ""
	}
	_ = writeRun(root, sandboxLevelFile, level) // the line appears again
	switch s.Level() {
	case sandbox.Full:
		return "sandbox: tasks can change only their own worktrees (coven help sandbox)"
	case sandbox.Partial:
		return "warning: the sandbox is partial: " + s.Gaps()[0] + " (coven doctor)"
	}
	return "warning: shell commands are not sandboxed; agents can run anything you can"
}

// writeRun writes a file below .coven/run.
func writeRun(root, name, text string) error {
	if err := errors.Join(regularfile.Directory(root, filepath.Dir(name)), worktree.EnsureCovenDir(root)); err != nil {
		return err
	}
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return regularfile.Replace(file, []byte(text), 0o600)
}
