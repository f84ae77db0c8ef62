package fakeclaude

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/text/shellword"
)

// bash runs a command as the real CLI does: without input and in its own
// session, so that neither signals to the CLI's process group nor its end reach the child.
// When ctx ends, the command's whole process group is killed.
func (f *files) bash(ctx context.Context, c call, input object) outcome {
	log, err := os.CreateTemp("", "fake-claude-*")
	if err != nil {
		return failed(c, err.Error())
	}
	defer func() { _ = errors.Join(log.Close(), os.Remove(log.Name())) }() // a leftover in the temporary directory
	limit := 2 * time.Minute
	if milliseconds := number(input, "timeout"); milliseconds > 0 {
		limit = time.Duration(milliseconds) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	f.commands.Add(1)
	defer f.commands.Add(-1)
	err = f.command(ctx, text(input, "command"), log).Run()
	printed, readErr := os.ReadFile(log.Name())
	if readErr != nil {
		return failed(c, readErr.Error())
	}
	said := strings.TrimRight(string(printed), "\n")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed(c, joinLines("Exit code 143", said, fmt.Sprintf("Command timed out after %s", limit)))
	case ctx.Err() != nil:
		return failed(c, stopText)
	case err != nil:
		return failed(c, joinLines(fmt.Sprintf("Exit code %d", exitCode(err)), said))
	case said == "":
		said = "(Bash completed with no output)"
	}
	no := false
	out := succeeded(c, said)
	out.isError = &no
	return out
}

func (f *files) command(ctx context.Context, text string, log *os.File) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-c", "eval "+shellword.Quote(text)+" < /dev/null") //nolint:gosec // running commands is the point
	command.Dir = f.cwd
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), "CLAUDECODE=1")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	return command
}

// exitCode returns the exit code of a command, or 128 plus the signal if it was killed.
func exitCode(err error) int {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 127
	}
	if status, isStatus := exit.Sys().(syscall.WaitStatus); isStatus && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

func joinLines(lines ...string) string {
	var kept []string
	for _, line := range lines {
		if line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
