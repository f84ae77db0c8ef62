package consent

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/sandbox"
)

const (
	// levelFile holds the sandbox level that the user was last shown.
	levelFile = "sandbox-level"
	// unsandboxedFile exists if the user has accepted running without a sandbox.
	unsandboxedFile = "unsandboxed-accepted"
)

// Sandbox asks about a missing sandbox.
type Sandbox struct {
	Root string // the project
	Of   *sandbox.Sandbox

	mu sync.Mutex // one question at a time
}

// Check returns an error if there is no sandbox and the user has not accepted this for the repository, or if it cannot
// give programs the network that the user has configured. It may ask the user, unless ask is nil. next is the command that accepts it.
func (s *Sandbox) Check(ctx context.Context, next string, ask func(ctx context.Context, gap string) (bool, error)) error {
	if err := s.Of.CheckNetwork(); err != nil {
		return exit.Usagef("coven help sandbox", "%w", err)
	}
	if s.Of.Level() != sandbox.None {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, given, err := Read(s.Root, unsandboxedFile); given || err != nil && !errors.Is(err, fs.ErrPermission) { // another user of a shared repository may have accepted
		return err
	}
	gap := strings.Join(s.Of.Gaps(), "; ")
	refused := exit.Usagef(next, "there is no sandbox here: %s", gap)
	if ask == nil {
		return refused
	}
	accepted, err := ask(ctx, gap)
	if err != nil {
		return err
	}
	if !accepted {
		return refused
	}
	return Record(s.Root, unsandboxedFile, "")
}

// Given reports whether programs of a task may run here without asking: there is a sandbox, or the user has accepted that there is none.
func (s *Sandbox) Given() bool {
	if s.Of.Level() != sandbox.None {
		return true
	}
	_, given, err := Read(s.Root, unsandboxedFile)
	return given && err == nil
}

// Accept records that the user accepts running without a sandbox in this repository. It does nothing if there is a sandbox.
func (s *Sandbox) Accept() error {
	if s.Of.Level() != sandbox.None {
		return nil
	}
	return Record(s.Root, unsandboxedFile, "")
}

// Line returns a line about the sandbox to show before agents start. It is empty if the user has already seen it in this
// repository.
func (s *Sandbox) Line() string {
	level := string(s.Of.Level())
	if known, _, _ := Read(s.Root, levelFile); known == level {
		return ""
	}
	_ = Record(s.Root, levelFile, level) // if this fails, the line is shown again
	switch s.Of.Level() {
	case sandbox.Full:
		return "sandbox: tasks can change only their own worktrees (coven help sandbox)"
	case sandbox.Partial:
		return "warning: the sandbox is partial: " + s.Of.Gaps()[0] + " (coven doctor)"
	}
	return "warning: shell commands are not sandboxed; agents can run anything you can"
}
