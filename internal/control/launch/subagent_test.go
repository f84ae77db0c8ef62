package launch

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/secret"
)

// C-52: the status of a subagent and the error for its caller, for each type of error.
func TestOutcomeOfSubagent(t *testing.T) {
	t.Parallel()
	secrets, err := secret.Open(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("coven is stopping"))
	for name, test := range map[string]struct {
		ctx    context.Context
		report driver.Report
		err    error
		status event.Status
		kind   event.ErrorType
		text   string
	}{
		"a report":            {report: driver.Report{Text: "Done."}, status: event.StatusCompleted},
		"no report":           {report: driver.Report{Text: " \n"}, status: event.StatusFailed, kind: event.ErrorOutput, text: "it ended without a message"},
		"its own time":        {err: &timeoutError{time.Minute}, status: event.StatusFailed, kind: event.ErrorTimeout, text: "it worked for more than 1m0s"},
		"silence":             {report: driver.Report{Kind: driver.Timeout, Error: "no output"}, status: event.StatusFailed, kind: event.ErrorTimeout, text: "no output"},
		"a signal":            {report: driver.Report{Kind: driver.ProcessExit, Error: "signal: killed"}, status: event.StatusFailed, kind: event.ErrorProcessExit, text: "signal: killed"},
		"the API":             {report: driver.Report{Kind: driver.Failed, Error: "API status 400"}, status: event.StatusFailed, kind: event.ErrorProvider, text: "API status 400"},
		"a call without gate": {report: driver.Report{Kind: driver.Ungated, Error: "a tool ran"}, status: event.StatusFailed, kind: event.ErrorPermission, text: "a tool ran"},
		"a bug":               {err: &spawn.PanicError{Value: "oops", Stack: "the stack"}, status: event.StatusFailed, kind: event.ErrorInternal, text: "panic: oops"},
		"a full disk":         {err: errors.New("no space\nleft"), status: event.StatusFailed, kind: event.ErrorInternal, text: "no space left"},
		"no approval":         {err: &expiredError{"Bash rm x"}, status: event.StatusFailed, kind: event.ErrorApproval, text: "Approval timeout: Bash rm x"},
		"nobody waits":        {err: errNobodyWaits, status: event.StatusCancelled, kind: event.ErrorCancelled, text: errNobodyWaits.Error()},
		"a person stops":      {ctx: stopped, err: context.Canceled, status: event.StatusInterrupted, kind: event.ErrorCancelled, text: "coven is stopping"},
	} {
		if test.ctx == nil {
			test.ctx = t.Context()
		}
		r := &subagent{spawner: &spawner{Launcher: &Launcher{Workspace: &workspace.Workspace{Secrets: secrets}}}}
		status, failed := r.outcome(test.ctx, test.report, test.err)
		if failed == nil {
			failed = &event.SpawnError{}
		}
		if status != test.status || failed.Type != test.kind || failed.Message != test.text {
			t.Errorf("%s: %s, %+v", name, status, failed)
		}
		if name == "a bug" && failed.Stack != "the stack" {
			t.Errorf("%s: the stack is lost", name)
		}
	}
}
