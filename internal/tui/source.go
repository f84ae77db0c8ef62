package tui

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coven-run/coven/internal/board"
)

// Repository is the Source of a repository.
type Repository struct{ *board.Repository }

// Inside implements Source.
func (r *Repository) Inside(args []string) tea.ExecCommand {
	return &held{cmd: r.command(r.Program, args...), title: "coven " + strings.Join(args, " ")}
}

// Shell implements Source.
func (r *Repository) Shell(dir string) tea.ExecCommand {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	cmd := r.command(shell)
	cmd.Dir = dir
	return &held{cmd: cmd}
}

func (r *Repository) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.Context, name, args...)
	cmd.Dir = r.Dir
	return cmd
}

// held is a command on the terminal. If it has a title, its output stays until Enter is pressed.
type held struct {
	cmd   *exec.Cmd
	title string
	in    io.Reader
	out   io.Writer
}

// SetStdin implements tea.ExecCommand.
func (h *held) SetStdin(in io.Reader) { h.in, h.cmd.Stdin = in, in }

// SetStdout implements tea.ExecCommand.
func (h *held) SetStdout(out io.Writer) { h.out, h.cmd.Stdout = out, out }

// SetStderr implements tea.ExecCommand.
func (h *held) SetStderr(out io.Writer) { h.cmd.Stderr = out }

// Run implements tea.ExecCommand.
func (h *held) Run() error {
	if h.title == "" {
		return h.cmd.Run()
	}
	_, _ = fmt.Fprintf(h.out, "$ %s\n", printable(h.title)) // a lost terminal ends the screen
	err := h.cmd.Run()
	_, _ = fmt.Fprint(h.out, "\nEnter: back to the screen ")
	_, _ = bufio.NewReader(h.in).ReadString('\n')
	return err
}
