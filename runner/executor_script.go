package runner

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/runner/engine"
)

// script runs a script leaf: a command, or checks.
func (x *Executor) script(ctx context.Context, c engine.Call, b leafStart) (event.Result, error) {
	if b.cutOff {
		if err := x.restoreStart(ctx, c.Path, b.Snapshot); err != nil {
			return event.Result{}, err
		}
	}
	if text := tooLong(c.Script); text != "" {
		return event.Result{Error: text, ErrorType: event.ErrorTooLong}, nil
	}
	if len(c.Script.Checks) > 0 {
		return x.checksAndBase(ctx, c.Path, c.Script.Checks)
	}
	env := append([]string{"COVEN_STEP_KEY=" + x.key(c.Path)}, c.Script.Env...)
	ran, err := x.run(ctx, c.Path, Command{Shell: c.Script.Command, Env: env, Secrets: c.Script.Secrets, Workdir: c.Script.Workdir, TTY: c.Script.TTY})
	failpoint.Point("script.ended")
	if err != nil {
		return event.Result{}, err
	}
	result := ran.result("the command")
	receipt := ran.receipt(c.Script.Command, b.Tree)
	receipt.Settings = settings(c.Script)
	result.Receipts = []event.Receipt{receipt}
	if result.ErrorType != "" {
		return x.commitUnfinished(ctx, result)
	}
	return x.commit(ctx, c, b, result, "")
}

// run runs a command of a leaf while the repository is watched. It appends its output to the log of the leaf.
func (x *Executor) run(ctx context.Context, path string, command Command) (ran Ran, err error) {
	transcript, at, err := x.Journal.OpenLog(path)
	if err != nil {
		return Ran{}, err
	}
	command.Transcript = transcript
	err = x.watched(ctx, path, func() (err error) {
		ran, err = x.Commands.Run(ctx, command)
		return err
	})
	_ = transcript.Close() // the events are the record, the log is for people
	if err == nil {
		ran.logged, err = x.logged(path, at)
	}
	return ran, err
}

// logged returns the part of the log of a leaf from an offset, as it is stored: without secrets. It ends where the log
// cannot be read.
func (x *Executor) logged(path string, at int64) (event.LogPart, error) {
	log, err := x.Journal.ReadLog(path, at)
	if err != nil {
		return event.LogPart{}, err
	}
	defer log.Close() //nolint:errcheck // read only
	sum := sha256.New()
	size, _ := io.Copy(sum, log)
	return event.LogPart{At: at, Size: size, Sum: hex.EncodeToString(sum.Sum(nil))}, nil
}

// maxArgument is the maximum length of an argument or variable of a program: Linux allows 128 KiB,
// including the terminating byte.
const maxArgument = 128<<10 - 1

// tooLong describes the part of a script that exceeds the system's limit, or returns "".
func tooLong(s *engine.ScriptInput) string {
	const advice = "%s is too long: %d KiB, at most 127 KiB are possible; pass large values in a file"
	if n := len(s.Command); n > maxArgument {
		return fmt.Sprintf(advice, "the command", n>>10)
	}
	for _, variable := range s.Env {
		if n := len(variable); n > maxArgument {
			name, _, _ := strings.Cut(variable, "=")
			return fmt.Sprintf(advice, "the variable "+name, n>>10)
		}
	}
	return ""
}

// settings returns a hash of the variables, the directory and the terminal of a script, so that its receipt differs
// from that of the bare command. It is empty if the script sets none.
func settings(s *engine.ScriptInput) string {
	if len(s.Env) == 0 && s.Workdir == "" && !s.TTY {
		return ""
	}
	all := append([]string{s.Workdir}, s.Env...)
	if s.TTY {
		all = append(all, "tty")
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(sum[:])
}

// receipt returns the proof that a command ran on a tree.
func (r Ran) receipt(command, tree string) event.Receipt {
	receipt := event.Receipt{
		Command: command, ExitCode: r.ExitCode, Tree: tree, Duration: r.Duration, LogPart: r.logged,
		NotIsolated: r.NotIsolated, Read: r.Read, Reads: r.Reads, Reused: r.Reused,
	}
	if r.Stopped != "" {
		receipt.ExitCode = -1
	}
	return receipt
}

// result returns the result of a leaf that ran a command, which is called what in errors.
func (r Ran) result(what string) event.Result {
	result := event.Result{Output: strings.TrimSpace(ansi.Strip(r.Output)), ExitCode: r.ExitCode}
	switch {
	case r.Stopped != "":
		result.Error, result.ErrorType = what+" was stopped: "+r.Stopped, event.ErrorTimeout
	case r.ExitCode != 0:
		result.Error, result.ErrorType = fmt.Sprintf("%s ended with exit code %d", what, r.ExitCode), event.ErrorProcessExit
	}
	return result
}
