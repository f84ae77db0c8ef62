package driver

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/gate"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/tool"
	"github.com/coven-run/coven/plugins/provider"
)

// Reasons for which a run stops its agent.
var (
	errGateLost = errors.New("the connection to coven's gate was lost while the agent worked")
	errNoGate   = errors.New("the agent CLI could not reach coven's gate")
	errLogin    = errors.New("the API answered")
	errLimited  = errors.New("the API refuses requests")
	errSpent    = errors.New("spent")
	errStuck    = errors.New("the agent repeats itself")
	errAsks     = fmt.Errorf("the agent CLI made more than %d requests without waiting for the answers", maxAsks)
	errAnswer   = errors.New("cannot answer a request of the agent CLI")
	errOver     = errors.New("the agent is done")
)

// run is a running agent.
type run struct {
	phases
	job      Job
	gate     Gate // for requests of the CLI: the usage of their answers is already known
	request  provider.Request
	command  provider.Command
	child    *process.Child
	owed     *owedResults
	asks     *asks
	answered *answered
	notes    chan event.Message // from coven to the agent
	sending  sync.Mutex         // serializes writes to the agent's input

	handling sync.Mutex // serializes the handling of events
	assembly assembly
	calls    calls
	audit    audit
	loops    *LoopDetector
	meter    meter
	counted  *usageWait
	spent    error // the error of Job.Spend
	report   Report
	plain    string       // beginning of the last output line that is plain text
	printed  atomic.Int64 // reads of the agent's output so far
	failures
}

// phases are the phases of a run. A channel is closed when its phase begins.
type phases struct {
	started  chan struct{} // child is set
	resulted chan struct{} // the agent has returned a result
	stopping chan struct{} // the agent has to stop; call stop
	ended    chan struct{} // the run is over or failed to start
	stop     func()
}

// failures are the reasons for which coven could not carry out a run. Each is set by one goroutine.
type failures struct {
	recordErr error // coven could not record or read the run
	sendErr   error // coven could not send something to the agent
	storeErr  error // the worktree could not be stored
	noResume  error // the CLI cannot resume conversations
}

func newRun(job Job) *run {
	if job.MaxTurns > 0 {
		job.Spend = withTurns(job.Spend, job.MaxTurns)
	}
	r := &run{
		phases: phases{
			started: make(chan struct{}), resulted: make(chan struct{}), stopping: make(chan struct{}), ended: make(chan struct{}),
		},
		job: job, gate: job.Gate, notes: make(chan event.Message, maxNotes), owed: newOwedResults(), answered: newAnswered(),
		calls: newCalls(), audit: audit{gate: job.Gate}, loops: NewLoopDetector(job.SameCall), counted: &usageWait{},
	}
	if job.Spend != nil {
		r.job.Gate = budgetGate{job.Gate, r.counted}
	}
	r.job.Gate = askingGate{r.job.Gate, r}
	r.asks = newAsks(r)
	return r
}

// turnsError is the error of an agent that exceeds its number of turns.
type turnsError struct{ most int }

func (e *turnsError) Error() string {
	return fmt.Sprintf("it is not done after %s of the model, its max_turns", oneline.Count(e.most, "turn"))
}

// withTurns adds a limit of turns to Job.Spend, which may be nil.
func withTurns(spend func(event.Usage) error, most int) func(event.Usage) error {
	return func(used event.Usage) error {
		if spend != nil {
			if err := spend(used); err != nil {
				return err
			}
		}
		if used.Turns >= most {
			return &turnsError{most}
		}
		return nil
	}
}

// admit reports whether a process that connected to the gate belongs to the agent.
func (r *run) admit(pid int) bool {
	select {
	case <-r.started:
		return r.child.Contains(pid)
	case <-r.ended:
		return false
	}
}

// holds reports whether a process belongs to the agent. Unlike admit, it does not wait for the start.
func (r *run) holds(pid int) bool {
	select {
	case <-r.started:
		return r.child.Contains(pid)
	default:
		return false
	}
}

func (r *run) depth() int { return r.job.Depth }

// process returns the CLI's process, once it has started.
func (r *run) process() *process.Child {
	<-r.started
	return r.child
}

func (r *run) turnedAway(err error) {
	// The caller does not see the reason; the warning is for the user.
	r.warn("%v", err)
}

// follow sends the agent its input, reads its output to the end and returns the report.
func (r *run) follow(ctx context.Context, lost <-chan struct{}) Report {
	ctx = context.WithoutCancel(ctx)
	done := make(chan struct{})
	var side sync.WaitGroup
	side.Go(func() { r.feed(ctx, done) })
	side.Go(func() { r.asks.serve(done) })
	if r.command.Gated {
		side.Go(func() { r.guard(lost, done) })
	}
	if r.job.Save != nil {
		side.Go(func() { r.save(ctx, done) })
	}
	r.read(ctx)
	r.flushPending()
	exit := r.child.Wait()
	close(done)
	r.asks.cancel() // a person need not answer any more
	side.Wait()
	if err := r.child.Close(); err != nil && r.recordErr == nil {
		r.recordErr = fmt.Errorf("read the agent's output: %w", err)
	}
	if r.recordErr == nil {
		r.recordErr = cmp.Or(r.sendErr, r.storeErr)
	}
	r.conclude(exit)
	r.report.Used = r.meter.total()
	r.report.fillUsage(r.meter)
	if _, unread := r.owed.open(); unread > 0 {
		r.warn("the agent did not read %s", oneline.Count(unread, "message"))
	}
	return r.report
}

// guard stops the agent if the connection to its gate is lost before the agent is done.
func (r *run) guard(lost, done <-chan struct{}) {
	select {
	case <-done:
	case <-lost:
		if !r.owed.done() {
			r.child.Stop(errGateLost)
		}
	}
}

// read reads the agent's output line by line until it ends.
func (r *run) read(ctx context.Context) {
	out := bufio.NewReaderSize(&bounded{r.child.Output(), maxOutput}, 64<<10)
	for {
		lines, err := wholeLines(out)
		r.printed.Add(1)
		if len(bytes.TrimSpace(lines)) > 0 && r.recordErr == nil {
			if r.recordErr = r.take(ctx, lines); r.recordErr != nil {
				r.child.Stop(r.recordErr)
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && r.recordErr == nil {
				r.recordErr = fmt.Errorf("read the agent's output: %w", err)
				r.child.Stop(r.recordErr)
			}
			return
		}
	}
}

// maxOutput limits the output of one run of an agent, in bytes. It is many times that of the longest runs known.
const maxOutput = 256 << 20

// bounded is a reader that fails after the given number of bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLongOutput
	}
	return n, err
}

var errLongOutput = fmt.Errorf("it is longer than %d bytes", maxOutput)

// maxLine limits the length of a line of the agent's output, in bytes. Plugins do not accept longer lines.
const maxLine = 64 << 20

// wholeLines reads a line and all further lines that are already buffered.
func wholeLines(out *bufio.Reader) ([]byte, error) {
	lines, err := oneLine(out)
	if err != nil {
		return lines, err
	}
	there, _ := out.Peek(out.Buffered()) // cannot fail: the data is buffered
	more := bytes.LastIndexByte(there, '\n') + 1
	lines = append(lines, there[:more]...)
	_, err = out.Discard(more)
	return lines, err
}

// oneLine reads a line. On an error it returns the part before the error.
func oneLine(out *bufio.Reader) (line []byte, err error) {
	for len(line) <= maxLine {
		part, err := out.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
	return nil, fmt.Errorf("a line is longer than %d bytes", maxLine)
}

func (r *run) take(ctx context.Context, lines []byte) error {
	events, err := r.job.Provider.Parse(ctx, lines)
	if err != nil {
		return err
	}
	r.handling.Lock()
	defer r.handling.Unlock()
	if len(events) == 0 {
		r.plain = cmp.Or(plainText(lines), r.plain)
	}
	for _, e := range events {
		for _, whole := range r.assembly.add(e) {
			if err := r.deliver(whole); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPlain limits the text that is kept of a plain line, in characters.
const maxPlain = 300

// plainText returns the beginning of the last output line that is not JSON, such as an error message on
// standard error. It returns "" if there is none.
func plainText(lines []byte) (text string) {
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("{")) {
			text = oneline.Clip(strings.ToValidUTF8(string(line[:min(len(line), 4*maxPlain)]), ""), maxPlain)
		}
	}
	return text
}

// flushPending handles the pending text after the agent has ended.
func (r *run) flushPending() {
	r.handling.Lock()
	defer r.handling.Unlock()
	for _, e := range r.assembly.flush() {
		if r.recordErr == nil {
			r.recordErr = r.deliver(e)
		}
	}
}

// deliver handles an event unless it repeats an earlier one.
func (r *run) deliver(e provider.Event) error {
	if r.assembly.asked && r.calls.repeats(e) {
		return nil
	}
	return errors.Join(r.job.Say(e), r.handle(e))
}

func (r *run) handle(e provider.Event) error {
	r.report.add(e)
	switch e := e.(type) {
	case provider.Started:
		r.meter.model = e.Model
		if slices.Contains(e.FailedServers, mcp.Name) {
			r.child.Stop(errNoGate)
		}
	case provider.Text:
		return r.job.Emit(event.AgentText, event.Text{Text: e.Text})
	case provider.ToolCall:
		r.loops.Call(e)
		r.counted.call(e.ID)
		r.audit.asked(e.ID)
		r.calls.spawns[e.ID] = strings.HasSuffix(e.Name, tool.SpawnAgent.Name)
		call := gate.Call{ID: e.ID, Tool: e.Name, Input: e.Input}
		return r.job.Emit(event.AgentTool, event.Tool{ID: e.ID, Name: e.Name, Summary: gate.Summary(call, r.job.Dir)})
	case provider.ToolResult:
		return r.callEnded(e)
	case provider.Retry:
		r.refused(e)
		return r.job.Emit(event.AgentRetry, event.Text{Text: retryText(e)})
	case provider.Acknowledged:
		r.owed.acknowledged(e.ID)
		r.loops.Forget() // a person's message may change the task
		r.overspent()
	case provider.Limit:
		r.limited(e)
	case provider.Asked:
		return r.takeRequest(e)
	case provider.Spent:
		return r.count(e)
	case provider.Result:
		r.turnedDown(e)
		r.meter.applyResult(r.report.Result.Usage)
		if r.spent == nil { // otherwise all its calls are refused
			r.checked(r.audit.done())
		}
		err := r.job.Emit(event.AgentUsage, r.meter.total())
		r.owed.answered()
		r.finish()
		return err
	}
	return nil
}

// turnedDown reports that the API refused a message for the account. The CLI has given up, so it need not be stopped.
func (r *run) turnedDown(e provider.Result) {
	if e.Limit && r.job.Limit != nil {
		r.job.Limit(provider.Limit{Reason: "rate_limit", Status: e.Status})
	}
	if fault := FaultOf(e); fault != "" && r.job.Fault != nil {
		r.job.Fault(fault, oneline.Of(e.Error))
	}
}

// refused stops an agent whose login the API has refused twice. The CLI renews its login
// after the first refusal, and otherwise repeats the request for minutes.
func (r *run) refused(e provider.Retry) {
	if e.Status == http.StatusUnauthorized && e.Attempt > 1 {
		r.child.Stop(fmt.Errorf("%w %d (%s)", errLogin, e.Status, e.Reason))
	}
}

// retryText describes a retry. Not every CLI counts retries or reports the API's answer.
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

// count adds the usage of an answer of the model API.
func (r *run) count(e provider.Spent) error {
	started, ended := r.meter.spent(e)
	if started {
		r.overspent() // the answer seemed to be the last one
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

// overspent kills an agent that has spent its budget. After SIGTERM, the CLI would
// end its shell command and send another request to the API.
func (r *run) overspent() {
	if r.spent != nil {
		r.child.Kill(errSpent)
	}
}

// limited stops an agent that reached a limit for which its CLI should not wait.
func (r *run) limited(e provider.Limit) {
	if r.job.Limit != nil && r.job.Limit(e) {
		r.child.Stop(fmt.Errorf("%w: %s", errLimited, e.Reason))
	}
}

// stuck stops an agent that repeats itself.
func (r *run) stuck(loop *event.Loop) error {
	if loop == nil {
		return nil
	}
	err := r.job.Emit(event.AgentStuck, *loop)
	r.child.Kill(fmt.Errorf("%w: %s", errStuck, LoopText(*loop, r.job.Dir)))
	return err
}

// checked stops an agent that bypassed the gate. The run fails even if the agent has already ended.
func (r *run) checked(bypass error) {
	if bypass != nil {
		r.child.Stop(bypass)
	}
}

// callEnded handles the result of a tool call.
func (r *run) callEnded(e provider.ToolResult) error {
	refused := r.calls.refused[e.ID]
	r.checked(r.audit.result(e, refused))
	r.job.Gate.Ended(e.ID)
	if e.IsError && !refused && !r.calls.spawns[e.ID] {
		if err := r.job.Emit(event.AgentToolFailed, ToolFailure(e)); err != nil {
			return err
		}
	}
	return r.stuck(r.loops.Result(e))
}

// maxToolError limits the recorded error of a tool call, in characters.
const maxToolError = 200

// ToolFailure returns the record of a failed call.
func ToolFailure(r provider.ToolResult) event.ToolFailure {
	return event.ToolFailure{ID: r.ID, Error: oneline.Clip(r.Text, maxToolError)}
}
