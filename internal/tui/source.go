package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/coven-run/coven/internal/board"
)

// Repository is the Source of a repository.
type Repository struct{ *board.Repository }

// Story implements Source.
func (r *Repository) Story(c board.Card, live bool) Feed { return r.Repository.Story(c.View, live) }

// Output implements Source.
func (r *Repository) Output(args []string) Feed {
	return func() ([]string, error) {
		text, err := r.Repository.Output(args)
		var lines []string
		if text = strings.TrimRight(text, "\n"); text != "" {
			lines = strings.Split(text, "\n")
		}
		var failed *exec.ExitError
		if err == nil || errors.As(err, &failed) && text != "" { // the text says why
			err = io.EOF
		}
		return lines, err
	}
}

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
	h.wait()
	return err
}

// wait waits for Enter. A lost terminal ends the screen, so errors do not matter.
func (h *held) wait() {
	if in, ok := h.in.(*os.File); ok {
		if mode, err := term.MakeRaw(int(in.Fd())); err == nil {
			defer term.Restore(int(in.Fd()), mode) //nolint:errcheck // as above
		}
	}
	_, _ = tea.NewProgram(enter{}, tea.WithInput(h.in), tea.WithOutput(io.Discard), tea.WithoutRenderer(), tea.WithoutSignalHandler()).Run()
}

// enter waits for Enter, or a key that leaves. It decodes the keys of all terminals.
type enter struct{}

// Init implements tea.Model.
func (enter) Init() tea.Cmd { return nil }

// View implements tea.Model.
func (enter) View() tea.View { return tea.View{} }

// Update implements tea.Model.
func (e enter) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if key, ok := msg.(tea.KeyPressMsg); ok && slices.Contains([]string{"enter", "q", "esc", "ctrl+c"}, key.String()) {
		return e, tea.Quit
	}
	return e, nil
}
