package board

import (
	"errors"
	"testing"
)

type exited int

func (e exited) Error() string { return "exit status" }
func (e exited) ExitCode() int { return int(e) }

// The result of a command line is its last line, and it has not failed if coven waits for a person.
func TestResult(t *testing.T) {
	for _, test := range []struct {
		output string
		err    error
		want   string
		failed bool
	}{
		{"", nil, "done", false},
		{"one\ntwo\n  next: coven status\n\n", nil, "two", false},
		{"t-1 waits\n", exited(3), "t-1 waits", false},
		{"error: x\n", exited(1), "error: x (exit status)", true},
		{"", errors.New("gone"), "(gone)", true},
	} {
		if got, failed := Result(test.output, test.err); got != test.want || failed != test.failed {
			t.Errorf("%q, %v: %q, %v", test.output, test.err, got, failed)
		}
	}
}
