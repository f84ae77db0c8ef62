package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/shellword"
)

const (
	timeLimit  = 60 * time.Second
	pipesLimit = 5 * time.Second // wait for a daemon that keeps the output open
	maxOutput  = 64 << 20        // bytes of standard output; more is an error
	maxNoise   = 64 << 10        // bytes of standard error that are kept
	maxText    = 64 << 10        // bytes of a text in an argument
	perCall    = 100             // IDs per command
)

var (
	errTimeout = errors.New("it timed out and was stopped")
	errTooMuch = errors.New("it printed more than 64 MiB")

	missing   = lazyregexp.New(`(?i)no issues? found|issue\b.*\bnot found|ISSUE_NOT_FOUND`)
	unknown   = lazyregexp.New(`(?i)unknown (shorthand )?flag|unexpected argument|unrecognized option`)
	claimed   = lazyregexp.New(`already claimed by (.+)`)
	invalid   = lazyregexp.New(`(?i)validation failed|invalid (issue )?type`)
	forceable = lazyregexp.New(`--force|blocked by|open child`)
)

// output is the output of a successful run of the program.
type output struct {
	program string
	args    []string
	stdout  []byte
}

// change runs a command that writes.
func (c *CLI) change(ctx context.Context, args ...string) (*output, error) {
	failpoint.Point("task.before.program")
	out, err := c.run(ctx, args...)
	failpoint.Point("task.after.program")
	return out, err
}

// run runs the program once, when its version is one that coven uses.
func (c *CLI) run(ctx context.Context, args ...string) (*output, error) {
	release, err := c.acquire(ctx, args[0])
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.checkVersion(ctx); err != nil {
		return nil, err
	}
	return c.execute(ctx, args...)
}

// acquire waits until no other command of the program runs.
func (c *CLI) acquire(ctx context.Context, command string) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s %s: %w", c.kind, command, ctx.Err())
	}
}

// execute runs the program. Its standard input is empty. Its process group is killed when ctx is done or the time limit has
// passed. The caller has acquired its turn.
func (c *CLI) execute(ctx context.Context, args ...string) (*output, error) {
	limited, cancel := context.WithTimeoutCause(ctx, c.limit, errTimeout)
	defer cancel()
	cmd := exec.CommandContext(limited, c.program, args...)
	cmd.Dir, cmd.Env = c.dir, c.environ
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipesLimit
	stdout, stderr := &capped{max: maxOutput, err: errTooMuch}, &capped{max: maxNoise}
	short := &shortener{to: stdout}
	cmd.Stdout, cmd.Stderr = short, stderr
	err := errors.Join(cmd.Run(), short.flush())
	if errors.Is(err, exec.ErrWaitDelay) && cmd.ProcessState.Success() {
		err = nil
	}
	switch {
	case err == nil:
		return &output{c.kind, args, stdout.kept.Bytes()}, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s %s: %w", c.kind, args[0], ctx.Err())
	}
	failed := &ProgramError{Program: c.kind, Args: args, ExitCode: -1}
	switch exit := (*exec.ExitError)(nil); {
	case stdout.full:
		failed.cause = errTooMuch
	case limited.Err() != nil:
		failed.cause = context.Cause(limited)
	case errors.As(err, &exit):
		failed.ExitCode, failed.Message = exit.ExitCode(), complaint(stdout.kept.Bytes(), stderr.kept.Bytes())
	default:
		failed.cause = err
	}
	return nil, failed
}

// capped keeps the first bytes written to it. It drops the rest, or rejects it with
// err.
type capped struct {
	kept bytes.Buffer
	max  int
	err  error
	full bool
}

func (b *capped) Write(p []byte) (int, error) {
	room := b.max - b.kept.Len()
	if len(p) <= room {
		return b.kept.Write(p)
	}
	b.full = true
	if b.err != nil {
		return 0, b.err
	}
	b.kept.Write(p[:room])
	return len(p), nil
}

// ProgramError reports that the tracker's program failed.
type ProgramError struct {
	Program  string   // bd or br
	Args     []string // without the program
	ExitCode int      // -1 if it was killed
	Message  string   // its output in one line; may be empty

	cause error // why the exit code is missing or the output is unusable
}

func (e *ProgramError) Error() string {
	text := e.command() + ": "
	switch {
	case e.cause != nil && e.Message != "":
		text += e.cause.Error() + ": " + e.Message
	case e.cause != nil:
		text += e.cause.Error()
	case e.Message != "":
		text += e.Message
	default:
		text += fmt.Sprintf("exit code %d without output", e.ExitCode)
	}
	if next := e.next(); next != "" {
		text += "; " + next
	}
	return text
}

func (e *ProgramError) Unwrap() error { return e.cause }

// command returns the command line for messages, quoted and with long texts truncated.
func (e *ProgramError) command() string {
	words := []string{e.Program}
	for _, arg := range e.Args {
		if r := []rune(arg); len(r) > 60 {
			arg = string(r[:60]) + "..."
		}
		words = append(words, shellword.Word(arg))
	}
	return strings.ReplaceAll(strings.Join(words, " "), "\n", " ")
}

var (
	noDatabase = lazyregexp.New(`(?i)no beads database|not initialized`)
	skew       = lazyregexp.New(`(?i)schema.*(skew|newer|ahead|drift)|newer.*schema`)
	readonly   = lazyregexp.New(`(?i)read-?only`)
)

// next returns the next step for the user, or "".
func (e *ProgramError) next() string {
	switch {
	case noDatabase.MatchString(e.Message) && e.Program == BD:
		return "create one: bd init (in a fresh clone: bd bootstrap); or store the tasks without it: set tracker: jsonl, then run coven task add"
	case noDatabase.MatchString(e.Message):
		return "create one: " + e.Program + " init; or store the tasks without it: set tracker: jsonl, then run coven task add"
	case skew.MatchString(e.Message):
		return "the database was written by a newer " + e.Program + ": upgrade yours: " + installs[e.Program]
	case errors.Is(e.cause, errTimeout):
		return "run it by hand to find out why it hangs; its changes are unknown"
	case errors.Is(e.cause, errNotJSON):
		return "run it by hand; a " + e.Program + " older than 0.20 does not speak JSON: " + installs[e.Program]
	case readonly.MatchString(e.Message):
		return "coven needs write access: unset what makes " + e.Program + " read-only"
	}
	return ""
}

// unknownFlag reports whether a run failed because the program does not support one
// of its flags.
func unknownFlag(err error) bool {
	failed := (*ProgramError)(nil)
	return errors.As(err, &failed) && failed.ExitCode > 0 && unknown.MatchString(failed.Message)
}
