package control_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// verbs maps commands to their operations; nil means that a command is possible in every state.
func verbs() map[string]*control.Operation {
	op := func(o control.Operation) *control.Operation { return &o }
	return map[string]*control.Operation{
		"run": op(control.OpRun), "resume": op(control.OpResume), "retry": op(control.OpRetry), "approve": op(control.OpApprove),
		"reject": op(control.OpReject), "cancel": op(control.OpCancel), "revise": op(control.OpRevise), "attach": op(control.OpMessage), "chat": op(control.OpChat),
		"revert": op(control.OpRevert), "why": nil, "snapshots": nil, "logs": nil, "review": nil, "status": nil, "rescue": nil,
	}
}

// Every command that coven recommends in a state is possible in that state, whether it comes from the
// reason, the list of sessions or a refusal. TestRefusals fails for a state without a row.
func TestRecommended(t *testing.T) {
	c := repository(t)
	works := func(where, next string, v session.View) {
		t.Helper()
		for _, command := range strings.Split(next, ", then ") {
			words := strings.Fields(command)
			if command == "" || words[0] == "git" {
				continue
			}
			operation, known := verbs()[words[1]]
			v := v
			v.Info.Chat = words[1] == "chat" // only chats recommend it
			if words[0] != "coven" || !known {
				t.Errorf("%s recommends %q, which is no command that is known here", where, next)
			} else if operation != nil {
				if err := control.Refusal(*operation, v); err != nil {
					t.Errorf("%s recommends %q: %v", where, next, err)
				}
			}
		}
	}
	for name, state := range sessionStates() {
		id := strings.NewReplacer(" ", "-", "(", "", ")", "", ",", "").Replace(name)
		record(t, c, id, state.last, state.data, state.broken)
		v, err := c.Project.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		r, err := control.Why(t.Context(), c.Project, id)
		if err != nil || r.Next == "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		works(name+": why", r.Next, v)
		works(name+": status", control.NextOf(v), v)
		for _, op := range constants(t, "refusal.go", "Operation") {
			if err := control.Refusal(control.Operation(op), v); err != nil {
				works(name+": "+op, exit.Next(err), v)
			}
		}
		if v.Status != session.Running && control.Refusal(control.OpRetry, v) == nil {
			_, err := c.Retry(t.Context(), control.RetryRequest{Task: id, From: ""})
			if refused := (*exit.Error)(nil); errors.As(err, &refused) {
				works(name+": retry", exit.Next(err), v)
			}
		}
	}
}

// opinions returns the opinion of one reviewer with one error.
func opinions(file string, line int, message string) []event.Opinion {
	found := reviewer.Finding{Severity: reviewer.Error, File: file, Line: line, Message: message}
	return []event.Opinion{{Opinion: arbiter.Opinion{Reviewer: "r", Findings: []reviewer.Finding{found}}}}
}

// The reason of a blocked task names the failed command and its output, or the first open finding.
func TestCause(t *testing.T) {
	c := repository(t)
	failed := func(command, output, text string) event.Result {
		return event.Result{Error: text, ErrorType: event.ErrorProcessExit, ExitCode: 1, Output: output, Receipts: []event.Receipt{{Command: command, ExitCode: 1}}}
	}
	for name, test := range map[string]struct {
		result event.Result
		reason string // of the session; empty for that of the result
		want   string
	}{
		"check": {failed("go test ./...", "ok a\nFAIL b\n\n", "check go test ./... ended with exit code 1"), "", "check go test ./... ended with exit code 1: FAIL b"},
		"place": {
			failed("go test", "# app\n./broken.go:2:14: syntax error\nFAIL app [build failed]\n?  app/x [no test files]\nFAIL", "check go test ended with exit code 1"), "",
			"check go test ended with exit code 1: ./broken.go:2:14: syntax error",
		},
		"no place": {failed("make", "at 12:30: took 1.5:2s\nFAIL", "check make ended with exit code 1"), "", "check make ended with exit code 1: FAIL"},
		"script":   {failed("make x", "no rule", "the command ended with exit code 1"), "", "the command make x ended with exit code 1: no rule"},
		"loop": {
			failed("make", "boom", "check make ended with exit code 1"), "loop tests reached its limit of iterations: check make ended with exit code 1",
			"loop tests reached its limit of iterations: check make ended with exit code 1: boom",
		},
		"no receipt": {
			event.Result{Error: "the command ended with exit code 1", ErrorType: event.ErrorProcessExit, Output: "boom"},
			"",
			"the command ended with exit code 1: boom",
		},
		"silent":  {failed("make", " \n", "check make ended with exit code 1"), "", "check make ended with exit code 1"},
		"another": {failed("make", "boom", "check make ended with exit code 1"), "conflict with main in a.go", "conflict with main in a.go"},
		"finding": {event.Result{Error: "the review found 1 error", ErrorType: event.ErrorFindings, Opinions: opinions("a.go", 3, "leaks")}, "", "the review found 1 error: 1 open error finding: a.go:3 leaks"},
	} {
		s := begin(t, c, name)
		reason := test.reason
		if reason == "" {
			reason = test.result.Error
		}
		kind := "script"
		if test.result.Opinions != nil {
			kind = "review"
		}
		err := errors.Join(
			s.Append(event.Event{Type: event.StepStarted, Path: "try#1"}, event.StepStart{Kind: kind}),
			s.Append(event.Event{Type: event.StepCompleted, Path: "try#1"}, test.result),
			s.Append(event.Event{Type: event.SessionBlocked}, event.Ended{Step: "try#1", Reason: reason, Next: "coven resume " + name}), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		r, err := control.Why(t.Context(), c.Project, name)
		if err != nil || r.Reason != test.want || r.Next != "coven resume "+name {
			t.Errorf("%s: %q, next %q, %v; want %q", name, r.Reason, r.Next, err, test.want)
		}
	}
}
