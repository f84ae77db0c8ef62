// Package command is a reviewer that runs a command, such as a linter, a type checker or a scanner, and
// parses its output.
//
// Its options:
//
//	command   the command for sh -c, run at the top of the worktree; required
//	format    lines (file:line: message, the default) or sarif (SARIF 2.1.0)
//	severity  of findings without one in the output: error (the default), warning or info
//	scope     changed (the default): findings in files that the change touches; or all
//
// If the command fails without a finding, the review is an error. If it fails without an error in a changed
// file, the change probably broke other code, for example a caller: then the findings in other files count
// even with scope changed. For a linter that fails because of older findings, use its option to exit with 0
// despite findings.
//
// The command must not write to the worktree, but can use $TMPDIR. Processes that it leaves running are
// killed when it exits: its process group and, on Linux, processes that left the group, unless they cleared
// their environment. Those are killed with the plugin process.
package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Reviewer reviews a change with a command.
type Reviewer struct{}

// settings contains the parsed options.
type settings struct {
	command  string
	sarif    bool
	severity reviewer.Severity
	all      bool
}

// Review implements reviewer.Reviewer.
func (Reviewer) Review(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	s, err := read(change.Options)
	if err != nil {
		return reviewer.Review{}, err
	}
	ran, err := run(ctx, s.command, change.Dir)
	if err != nil {
		return reviewer.Review{}, err
	}
	_ = host.Log(ctx, fmt.Sprintf("$ %s\n%s\nexit code %d", s.command, tail(ran.all()), ran.code)) // for people
	var found []reviewer.Finding
	if s.sarif {
		found, err = sarif(ran.stdout, change.Dir, s.severity)
	} else {
		found = lines(ran.all(), change.Dir, s.severity)
	}
	switch {
	case err != nil:
		return reviewer.Review{}, fmt.Errorf("%q printed invalid SARIF: %w: %s", s.command, err, tail(ran.all()))
	case ran.code != 0 && len(found) == 0:
		return reviewer.Review{}, fmt.Errorf("%q failed with exit code %d and no finding: %s", s.command, ran.code, tail(ran.all()))
	}
	return s.review(change, found, ran.code), nil
}

// read parses the options.
func read(options map[string]string) (settings, error) {
	s := settings{command: options["command"], severity: reviewer.Severity(options["severity"])}
	for name := range options {
		if !slices.Contains([]string{"command", "format", "severity", "scope", "prompt"}, name) {
			return s, fmt.Errorf("with.%s is not one of command, format, severity, scope: %w", name, pluginerr.ErrInvalid)
		}
	}
	if strings.TrimSpace(s.command) == "" {
		return s, fmt.Errorf("with.command is required: the command to run: %w", pluginerr.ErrInvalid)
	}
	switch options["format"] {
	case "", "lines":
	case "sarif":
		s.sarif = true
	default:
		return s, fmt.Errorf("with.format %q is neither lines nor sarif: %w", options["format"], pluginerr.ErrInvalid)
	}
	switch s.severity {
	case "":
		s.severity = reviewer.Error
	case reviewer.Error, reviewer.Warning, reviewer.Info:
	default:
		return s, fmt.Errorf("with.severity %q is not one of error, warning, info: %w", s.severity, pluginerr.ErrInvalid)
	}
	switch options["scope"] {
	case "", "changed":
	case "all":
		s.all = true
	default:
		return s, fmt.Errorf("with.scope %q is neither changed nor all: %w", options["scope"], pluginerr.ErrInvalid)
	}
	return s, nil
}

// review returns the review for the findings of a command that exited with code.
func (s settings) review(change reviewer.Change, found []reviewer.Finding, code int) reviewer.Review {
	r := reviewer.Review{Verdict: reviewer.Pass}
	var elsewhere []reviewer.Finding
	for _, f := range found {
		if !s.all && f.File != "" && !touched(change.Files, f.File) {
			elsewhere = append(elsewhere, f)
		} else {
			r.Findings = append(r.Findings, f)
		}
	}
	switch {
	case len(elsewhere) == 0:
	case code != 0 && !slices.ContainsFunc(r.Findings, isError):
		r.Findings = append(r.Findings, elsewhere...)
		r.Summary = fmt.Sprintf("exit code %d without an error in changed files: errors in other files count", code)
	default:
		r.Summary = fmt.Sprintf("%d more in unchanged files", len(elsewhere))
	}
	if slices.ContainsFunc(r.Findings, isError) {
		r.Verdict = reviewer.Fail
	}
	if more := len(r.Findings) - reviewer.MaxFindings; more > 0 {
		slices.SortStableFunc(r.Findings, func(a, b reviewer.Finding) int { return weight(a) - weight(b) })
		r.Findings = r.Findings[:reviewer.MaxFindings]
		r.Suggestions = append(r.Suggestions, fmt.Sprintf("%d less severe findings omitted", more))
	}
	return r
}

func isError(f reviewer.Finding) bool { return f.Severity == reviewer.Error }

func weight(f reviewer.Finding) int {
	return slices.Index([]reviewer.Severity{reviewer.Error, reviewer.Warning, reviewer.Info}, f.Severity)
}

func touched(files []reviewer.File, path string) bool {
	return slices.ContainsFunc(files, func(f reviewer.File) bool { return f.Path == path })
}

// ran is the result of a command.
type ran struct {
	stdout, stderr []byte
	code           int
}

func (r ran) all() []byte { return slices.Concat(r.stdout, r.stderr) }

// The limits of a command.
const (
	maxOutput = 16 << 20 // bytes of each stream
	endTime   = 2 * time.Second
	maxTail   = 2 << 10
)

// run runs a command until it exits or ctx is done. It leaves no process behind.
func run(ctx context.Context, command, dir string) (ran, error) {
	stdout, stderr := &bounded{}, &bounded{}
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // the command is from the grimoire
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
	mark := newMark()
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = endTime
	err := cmd.Run()
	if cmd.Process != nil {
		endLeft(cmd.Process.Pid, mark)
	}
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return ran{}, ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return ran{stdout.kept.Bytes(), stderr.kept.Bytes(), exit.ExitCode()}, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return ran{}, fmt.Errorf("run %q: %w", command, err)
	}
	return ran{stdout.kept.Bytes(), stderr.kept.Bytes(), 0}, nil
}

// bounded is a writer that keeps the beginning of its input. The buffer is not embedded, because io.Copy
// would use its ReadFrom and ignore the limit.
type bounded struct{ kept bytes.Buffer }

// Write never fails. It drops excess bytes.
func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.kept.Write(p[:min(len(p), max(maxOutput-b.kept.Len(), 0))])
	return len(p), nil
}

// tail returns the end of an output for an error message.
func tail(output []byte) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(output[max(0, len(output)-maxTail):])), "")
	return cmp.Or(text, "(no output)")
}
