package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/provider"
)

// The causes for which a run stops its own agent.
var (
	errGateLost = errors.New("the connection to coven's permission server was lost while the agent worked")
	errIgnored  = errors.New("a tool ran although coven's gate had refused it")
	errNeverMet = errors.New("the agent CLI never connected to coven's gate, although its provider declares that every tool call passes the gate")
	errNoGate   = errors.New("the agent CLI could not reach coven's permission server")
	errUngated  = errors.New("a tool ran without a decision by coven's gate")
	errLimited  = errors.New("the API refuses requests")
	errSpent    = errors.New("spent")
	errStuck    = errors.New("the agent repeats itself")
)

// run is an agent at work.
type run struct {
	job      Job
	command  provider.Command
	started  chan struct{} // closed when child is set
	ended    chan struct{} // closed when the run is over, also when nothing started
	stopping chan struct{} // closed when the agent is to be stopped
	child    *process.Child
	talk     *talk

	meter   meter
	counted *counted
	spent   error // what Job.Spend said
	circle  circle
	called  []string // ids of the tool calls so far, while the command is gated
	report  Report
	broken  error       // coven could not record or read the run
	unfed   error       // the same of what it says to the agent
	unkept  error       // the worktree could not be stored
	bypass  error       // the agent went past the gate
	met     func() bool // the CLI has connected to the gate
}

func newRun(job Job) *run {
	counted := &counted{}
	if job.Spend != nil {
		job.Gate = frugal{job.Gate, counted}
	}
	return &run{
		job: job, talk: newTalk(), counted: counted, circle: circle{most: job.SameCall}, started: make(chan struct{}), ended: make(chan struct{}), stopping: make(chan struct{}),
	}
}

// admit reports whether a process that connected to the gate is the agent's.
func (r *run) admit(pid int) bool {
	select {
	case <-r.started:
		return r.child.Contains(pid)
	case <-r.ended:
		return false
	}
}

func (r *run) turnedAway(err error) {
	// A caller that is not the agent's is told nothing; the record is for the user.
	r.warn("%v", err)
}

// follow feeds the agent, reads it to its end and judges what it did.
func (r *run) follow(ctx context.Context, lost <-chan struct{}) Report {
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() { r.feed(ctx, done) })
	if r.command.Gated {
		side.Go(func() { r.guard(lost, done) })
	} else {
		side.Go(func() { r.keep(ctx, done) })
	}
	r.read(ctx)
	exit := r.child.Wait()
	close(done)
	side.Wait()
	if err := r.child.Close(); err != nil && r.broken == nil {
		r.broken = fmt.Errorf("read the agent's output: %w", err)
	}
	if r.broken == nil {
		r.broken = cmp.Or(r.unfed, r.unkept)
	}
	r.judge(exit)
	r.report.Used = r.meter.total()
	r.report.reckon(r.meter)
	if _, unread := r.talk.open(); unread > 0 {
		r.warn("messages that the agent did not read: %d", unread)
	}
	return r.report
}

// guard stops the agent when its gate goes away before it is done.
func (r *run) guard(lost, done <-chan struct{}) {
	select {
	case <-done:
	case <-lost:
		if !r.talk.over() {
			r.child.Stop(errGateLost)
		}
	}
}

// read takes the agent's output line by line until it ends.
func (r *run) read(ctx context.Context) {
	out := bufio.NewReaderSize(r.child.Output(), 64<<10)
	for {
		lines, err := wholeLines(out)
		if len(bytes.TrimSpace(lines)) > 0 && r.broken == nil {
			if r.broken = r.take(ctx, lines); r.broken != nil {
				r.child.Stop(r.broken)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && r.broken == nil {
				r.broken = fmt.Errorf("read the agent's output: %w", err)
			}
			return
		}
	}
}

// wholeLines reads a line, and with it those that are there already.
func wholeLines(out *bufio.Reader) ([]byte, error) {
	lines, err := out.ReadBytes('\n')
	if err != nil {
		return lines, err
	}
	there, _ := out.Peek(out.Buffered()) // no more than there is: it cannot fail
	more := bytes.LastIndexByte(there, '\n') + 1
	lines = append(lines, there[:more]...)
	_, err = out.Discard(more)
	return lines, err
}

func (r *run) take(ctx context.Context, lines []byte) error {
	events, err := r.job.Provider.Parse(ctx, lines)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := errors.Join(r.job.Say(e), r.see(e)); err != nil {
			return err
		}
	}
	return nil
}

// see acts on one thing that the agent said.
func (r *run) see(e provider.Event) error {
	r.report.remember(e)
	switch e := e.(type) {
	case provider.Started:
		r.meter.model = e.Model
		if slices.Contains(e.FailedServers, mcp.Name) {
			r.child.Stop(errNoGate)
		}
	case provider.Text:
		return r.job.Emit(event.AgentText, event.Text{Text: e.Text})
	case provider.ToolCall:
		r.circle.call(e)
		r.counted.call(e.ID)
		r.asked(e.ID)
		call := gate.Call{ID: e.ID, Tool: e.Name, Input: e.Input}
		return r.job.Emit(event.AgentTool, event.Tool{ID: e.ID, Name: e.Name, Summary: gate.Summary(call, r.job.Dir)})
	case provider.ToolResult:
		r.compare(e)
		r.called = slices.DeleteFunc(r.called, func(id string) bool { return id == e.ID })
		return r.stuck(r.circle.result(e))
	case provider.Retry:
		return r.job.Emit(event.AgentRetry, event.Text{Text: retryText(e)})
	case provider.Acknowledged:
		r.talk.heard(e.ID)
		r.circle.forget() // a person said something else
		r.overspent()
	case provider.Limit:
		r.limited(e)
	case provider.Spent:
		return r.count(e)
	case provider.Result:
		if e.Limit && r.job.Limit != nil {
			r.job.Limit(provider.Limit{Reason: "rate_limit", Status: e.Status}) // there is nothing left to stop
		}
		r.meter.settle(r.report.Result.Usage)
		r.unasked()
		err := r.job.Emit(event.AgentUsage, r.meter.total())
		r.talk.answered()
		return err
	}
	return nil
}

// retryText is what a person reads of a retry. Not every CLI counts them, or says
// what the API answered.
func retryText(e provider.Retry) string {
	text := fmt.Sprintf("the API answered %d (%s)", e.Status, e.Reason)
	if e.Status == 0 {
		text = fmt.Sprintf("no answer from the API (%s)", e.Reason)
	}
	if e.MaxAttempts > 0 {
		text += fmt.Sprintf("; try %d of %d", e.Attempt, e.MaxAttempts)
	}
	return text
}

// count takes what an answer of the model API used.
func (r *run) count(e provider.Spent) error {
	begun, ended := r.meter.spent(e)
	if begun {
		r.overspent() // when it was to be the last, and is not
	}
	if !ended {
		return nil
	}
	used := r.meter.total()
	if err := r.job.Emit(event.AgentUsage, used); err != nil || r.job.Spend == nil {
		return err
	}
	r.spent = r.job.Spend(used)
	r.counted.answered(r.spent != nil)
	if !e.Done || e.More {
		r.overspent()
	}
	return nil
}

// overspent stops an agent whose budget is spent, before it spends more: a shell
// command that was asked to end would be followed by another question to the API.
func (r *run) overspent() {
	if r.spent != nil {
		r.child.Kill(errSpent)
	}
}

// limited stops an agent that met a limit which is worth no waiting for.
func (r *run) limited(e provider.Limit) {
	if r.job.Limit != nil && r.job.Limit(e) {
		r.child.Stop(fmt.Errorf("%w: %s", errLimited, e.Reason))
	}
}

// stuck stops an agent that goes in circles, before it goes round once more.
func (r *run) stuck(loop *event.Loop) error {
	if loop == nil {
		return nil
	}
	err := r.job.Emit(event.AgentStuck, *loop)
	r.child.Kill(fmt.Errorf("%w: %s", errStuck, loopText(*loop, r.job.Dir)))
	return err
}

// compare stops the agent at the first call that ran without being asked about, or
// although it was refused.
func (r *run) compare(result provider.ToolResult) {
	switch {
	case result.NeverRan || !r.command.Gated:
	case !r.job.Gate.Decided(result.ID):
		r.bypassed(fmt.Errorf("%w: call %s", errUngated, result.ID))
	case !result.IsError && r.job.Gate.Refused(result.ID):
		r.bypassed(fmt.Errorf("%w: call %s", errIgnored, result.ID))
	}
}

// asked notes a call that has to pass the gate.
func (r *run) asked(id string) {
	if r.command.Gated {
		r.called = append(r.called, id)
	}
}

// unasked stops the agent at its result when a call of which no outcome was shown
// never reached the gate: a provider that only claims to be gated may show none.
func (r *run) unasked() {
	if r.spent != nil {
		return // its calls are refused, whatever they are
	}
	if err := r.undecided(); err != nil {
		r.bypassed(err)
		return
	}
	if r.command.Gated && !r.met() {
		r.bypassed(errNeverMet)
	}
}

// undecided names a call that never reached the gate; nil: there is none.
func (r *run) undecided() error {
	i := slices.IndexFunc(r.called, func(id string) bool { return !r.job.Gate.Decided(id) })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%w: call %s", errUngated, r.called[i])
}

// bypassed ends an agent that went past the gate. It may have ended by itself
// meanwhile, which makes nothing of it right.
func (r *run) bypassed(cause error) {
	if r.bypass == nil {
		r.bypass = cause
	}
	r.child.Stop(cause)
}
