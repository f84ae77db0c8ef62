package launch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/runner/workclock"
)

// Approvals asks people about the tool calls of the agents of a session.
type Approvals struct {
	session *session.Session

	mu      sync.Mutex
	last    int
	open    map[int]chan session.Request
	granted map[string]string // who approved a call for the rest of the session, by key
}

// NewApprovals returns the approvals of a session that this process runs. It closes the questions of a process that
// has ended: an agent that still needs an answer asks again.
func NewApprovals(s *session.Session) (*Approvals, error) {
	a := &Approvals{session: s, open: map[int]chan session.Request{}, granted: map[string]string{}}
	if len(s.Journal.Of(event.PermissionRequested)) == 0 {
		return a, nil
	}
	view, err := s.View()
	if err != nil {
		return nil, err
	}
	for _, asked := range view.Approvals {
		a.last = max(a.last, asked.N)
		switch {
		case asked.Open():
			e := event.Event{Type: event.PermissionAnswered, Path: asked.Path, TraceID: asked.TraceID}
			if err := s.Append(e, event.ApprovalAnswer{N: asked.N, Answer: event.Unasked, Reason: "coven ended while it waited"}); err != nil {
				return nil, err
			}
		case asked.Answer.Session:
			a.granted[key(asked.Agent, asked.Exact)] = asked.Answer.By
		}
	}
	return a, nil
}

// key identifies a call that a person has approved for the session.
func key(agent, exact string) string { return agent + "\x00" + exact }

// deliver passes an answer to its question. It returns false if the question is closed.
func (a *Approvals) deliver(r session.Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting, ok := a.open[r.Answer.N]
	if ok {
		delete(a.open, r.Answer.N) // the first answer counts
		waiting <- r
	}
	return ok
}

// asking asks people for one agent.
type asking struct {
	*Approvals
	step    context.Context // of the step, whose clocks stop while a person is asked
	emit    func(event.Type, any) error
	agent   string
	root    string
	timeout time.Duration
	approve bool        // approve reversible calls after the timeout
	expired func(error) // stops the agent after the timeout; nil means that it continues
}

// expiredError stops an agent whose question was not answered in time.
type expiredError struct{ action string }

func (e *expiredError) Error() string { return "Approval timeout: " + e.action }

// asker returns the asker of an agent that works in ctx.
func (l *Launcher) asker(ctx context.Context, root, name string, emit func(event.Type, any) error) asking {
	d := l.Plan.Agents[name]
	return asking{
		Approvals: l.Approvals, step: ctx, emit: emit, agent: name, root: root,
		timeout: cmp.Or(d.ApprovalTimeout, agent.ApprovalTimeout), approve: d.ApproveOnTimeout,
	}
}

// Ask implements the asker of package gate.
func (a asking) Ask(ctx context.Context, q gate.Question) (gate.Answer, error) {
	if by, granted := a.grantedBy(q); granted {
		return gate.Answer{Allow: true, Reason: "approved for the session by " + by}, nil
	}
	if ctx.Err() != nil {
		return gate.Answer{}, context.Cause(ctx)
	}
	question, answers := a.question(q)
	if err := a.emit(event.PermissionRequested, question); err != nil {
		return gate.Answer{}, err
	}
	answer := a.await(ctx, question, answers)
	if answer.Modified != nil {
		answer.Modified.Before = recordedInput(q.Call.Input)
	}
	if err := a.emit(event.PermissionAnswered, answer); err != nil {
		return gate.Answer{}, err
	}
	if answer.Answer == event.Expired && a.expired != nil {
		a.expired(&expiredError{question.Tool + " " + question.Subject})
	}
	return a.verdict(q, answer), nil
}

// tool returns request_approval.
func (a asking) tool() tool.Tool {
	return tool.Tool{
		Kind: tool.RequestApproval, Category: "communication",
		Description: "Ask a person before you do something that they should decide about, and wait for the answer. It fails if they deny it, or do not answer in time.",
		Schema:      json.RawMessage(spawn.ApprovalSchema),
		Call: func(ctx context.Context, arguments json.RawMessage) (string, error) {
			var in spawn.ApprovalRequest
			if err := json.Unmarshal(arguments, &in); err != nil {
				return "", fmt.Errorf("the arguments cannot be read: %w", err)
			}
			tool.Begun(ctx)
			answer, err := a.Ask(ctx, gate.Question{
				Call: gate.Call{Tool: tool.RequestApproval.Name, Input: arguments}, Permission: tool.FreeApproval, Subject: in.Action, Exact: tool.RequestApproval.Name + " " + in.Action, Reason: in.Reason, Reversible: in.Reversible,
			})
			switch {
			case err != nil:
				return "", err
			case !answer.Allow:
				return "", errors.New(answer.Reason)
			case answer.Input != nil:
				return fmt.Sprintf("%s. The parameters were modified by the user: %s", answer.Reason, answer.Input), nil
			}
			return answer.Reason, nil
		},
	}
}

func (a asking) grantedBy(q gate.Question) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	by, ok := a.granted[key(a.agent, q.Exact)]
	return by, ok
}

// subject returns the subject of a call: a path relative to the worktree, or a command.
func (a asking) subject(q gate.Question) string { return strings.TrimPrefix(q.Subject, a.root+"/") }

// question opens a question about a call, and returns it with the channel of its answer.
func (a asking) question(q gate.Question) (event.Approval, chan session.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	answers := make(chan session.Request, 1)
	a.open[a.last] = answers
	e := event.Approval{
		N: a.last, Call: q.Call.ID, Agent: a.agent, Tool: q.Call.Tool, Permission: string(q.Permission), Subject: a.subject(q), Exact: q.Exact,
		Input: recordedInput(q.Call.Input), Reason: q.Reason, Reversible: q.Reversible, Until: clock.Now().Add(a.timeout).UTC().Round(0),
	}
	e.Impact = impact(q, strings.TrimPrefix(q.Path, a.root+"/"))
	switch q.Permission {
	case permission.FileWrite:
		if q.Path != "" {
			e.Preview = preview(q, a.root)
		}
	case permission.FileRead, permission.BashExecute, permission.AgentSpawn, tool.FreeApproval: // Subject says everything
	default:
		e.Preview = arguments(q.Call.Input)
	}
	return e, answers
}

// await waits for an answer.
func (a asking) await(ctx context.Context, q event.Approval, answers chan session.Request) event.ApprovalAnswer {
	defer gate.Pause(ctx)()
	defer workclock.Pause(a.step)()
	timer := clock.NewTimer(a.timeout)
	defer timer.Stop()
	select {
	case r := <-answers:
		return answered(r)
	case <-timer.C:
	case <-ctx.Done():
	case <-a.step.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, q.N)
	select {
	case r := <-answers: // at the same time
		return answered(r)
	default:
	}
	switch {
	case ctx.Err() != nil || a.step.Err() != nil:
		return event.ApprovalAnswer{N: q.N, Answer: event.Unasked, Reason: "the agent was stopped"}
	case a.approve && q.Reversible:
		return event.ApprovalAnswer{N: q.N, Answer: event.AutoApprove, Reason: fmt.Sprintf("nobody answered within %s", a.timeout)}
	}
	return event.ApprovalAnswer{N: q.N, Answer: event.Expired, Reason: fmt.Sprintf("nobody answered within %s", a.timeout)}
}

func answered(r session.Request) event.ApprovalAnswer {
	answer := *r.Answer
	answer.By, answer.Request = r.By, r.ID
	return answer
}

// verdict converts an answer to the verdict about the call.
func (a asking) verdict(q gate.Question, answer event.ApprovalAnswer) gate.Answer {
	switch answer.Answer {
	case event.Approved:
		if answer.Session {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.granted[key(a.agent, q.Exact)] = answer.By
		}
		return gate.Answer{Allow: true, Reason: "approved by " + answer.By}
	case event.Modified:
		return gate.Answer{Allow: true, Reason: "modified and approved by " + answer.By, Input: answer.Modified.After}
	case event.AutoApprove:
		return gate.Answer{Allow: true, Reason: "auto-approved: " + answer.Reason}
	case event.Denied:
		if answer.Reason == "" {
			return gate.Answer{Reason: "User denied approval"}
		}
		return gate.Answer{Reason: "User denied approval: " + answer.Reason}
	case event.Expired:
		return gate.Answer{Reason: "Approval timeout"}
	}
	return gate.Answer{Reason: cmp.Or(answer.Reason, string(answer.Answer))}
}

// maxRecorded limits the recorded part of a call or of a preview, in bytes.
const maxRecorded = 32 << 10

// recordedInput returns the input of a call for the record. A long input becomes a string with its beginning.
func recordedInput(input json.RawMessage) json.RawMessage {
	if len(input) <= maxRecorded {
		return input
	}
	text, _ := json.Marshal(strings.ToValidUTF8(string(input[:maxRecorded]), "") + "…") // cannot fail for a string
	return text
}

// arguments returns the arguments of a call for a person, or "" if there are none.
func arguments(input json.RawMessage) string {
	var text bytes.Buffer
	if string(input) == "{}" || json.Indent(&text, input, "", "  ") != nil {
		return ""
	}
	if text.Len() > maxRecorded {
		return strings.ToValidUTF8(text.String()[:maxRecorded], "") + "\n(the rest is not shown)\n"
	}
	return text.String()
}

// impact describes the effect of a call in one line.
func impact(q gate.Question, file string) string {
	switch q.Permission {
	case permission.FileRead:
		return "reads " + file
	case permission.FileWrite:
		if _, err := os.Lstat(q.Path); errors.Is(err, os.ErrNotExist) {
			return "creates " + file
		}
		return "changes " + file
	case permission.BashExecute:
		return "runs a shell command in the sandbox of the task"
	case tool.FreeApproval:
		return cmp.Or(q.Reason, "not told")
	case permission.AgentSpawn:
		return "starts the agent " + q.Subject
	}
	return "needs " + q.Permission.Word()
}

// maxPreview limits the files that a preview compares, in bytes.
const maxPreview = 1 << 20

// preview returns the change of a call to the file that it names, as a unified diff, or "" if it is unknown.
func preview(q gate.Question, root string) string {
	name, err := filepath.Rel(root, q.Path)
	if err != nil {
		return ""
	}
	before, err := regularfile.ReadIn(root, name, maxPreview)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ""
	}
	after, ok := gate.Result(q.Call, string(before))
	if !ok {
		return ""
	}
	text := string(diff.Diff(name, before, name, []byte(after)))
	_, hunks, _ := strings.Cut(text, "\n") // without the command line
	if len(hunks) > maxRecorded {
		hunks = strings.ToValidUTF8(hunks[:maxRecorded], "") + "\n(the rest is not shown)\n"
	}
	return hunks
}
