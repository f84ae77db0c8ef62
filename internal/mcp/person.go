package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/file/regularfile"
)

// GatesDir has a file for each running agent, which names the socket of its gate.
const GatesDir = ".coven/run/gates"

// AgentError means that an agent of this repository started a command that only a person may use.
type AgentError struct{ Depth int }

// Error implements error.
func (e *AgentError) Error() string {
	return "an agent that coven runs started this command, and only a person may"
}

// CommandExit returns exit.Failed.
func (e *AgentError) CommandExit() int { return exit.Failed }

// ByPerson returns an *AgentError if a running agent of the repository started this process. It
// asks each running coven, which knows its own processes: no variable changes the answer. In case
// of doubt it returns an error, too.
func ByPerson(root string) error {
	if err := regularfile.Directory(root, GatesDir); err != nil {
		return err
	}
	dir := filepath.Join(root, GatesDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find the agents that run: %w", err)
	}
	for _, entry := range entries {
		if err := notIn(dir, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

// notIn returns an error if the agent whose gate a file names started this process, or may have.
func notIn(dir, name string) error {
	socket, err := regularfile.ReadIn(dir, name, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("find the agents that run: %w", err)
	}
	if len(socket) == 0 { // the agent is about to start
		return nil
	}
	depth, member, err := Member(strings.TrimSpace(string(socket)))
	switch {
	case errors.Is(err, ErrNoGate): // a killed coven left it
		_ = os.Remove(filepath.Join(dir, name))
		return nil
	case err != nil:
		return err
	case member:
		return &AgentError{Depth: depth}
	}
	return nil
}
