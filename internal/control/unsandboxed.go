package control

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/control/consent"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/sandbox"
)

// The commands that accept running without a sandbox.
const (
	runUnsandboxed    = "coven run --unsandboxed"
	resumeUnsandboxed = "coven resume --unsandboxed"
)

const (
	// sandboxLevelFile holds the sandbox level that the user was last shown.
	sandboxLevelFile = "sandbox-level"
	// unsandboxedFile exists if the user has accepted running without a sandbox.
	unsandboxedFile = "unsandboxed-accepted"
)

// questions serializes the questions to a person about a repository.
type questions struct{ mu sync.Mutex }

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
	c.Runtime.questions.mu.Lock()
	defer c.Runtime.questions.mu.Unlock()
	root := c.Project.Repo.Root
	if _, given, err := consent.Read(root, unsandboxedFile); given || err != nil && !errors.Is(err, fs.ErrPermission) { // another user of a shared repository may have accepted
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
	return consent.Record(root, unsandboxedFile, "")
}

// AcceptUnsandboxed records that the user accepts running without a sandbox in this repository. It does
// nothing if there is a sandbox.
func (c *Controller) AcceptUnsandboxed() error {
	if c.Runtime.Sandbox.Level() != sandbox.None {
		return nil
	}
	return consent.Record(c.Project.Repo.Root, unsandboxedFile, "")
}

// sandboxLine returns a line about the sandbox to show before agents start. It is empty if the user has
// already seen it in this repository.
func (c *Controller) sandboxLine() string {
	s := c.Runtime.Sandbox
	root, level := c.Project.Repo.Root, string(s.Level())
	if known, _, _ := consent.Read(root, sandboxLevelFile); known == level {
		return ""
	}
	_ = consent.Record(root, sandboxLevelFile, level) // if this fails, the line is shown again
	switch s.Level() {
	case sandbox.Full:
		return "sandbox: tasks can change only their own worktrees (coven help sandbox)"
	case sandbox.Partial:
		return "warning: the sandbox is partial: " + s.Gaps()[0] + " (coven doctor)"
	}
	return "warning: shell commands are not sandboxed; agents can run anything you can"
}
