package evidence

import (
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// Exit codes of a shell whose command could not run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// notRun matches the output of programs that did not find a target, a script or a module: make, shells, npm and its kin, Python,
// Node.js, just, task, Rake, Gradle and Maven.
var notRun = lazyregexp.New(`(?m)No rule to make target|command not found|: not found$|Error 12[67]\b` +
	`|[Mm]issing script|Script not found|Command ".*" not found|No such file or directory` +
	`|No module named|Cannot find module|does not contain recipe|Task ".*" does not exist|Don't know how to build task` +
	`|Task '.*' not found|Unknown lifecycle phase`)

// CannotRun reports whether a failed command seems not to have run at all, because a program, a target or a module is missing.
func CannotRun(code int, output string) bool {
	return code == exitCannotRun || code == exitNotFound || notRun.MatchString(output)
}

// numbers are the parts of an output that differ between two runs.
var numbers = lazyregexp.New(`[0-9]+`)

// SameFailure reports whether two runs of a command failed in the same way: with the same exit code and output, except for
// numbers such as durations.
func SameFailure(code, again int, output, outputAgain string) bool {
	plain := func(s string) string { return numbers.ReplaceAllString(strings.TrimSpace(s), "0") }
	return code != 0 && code == again && plain(output) == plain(outputAgain)
}

// IsMissing reports whether a check of a change found no program to run, and the same without the change. No agent can repair
// that: a person installs the program or changes the check.
func IsMissing(r event.Result) bool {
	return r.ErrorType == event.ErrorBase && r.ExitCode == exitNotFound
}

// IsSettled reports whether a check need not run without the change again: it has, and its program was not missing.
func IsSettled(tried event.BaseCheck, check string) bool {
	return tried.Text == check && (!tried.Same || tried.ExitCode != exitNotFound)
}
