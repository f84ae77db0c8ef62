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
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/sandbox"
	"github.com/coven-run/coven/worktree"
)

// The commands that accept running without a sandbox.
const (
	runUnsandboxed    = "coven run --unsandboxed"
	resumeUnsandboxed = "coven resume --unsandboxed"
)

const (
	// sandboxLevelFile holds the sandbox level that the user was last shown.
	sandboxLevelFile = ".coven/run/sandbox-level"
	// unsandboxedFile exists if the user has accepted running without a sandbox.
	unsandboxedFile = ".coven/run/unsandboxed-accepted"
)

// consent serializes questions about a missing sandbox.
type consent struct{ mu sync.Mutex }

// checkSandbox returns an error if there is no sandbox and the user has not accepted this for
// the repository, or if it cannot give programs the network that the user has configured. It may ask the user. next is the command that accepts it.
func (c *Controller) checkSandbox(ctx context.Context, next string) error {
	s := c.Runtime.Sandbox
	if err := s.CheckNetwork(); err != nil {
		return exit.Usagef("coven help sandbox", "%w", err)
	}
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
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // another user of a shared repository may have accepted
		return err
	}
	gap := strings.Join(s.Gaps(), "; ")
	refused := exit.Usagef(next, "there is no sandbox here: %s", gap)
	if c.Unsandboxed == nil {
		return refused
	}
	accepted, err := c.Unsandboxed(ctx, gap)
	if err != nil {
		return err
	}
	if !accepted {
		return refused
	}
	return writeRun(root, unsandboxedFile, "")
}

// AcceptUnsandboxed records that the user accepts running without a sandbox in this repository. It does
// nothing if there is a sandbox.
func (c *Controller) AcceptUnsandboxed() error {
	if c.Runtime.Sandbox.Level() != sandbox.None {
		return nil
	}
	return writeRun(c.Project.Repo.Root, unsandboxedFile, "")
}

// sandboxLine returns a line about the sandbox to show before agents start. It is empty if the user has
// already seen it in this repository.
func (c *Controller) sandboxLine() string {
	s := c.Runtime.Sandbox
	root, level := c.Project.Repo.Root, string(s.Level())
	known, err := regularfile.ReadIn(root, sandboxLevelFile, 1<<10)
	if err == nil && string(known) == level {
		return ""
	}
	_ = writeRun(root, sandboxLevelFile, level) // if this fails, the line is shown again
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
