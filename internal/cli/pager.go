package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// defaultPager ends by itself if the text fits the screen.
const defaultPager = "less -FRX"

// The exit codes of a shell that could not start a command.
const (
	notExecutable = 126
	notFound      = 127
)

// pagerGrace limits how long a pager or an editor may take to restore the terminal after a TERM.
const pagerGrace = 2 * time.Second

// signalTime limits the delay until the Ctrl-C that ended a program on the terminal arrives here.
const signalTime = 250 * time.Millisecond

// Color reports whether output may be colored: it goes to a terminal that can show colors,
// and NO_COLOR is not set.
func (a *App) Color() bool {
	return a.Terminal && a.Getenv("NO_COLOR") == "" && !a.Dumb()
}

// Dumb reports whether the terminal can only print lines.
func (a *App) Dumb() bool { return a.Getenv("TERM") == "dumb" }

// pager returns the user's pager. It is empty if $PAGER is set to the empty string, which means no pager,
// as in git.
func (a *App) pager() string {
	for _, variable := range a.Environ() {
		if value, ok := strings.CutPrefix(variable, "PAGER="); ok {
			return strings.TrimSpace(value)
		}
	}
	return defaultPager
}

// Page prints a long text, on a terminal in the user's pager. While the pager runs, it gets each Ctrl-C.
func (a *App) Page(ctx context.Context, text string) error {
	pager := a.pager()
	if !a.Interactive || a.Dumb() || pager == "" || pager == "cat" {
		return a.Printf("%s", text)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(a.hidden(text)), os.Stdout, a.Err
	cmd.Env = a.Environ()
	if a.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	err := a.onTerminal(cmd)
	var ended *exec.ExitError
	shown := err == nil || errors.Is(err, exec.ErrWaitDelay) || // its child still reads
		errors.As(err, &ended) && ended.ExitCode() != notFound && ended.ExitCode() != notExecutable
	switch cause := context.Cause(ctx); {
	case cause != nil:
		return cause
	case shown:
		return nil
	}
	return a.Printf("%s", text)
}

// onTerminal runs a program that uses the terminal and gets each Ctrl-C.
func (a *App) onTerminal(cmd *exec.Cmd) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = pagerGrace
	a.paging.Add(1)
	restore := a.Keyboard.Lend()
	err := cmd.Run()
	restore()
	if err == nil {
		a.paging.Add(-1)
	} else {
		a.endPaging()
	}
	return err
}

// endPaging ends the time in which a program gets each Ctrl-C, once the one that may have ended it has arrived here.
func (a *App) endPaging() { time.AfterFunc(signalTime, func() { a.paging.Add(-1) }) }
