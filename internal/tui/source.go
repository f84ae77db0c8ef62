package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/fsnotify/fsnotify"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
)

// Repository is the Source of a repository.
type Repository struct {
	Context context.Context //nolint:containedctx // of the screen
	Project *project.Project
	Program string // path of coven
	Dir     string // working directory of its commands
	Clock   func() time.Time

	watcher *fsnotify.Watcher
}

// Watch begins to watch the records. Close ends it.
func (r *Repository) Watch() (err error) {
	if r.watcher, err = fsnotify.NewWatcher(); err != nil {
		return fmt.Errorf("watch the sessions: %w", err)
	}
	r.watchNew()
	return nil
}

// Close ends the watch.
func (r *Repository) Close() error { return r.watcher.Close() }

// watchNew watches the directories that did not exist before. Watching one twice does nothing.
func (r *Repository) watchNew() {
	root := r.Project.Repo.Root
	dirs := []string{filepath.Join(root, ".coven"), filepath.Join(root, session.Dir), filepath.Join(root, ".beads")}
	ids, _ := session.IDs(root) // without sessions there is nothing to watch
	for _, id := range ids {
		dirs = append(dirs, filepath.Join(root, session.Dir, id))
	}
	for _, dir := range dirs {
		_ = r.watcher.Add(dir) // it may be gone, or appear later
	}
}

// settle is the time in which further changes belong to the first one.
const settle = 50 * time.Millisecond

// Changed implements Source.
func (r *Repository) Changed() error {
	select {
	case _, open := <-r.watcher.Events:
		if !open {
			return context.Canceled
		}
	case err := <-r.watcher.Errors: // such as too many changes to name each
		if err == nil {
			return context.Canceled
		}
	}
	for timer := time.NewTimer(settle); ; {
		select {
		case <-r.watcher.Events:
		case <-timer.C:
			r.watchNew()
			return nil
		}
	}
}

// Cards implements Source.
func (r *Repository) Cards() ([]board.Card, error) { return board.Of(r.Context, r.Project, r.Clock()) }

// Now implements Source.
func (r *Repository) Now() time.Time { return r.Clock() }

// maxOutput limits the end of an output that is shown.
const maxOutput = 4 << 10

// Start implements Source. The command has a session of its own, so that it outlives the screen, and no terminal.
func (r *Repository) Start(args []string) (func() (string, error), error) {
	output, err := os.CreateTemp("", "coven-screen-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(output.Name()); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	cmd := exec.Command(r.Program, args...) //nolint:gosec,noctx // it must outlive the screen
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = r.Dir, output, output, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	return func() (string, error) {
		err := cmd.Wait()
		info, statErr := output.Stat()
		if statErr != nil {
			return "", errors.Join(err, statErr)
		}
		end, readErr := io.ReadAll(io.NewSectionReader(output, max(info.Size()-maxOutput, 0), maxOutput))
		return string(end), errors.Join(err, readErr, output.Close())
	}, nil
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
	_, _ = bufio.NewReader(h.in).ReadString('\n')
	return err
}
