// Package command is the reviewer that runs a command and reads what it prints: a
// linter, a type checker, a scanner.
//
// Its options:
//
//	command   what to run, with sh -c, at the top of the worktree; needed
//	format    lines (file:line: message, the default) or sarif (SARIF 2.1.0)
//	severity  of findings whose format does not say one: error (the default), warning or info
//	scope     changed (the default): findings in files that the change touches; all
//
// A command that ends with an exit code other than 0 and names no finding could not
// judge, and is an error. One that ends so and names no error in a file that the
// change touches was broken by the change elsewhere, in a caller perhaps: what it
// found there counts with scope changed, too. A linter that ends so for what was
// wrong before needs its own option to end with 0 in spite of findings.
//
// What the command writes into the worktree fails its review: give it a directory
// elsewhere ($TMPDIR). What it leaves running is killed when it ends: its process
// group, and on Linux what left that, too, unless it also emptied its environment.
// That much ends with the plugin's process.
package command

import (
	"bytes"
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

// Reviewer runs a command.
type Reviewer struct{}

// settings are the options, read.
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
		return reviewer.Review{}, fmt.Errorf("%q printed no SARIF: %w: %s", s.command, err, tail(ran.all()))
	case ran.code != 0 && len(found) == 0:
		return reviewer.Review{}, fmt.Errorf("%q ended with exit code %d and named no finding: %s", s.command, ran.code, tail(ran.all()))
	}
	return s.review(change, found, ran.code), nil
}

// read reads the options.
func read(options map[string]string) (settings, error) {
	s := settings{command: options["command"], severity: reviewer.Severity(options["severity"])}
	for name := range options {
		if !slices.Contains([]string{"command", "format", "severity", "scope", "prompt"}, name) {
			return s, fmt.Errorf("with.%s is none of command, format, severity, scope: %w", name, pluginerr.ErrInvalid)
		}
	}
	if strings.TrimSpace(s.command) == "" {
		return s, fmt.Errorf("with.command is missing: the command to run: %w", pluginerr.ErrInvalid)
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
		return s, fmt.Errorf("with.severity %q is none of error, warning, info: %w", s.severity, pluginerr.ErrInvalid)
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

// review makes a review of what was found by a command that ended with code.
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
		r.Summary = fmt.Sprintf("exit code %d, and no error in files that the change touches: those elsewhere count", code)
	default:
		r.Summary = fmt.Sprintf("%d more in files that the change does not touch", len(elsewhere))
	}
	if slices.ContainsFunc(r.Findings, isError) {
		r.Verdict = reviewer.Fail
	}
	if more := len(r.Findings) - reviewer.MaxFindings; more > 0 {
		slices.SortStableFunc(r.Findings, func(a, b reviewer.Finding) int { return weight(a) - weight(b) })
		r.Findings = r.Findings[:reviewer.MaxFindings]
		r.Suggestions = append(r.Suggestions, fmt.Sprintf("%d more findings are left out, the least grave", more))
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

// ran is how a command ended.
type ran struct {
	stdout, stderr []byte
	code           int
}

func (r ran) all() []byte { return slices.Concat(r.stdout, r.stderr) }

// The bounds of a command.
const (
	maxOutput = 16 << 20 // bytes of each stream
	endTime   = 2 * time.Second
	maxTail   = 2 << 10
)

// run runs a command to its end, or to that of ctx. Nothing of it goes on after that.
func run(ctx context.Context, command, dir string) (ran, error) {
	stdout, stderr := &bounded{}, &bounded{}
	cmd := exec.CommandContext(ctx, "sh", "-c", command) //nolint:gosec // it is what the grimoire says
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

// bounded keeps the beginning of what is written to it. Its buffer is not embedded:
// io.Copy would read into it past the bound.
type bounded struct{ kept bytes.Buffer }

// Write never fails: what is too much is dropped.
func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.kept.Write(p[:min(len(p), max(maxOutput-b.kept.Len(), 0))])
	return len(p), nil
}

// tail is the end of an output, for an error.
func tail(output []byte) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(output[max(0, len(output)-maxTail):])), "")
	if text == "" {
		return "(it printed nothing)"
	}
	return text
}
