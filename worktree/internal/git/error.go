package git

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/ending"
	"github.com/coven-run/coven/internal/text/shellword"
)

// An Error is a git run that failed.
type Error struct {
	Args     []string // without the program and its global options
	ExitCode int      // -1 if git did not start or was killed
	Stderr   string   // complete
	Err      error    // the cause, or the context's error if that ended git
}

// Error returns the subcommand and git's message, or the reason why git ended without a message.
func (e *Error) Error() string {
	name := "git"
	if len(e.Args) > 0 {
		name += " " + e.Args[0]
	}
	if said := ending.Of(e.Stderr); said != "" {
		said = strings.TrimPrefix(said, "fatal: ")
		if _, ended := errors.AsType[*exec.ExitError](e.Err); ended {
			return fmt.Sprintf("%s: %s", name, said)
		}
		return fmt.Sprintf("%s: %v: %s", name, e.Err, said)
	}
	if e.ExitCode > 0 {
		return fmt.Sprintf("%s ended with exit code %d", name, e.ExitCode)
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// A ListTimeoutError means that git was stopped because it took too long to list files.
type ListTimeoutError struct {
	Dir   string // git's working directory
	Limit time.Duration
}

// Error names the directory and the likely reason.
func (e *ListTimeoutError) Error() string {
	return fmt.Sprintf("listing the files in %s took longer than %v: git can take hours for ignore rules with several **/", e.Dir, e.Limit)
}

// NextCommand returns the command that finds such rules.
func (e *ListTimeoutError) NextCommand() string {
	return "find " + shellword.Word(e.Dir) + ` -name .gitignore -exec grep -Hn '\*\*/.*\*\*/' {} +`
}

// ExitCode returns the exit code in err: 0 for nil, -1 if git did not run.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.ExitCode
	}
	return -1
}

func failure(ctx context.Context, args []string, stderr string, err error) error {
	if err == nil {
		return nil
	}
	code := -1
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exited.ExitCode()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &Error{Args: args, ExitCode: code, Stderr: stderr, Err: err}
}
