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
	errNoGate   = errors.New("the agent CLI could not reach coven's permission server")
	errUngated  = errors.New("a tool ran that coven's gate was never asked about")
)

// run is an agent at work.
type run struct {
	job      Job
	started  chan struct{} // closed when child is set
	ended    chan struct{} // closed when the run is over, also when nothing started
	stopping chan struct{} // closed when the agent is to be stopped
	child    *process.Child
	talk     *talk

	meter  meter
	model  string // that the agent speaks to
	report Report
	broken error // coven could not record or read the run
	unfed  error // the same of what it says to the agent
}

func newRun(job Job) *run {
	return &run{
		job: job, talk: newTalk(), started: make(chan struct{}), ended: make(chan struct{}), stopping: make(chan struct{}),
	}
}

// admit says whether a process that connected to the gate is the agent's.
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
func (r *run) follow(ctx context.Context, lost <-chan struct{}, task []byte) Report {
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() { r.feed(ctx, task, done) })
	side.Go(func() { r.guard(lost, done) })
	r.read(ctx)
	exit := r.child.Wait()
	close(done)
	side.Wait()
	if err := r.child.Close(); err != nil && r.broken == nil {
		r.broken = fmt.Errorf("read the agent's output: %w", err)
	}
	if r.broken == nil {
		r.broken = r.unfed
	}
	r.judge(exit)
	if _, unheard := r.talk.open(); unheard > 0 {
		r.warn("the agent ended before it heard the last %d of the messages to it", unheard)
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
	lines := bufio.NewReaderSize(r.child.Output(), 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 && r.broken == nil {
			if r.broken = r.take(ctx, line); r.broken != nil {
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

func (r *run) take(ctx context.Context, line []byte) error {
	events, err := r.job.Provider.Parse(ctx, line)
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
		r.model = cmp.Or(e.Model, r.job.Model)
		if slices.Contains(e.FailedServers, mcp.Name) {
			r.child.Stop(errNoGate)
		}
	case provider.Text:
		return r.job.Emit(event.AgentText, event.Text{Text: e.Text})
	case provider.ToolCall:
		call := gate.Call{ID: e.ID, Tool: e.Name, Input: e.Input}
		return r.job.Emit(event.AgentTool, event.Tool{ID: e.ID, Name: e.Name, Summary: gate.Summary(call, r.job.Dir)})
	case provider.ToolResult:
		r.compare(e)
	case provider.Retry:
		text := fmt.Sprintf("the API answered %d (%s); try %d of %d", e.Status, e.Reason, e.Attempt, e.MaxAttempts)
		return r.job.Emit(event.AgentRetry, event.Text{Text: text})
	case provider.Heard:
		r.talk.heard(e.ID)
	case provider.Spent:
		if r.meter.spent(e) {
			return r.used()
		}
	case provider.Result:
		r.meter.settle(r.report.Result.Usage)
		r.talk.answered()
		return r.used()
	}
	return nil
}

// used says what the run has used so far, and stops the agent when that is more
// than it may.
func (r *run) used() error {
	total := r.meter.total()
	total.Model = r.model
	if err := r.job.Emit(event.AgentUsage, total); err != nil {
		return err
	}
	if r.job.Spend == nil {
		return nil
	}
	if err := r.job.Spend(total); err != nil {
		r.child.Stop(err)
	}
	return nil
}

// compare stops the agent at the first call that ran without being asked about.
func (r *run) compare(result provider.ToolResult) {
	if result.NeverRan || r.job.Gate.Decided(result.ID) {
		return
	}
	r.child.Stop(fmt.Errorf("%w: call %s", errUngated, result.ID))
}
