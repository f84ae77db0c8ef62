// Command coven-reviewer-govet is a reviewer plugin: it runs go vet and returns the
// findings in files that the change touches.
//
// Options:
//
//	packages  what to look at, separated by blanks (./...)
//	severity  of what was found: error (the default), warning or info
//	scope     changed (the default): only files that the change touches; all
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

func main() { plugins.Serve(plugins.Reviewer(govet{})) }

type govet struct{}

// Review implements reviewer.Reviewer.
func (govet) Review(ctx context.Context, change reviewer.Change, host hostservice.Services) (reviewer.Review, error) {
	s, err := read(change.Options)
	if err != nil {
		return reviewer.Review{}, err
	}
	if !slices.ContainsFunc(change.Files, func(f reviewer.File) bool {
		return strings.HasSuffix(f.Path, ".go") || strings.HasSuffix(f.From, ".go") || filepath.Base(f.Path) == "go.mod"
	}) {
		return reviewer.Review{Verdict: reviewer.Pass, Summary: "the change touches no Go"}, nil
	}
	output, failed, err := vet(ctx, change.Dir, s.packages)
	if err != nil {
		return reviewer.Review{}, err
	}
	_ = host.Log(ctx, "go vet "+strings.Join(s.packages, " ")+"\n"+output) // informational: an error does not matter
	found, elsewhere := findings(output, change, s)
	switch {
	case failed && len(found) == 0 && elsewhere == 0:
		return reviewer.Review{}, fmt.Errorf("go vet could not look at it: %s", strings.TrimSpace(last(output, 2000)))
	case len(found) > 0 && s.severity == reviewer.Error:
		return reviewer.Review{Verdict: reviewer.Fail, Findings: found}, nil
	}
	return reviewer.Review{Verdict: reviewer.Pass, Findings: found}, nil
}

// settings holds the parsed options.
type settings struct {
	packages []string
	severity reviewer.Severity
	all      bool
}

func read(options map[string]string) (settings, error) {
	s := settings{packages: []string{"./..."}, severity: reviewer.Error}
	for key, value := range options {
		switch {
		case key == "packages" && strings.TrimSpace(value) != "" && !strings.HasPrefix(strings.TrimSpace(value), "-"):
			s.packages = strings.Fields(value)
		case key == "severity" && slices.Contains([]string{"error", "warning", "info"}, value):
			s.severity = reviewer.Severity(value)
		case key == "scope" && (value == "all" || value == "changed"):
			s.all = value == "all"
		default:
			return s, fmt.Errorf("%s %q: the options are packages, severity (error, warning, info) and scope (changed, all): %w", key, value, pluginerr.ErrInvalid)
		}
	}
	return s, nil
}

// vet runs go vet. When ctx is done, it kills go vet with its child processes. go vet
// writes nothing to dir: its cache is elsewhere, and go.mod does not change.
func vet(ctx context.Context, dir string, packages []string) (output string, failed bool, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"vet"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", false, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.String(), true, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("run go vet: %w", err)
	}
	return out.String(), false, nil
}

// lineRE matches a finding of go vet.
var lineRE = regexp.MustCompile(`(?m)^(?:vet: )?(\S[^:\n]*\.go):(\d+)(?::\d+)?: (.+)$`)

// findings parses the output of go vet. It only counts findings in files that the
// change does not touch, unless the scope is all.
func findings(output string, change reviewer.Change, s settings) (found []reviewer.Finding, elsewhere int) {
	for _, m := range lineRE.FindAllStringSubmatch(output, -1) {
		file := m[1]
		if rel, err := filepath.Rel(change.Dir, file); filepath.IsAbs(file) && err == nil {
			file = rel
		}
		file = filepath.ToSlash(filepath.Clean(file))
		touched := slices.ContainsFunc(change.Files, func(f reviewer.File) bool { return f.Path == file })
		if !filepath.IsLocal(file) || !touched && !s.all || len(found) == reviewer.MaxFindings {
			elsewhere++
			continue
		}
		line, _ := strconv.Atoi(m[2]) // short, so it cannot fail
		found = append(found, reviewer.Finding{Severity: s.severity, File: file, Line: line, Message: last(m[3], reviewer.MaxText)})
	}
	return found, elsewhere
}

// last returns the end of a text.
func last(text string, most int) string {
	return strings.ToValidUTF8(text[max(len(text)-most, 0):], "")
}
