package control_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/snapshot"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// sessionState is a state of a session and the expected answer of each operation.
type sessionState struct {
	last   event.Type // the last event of the session
	data   any
	broken bool // its plan is missing
	want   map[control.Operation]string
}

// waitingState is the state of a session that waits for something other than a review.
func waitingState(reason event.WaitReason) sessionState {
	return sessionState{last: event.SessionWaiting, data: event.Waiting{Reason: reason}, want: map[control.Operation]string{
		control.OpRun: "", control.OpResume: "", control.OpRetry: "", control.OpReject: "", control.OpCancel: "",
		control.OpApprove: "StateError 1 coven why t", control.OpRevise: "StateError 1 coven why t", control.OpRevert: "", control.OpMessage: "StateError 3 coven why t",
	}}
}

// sessionStates returns all states of sessions, with the type of the refusal, the exit code and the next
// command, or "" where the operation is possible. The task is t.
func sessionStates() map[string]sessionState {
	const why, whyPerson = "StateError 1 coven why t", "StateError 3 coven why t"
	return map[string]sessionState{
		"running": {want: map[control.Operation]string{
			control.OpRun: "ErrBusy 3 coven attach t", control.OpResume: "ErrBusy 3 coven logs -f t", control.OpRetry: "ErrBusy 3 coven cancel t",
			control.OpApprove: why, control.OpRevise: why, control.OpReject: why, control.OpCancel: "", control.OpRevert: "ErrBusy 3 coven attach t", control.OpMessage: "",
		}},
		"waiting (review)": {last: event.SessionWaiting, data: event.Waiting{Reason: event.WaitReview, Next: "coven approve t"}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "StateError 3 coven approve t", control.OpRetry: "", control.OpApprove: "", control.OpRevise: "",
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"waiting (limit)":      waitingState(event.WaitLimit),
		"waiting (budget)":     waitingState(event.WaitBudget),
		"waiting (checkout)":   waitingState(event.WaitCheckout),
		"waiting (approval)":   waitingState(event.WaitApproval), // only displayed: the session is running
		"waiting (dependency)": waitingState(event.WaitDependency),
		"waiting (ci)":         waitingState(event.WaitCI),
		"waiting (merge)":      waitingState(event.WaitMerge),
		"waiting (remote)":     waitingState(event.WaitRemote),
		"waiting (worker)":     waitingState(event.WaitWorker),
		"waiting (message)": {last: event.SessionWaiting, data: event.Waiting{Reason: event.WaitMessage, Next: "coven chat --session t"}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "StateError 3 coven chat --session t", control.OpRetry: "", control.OpApprove: why, control.OpRevise: why,
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"completed": {last: event.SessionCompleted, data: event.Ended{}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: why, control.OpRetry: why, control.OpApprove: why, control.OpRevise: why,
			control.OpReject: why, control.OpCancel: why, control.OpRevert: why, control.OpMessage: whyPerson,
		}},
		"completed, landed": {last: event.SessionCompleted, data: event.Ended{Commit: "c"}, want: map[control.Operation]string{
			control.OpRun: why, control.OpResume: why, control.OpRetry: why, control.OpApprove: why, control.OpRevise: why,
			control.OpReject: why, control.OpCancel: why, control.OpRevert: why, control.OpMessage: whyPerson,
		}},
		"failed": {last: event.SessionFailed, data: event.Ended{Step: "test", Next: "coven retry failed"}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "StateError 1 coven run t", control.OpRetry: "", control.OpApprove: why, control.OpRevise: why,
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"rejected": {last: event.SessionFailed, data: event.Ended{Rejected: true}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "StateError 1 coven run t", control.OpRetry: "", control.OpApprove: why, control.OpRevise: why,
			control.OpReject: why, control.OpCancel: why, control.OpRevert: why, control.OpMessage: whyPerson,
		}},
		"blocked": {last: event.SessionBlocked, data: event.Ended{Step: "test"}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "", control.OpRetry: "", control.OpApprove: why, control.OpRevise: "",
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"blocked, repository": {last: event.SessionBlocked, data: event.Ended{
			Step: "test", Reason: "the repository changed during the step: hook hooks/a was added", Next: "coven rescue show refs/coven/rescue/t/1, then coven resume t",
		}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "", control.OpRetry: "", control.OpApprove: why, control.OpRevise: "",
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"cancelled": {last: event.SessionCancelled, data: event.Ended{}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "StateError 1 coven run t", control.OpRetry: "StateError 1 coven run t", control.OpApprove: why, control.OpRevise: why,
			control.OpReject: why, control.OpCancel: why, control.OpRevert: why, control.OpMessage: whyPerson,
		}},
		"interrupted": {last: event.SessionStopped, data: event.Ended{}, want: map[control.Operation]string{
			control.OpRun: "", control.OpResume: "", control.OpRetry: "", control.OpApprove: why, control.OpRevise: why,
			control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
		"damaged": {last: event.SessionWaiting, data: event.Waiting{Reason: event.WaitReview}, broken: true, want: map[control.Operation]string{
			control.OpRun: "StateError 3 coven cancel t", control.OpResume: "StateError 3 coven cancel t", control.OpRetry: "StateError 3 coven cancel t",
			control.OpApprove: why, control.OpRevise: why, control.OpReject: "", control.OpCancel: "", control.OpRevert: "", control.OpMessage: whyPerson,
		}},
	}
}

// operations returns all operations as a user interface calls them.
func operations() map[control.Operation]func(context.Context, *control.Controller, string) error {
	return map[control.Operation]func(context.Context, *control.Controller, string) error{
		control.OpRun: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Run(ctx, project.Item{Task: task.Task{ID: id, Title: id}}, control.Options{})
			return err
		},
		control.OpResume: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Resume(ctx, control.ResumeRequest{Task: id})
			return err
		},
		control.OpRetry: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Retry(ctx, control.RetryRequest{Task: id})
			return err
		},
		control.OpApprove: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Approve(ctx, control.ApproveRequest{Task: id})
			return err
		},
		control.OpRevise: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Revise(ctx, control.ReviseRequest{Task: id, Comments: []string{"more"}})
			return err
		},
		control.OpReject: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Reject(ctx, control.RejectRequest{Task: id, Reason: "no"})
			return err
		},
		control.OpCancel: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Cancel(ctx, control.CancelRequest{Task: id})
			return err
		},
		control.OpRevert: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := snapshot.Revert(ctx, c.Project, snapshot.Request{Name: id})
			return err
		},
		control.OpChat: func(ctx context.Context, c *control.Controller, id string) error {
			_, err := c.Chat(ctx, id)
			return err
		},
		control.OpMessage: func(ctx context.Context, c *control.Controller, id string) error { return c.Deliver(ctx, id, "hello") },
	}
}

// Each operation refuses each state in which it is not possible with a typed error, and changes nothing.
// This test fails for a new state or operation until the table contains it.
func TestRefusals(t *testing.T) {
	c := repository(t)
	states, call := sessionStates(), operations()
	for _, name := range declaredStates(t) {
		if _, ok := states[name]; !ok {
			t.Errorf("state %q has no row", name)
		}
	}
	declared := constants(t, "refusal.go", "Operation")
	if len(declared) != len(call) {
		t.Errorf("there are %d operations, the test calls %d", len(declared), len(call))
	}
	for name, state := range states {
		id := strings.NewReplacer(" ", "-", "(", "", ")", "", ",", "").Replace(name)
		record(t, c, id, state.last, state.data, state.broken)
		before, err := c.Project.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if shown, _, _ := strings.Cut(name, ", "); control.StateOf(before) != shown {
			t.Errorf("%s: the session is %s", name, control.StateOf(before))
		}
		for _, op := range declared {
			want, ok := state.want[control.Operation(op)]
			if op == string(control.OpChat) {
				want, ok = "Error 1 coven why t", true // see TestChatRefusals
			}
			if !ok {
				t.Errorf("%s: the row does not have %q", name, op)
				continue
			}
			refused := control.Refusal(control.Operation(op), before)
			if got := kindOf(refused, id); got != want {
				t.Errorf("%s: %s is refused with %q, want %q", name, op, got, want)
			}
			if want == "" {
				continue
			}
			if err := call[control.Operation(op)](t.Context(), c, id); kindOf(err, id) != want || err.Error() != refused.Error() {
				t.Errorf("%s: %s: %v, want %v", name, op, err, refused)
			}
		}
		if after, err := c.Project.Find(t.Context(), id); err != nil || !after.Updated.Equal(before.Updated) {
			t.Errorf("%s: a refusal changed the session: %v", name, err)
		}
	}
}

// A chat continues where it waits for a person, or where a turn was interrupted.
func TestChatRefusals(t *testing.T) {
	c := repository(t)
	for name, want := range map[string]string{
		"running": "ErrBusy 3 coven attach t", "waiting (review)": "", "waiting (message)": "", "interrupted": "",
		"waiting (limit)": "StateError 3 coven resume t", "waiting (budget)": "StateError 3 coven resume t", "blocked": "StateError 3 coven resume t",
		"completed": "StateError 1 coven chat", "cancelled": "StateError 1 coven chat", "rejected": "StateError 1 coven chat",
		"damaged": "StateError 3 coven cancel t",
	} {
		state, id := sessionStates()[name], strings.NewReplacer(" ", "-", "(", "", ")", "", ",", "").Replace(name)
		record(t, c, id, state.last, state.data, state.broken)
		v, err := c.Project.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		v.Info.Chat = true
		if got := kindOf(control.Refusal(control.OpChat, v), id); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A task without a session refuses all operations except run.
func TestNoSession(t *testing.T) {
	c := repository(t)
	for op, call := range operations() {
		if op == control.OpRun {
			continue
		}
		if err := call(t.Context(), c, "t"); kindOf(err, "t") != "NoSessionError 1 coven status" {
			t.Errorf("%s: %v", op, err)
		}
	}
}

func TestApproveRefusals(t *testing.T) {
	c := repository(t)
	review := sessionStates()["waiting (review)"]
	record(t, c, "seen", review.last, review.data, false)
	seen, err := c.Project.Find(t.Context(), "seen")
	if err != nil {
		t.Fatal(err)
	}
	record(t, c, "seen", event.SessionCancelled, event.Ended{}, false) // this one is newer
	s, err := session.Open(c.Project.Repo.Root, seen.ID, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append(event.Event{Type: event.SessionFailed}, event.Ended{Rejected: true}), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = c.Reject(t.Context(), control.RejectRequest{Task: "seen", Seen: seen, Reason: "late"})
	if got := kindOf(err, "seen"); got != "ChangedError 3 coven why t" {
		t.Errorf("an answer to an old question: %s: %v", got, err)
	}

	finding := reviewer.Finding{Severity: reviewer.Error, File: "a.go", Line: 3, Message: "leaks"}
	record(t, c, "found", review.last, review.data, false, finding)
	_, err = c.Approve(t.Context(), control.ApproveRequest{Task: "found"})
	open := (*control.OpenFindingsError)(nil)
	if kindOf(err, "found") != "OpenFindingsError 1 coven approve t --accept-findings" || !errors.As(err, &open) || len(open.Findings) != 1 || open.Findings[0].Message != "leaks" {
		t.Errorf("open findings: %v", err)
	}
	if _, err := c.Reject(t.Context(), control.RejectRequest{Task: "found", Reason: " "}); exit.Code(err) != exit.Usage {
		t.Errorf("no reason: %v", err)
	}
}

func TestRetryRefusals(t *testing.T) {
	c := repository(t)
	states := sessionStates()
	for name, test := range map[string]struct{ from, want string }{
		"waiting (review)": {"", "Error 1 coven approve t"},
		"blocked":          {"nowhere", "Error 1 coven logs t"},
		"failed":           {"", "StateError 1 coven run t"}, // its worktree is gone
	} {
		id := strings.Fields(name)[0]
		record(t, c, id, states[name].last, states[name].data, false)
		_, err := c.Retry(t.Context(), control.RetryRequest{Task: id, From: test.from})
		if got := kindOf(err, id); got != test.want {
			t.Errorf("%s: %s: %v", name, got, err)
		}
	}
}

// A message that no agent acknowledges is withdrawn.
func TestUndelivered(t *testing.T) {
	c := repository(t)
	s := begin(t, c, "t")
	errs := make(chan error)
	go func() { errs <- c.Deliver(t.Context(), "t", "hello") }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for requests := 0; requests == 0; <-ticker.C {
		found, err := s.Requests()
		if err != nil {
			t.Fatal(err)
		}
		requests = len(found)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; kindOf(err, "t") != "Error 1 coven why t" {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(c.Project.Repo.Root, ".coven/run/inbox/*/*.json")); err != nil || len(left) > 0 {
		t.Errorf("left in the inbox: %v, %v", left, err)
	}
}

// kindOf returns the type, the exit code and the next command of an error, with t in place of the task.
func kindOf(err error, id string) string {
	if err == nil {
		return ""
	}
	kind := reflect.TypeOf(err)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	name := kind.Name()
	if errors.Is(err, session.ErrBusy) {
		name = "ErrBusy"
	}
	words := strings.Fields(exit.Next(err))
	for i, word := range words {
		if word == id {
			words[i] = "t"
		}
	}
	return fmt.Sprintf("%s %d %s", name, exit.Code(err), strings.Join(words, " "))
}

// repository opens a new repository in which nothing can run.
func repository(t *testing.T) *control.Controller {
	t.Helper()
	_, remove := scratch()
	t.Cleanup(remove)
	p, err := project.Open(t.Context(), project.NewEnv("test"))
	if err != nil {
		t.Fatal(err)
	}
	return &control.Controller{Project: p}
}

// begin records the start of a session that this process runs.
func begin(t *testing.T, c *control.Controller, id string) *session.Session {
	t.Helper()
	s, err := session.Create(c.Project.Repo.Root, id, id, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() }) //nolint:errcheck // it may be closed
	if err := errors.Join(s.Freeze([]byte("v: 1\ngrimoire: {name: x}\n")), s.Append(event.Event{Type: event.SessionStarted}, event.Session{Query: id, Tracker: project.NoTracker})); err != nil {
		t.Fatal(err)
	}
	return s
}

// record records a session that asked for a review of a change with these findings and then went to another
// state. Without last it keeps running.
func record(t *testing.T, c *control.Controller, id string, last event.Type, data any, broken bool, found ...reviewer.Finding) {
	t.Helper()
	s := begin(t, c, id)
	opinion := event.Opinion{Opinion: arbiter.Opinion{Reviewer: "r", Findings: found}}
	for _, e := range []struct {
		event.Event
		data any
	}{
		{event.Event{Type: event.StepStarted, Path: "quality#1"}, event.StepStart{Kind: "review"}},
		{event.Event{Type: event.StepCompleted, Path: "quality#1"}, event.Result{Opinions: []event.Opinion{opinion}, ErrorType: event.ErrorFindings}},
		{event.Event{Type: event.ReviewAsked, Path: "land#1"}, event.MergeDecision{Patch: "p"}},
	} {
		if err := s.Append(e.Event, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if last == "" {
		return
	}
	if err := errors.Join(s.Append(event.Event{Type: last}, data), s.Close()); err != nil {
		t.Fatal(err)
	}
	if broken {
		if err := os.Remove(filepath.Join(s.Dir, "plan.yaml")); err != nil {
			t.Fatal(err)
		}
	}
}

// declaredStates returns the states that packages event and session declare, in the form of StateOf.
func declaredStates(t *testing.T) []string {
	t.Helper()
	var states []string
	for _, status := range append(constants(t, "../event/*.go", "Status"), constants(t, "../session/*.go", "Status")...) {
		if s := event.Status(status); s != session.Waiting && s != event.StatusPartial && s != session.Gone { // of subagents; of lists: see script/recordsgone
			states = append(states, status)
		}
	}
	for _, reason := range constants(t, "../event/*.go", "WaitReason") {
		states = append(states, "waiting ("+reason+")")
	}
	if len(states) < 10 {
		t.Fatalf("found only %v", states)
	}
	return states
}

// constants returns the values of the constants of a type.
func constants(t *testing.T, pattern, typeName string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, pattern))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 || !isNamed(spec.Type, typeName) {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	return values
}

func isNamed(expr ast.Expr, name string) bool {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name == name
	case *ast.SelectorExpr:
		return e.Sel.Name == name
	}
	return false
}
