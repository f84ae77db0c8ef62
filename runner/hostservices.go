package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/runner/engine"
	"github.com/google/uuid"
)

// HostServices serves the requests of a reviewer or arbiter plugin during one call.
type HostServices struct {
	executor *Executor
	ctx      context.Context // context of the leaf, with its clocks
	end      context.CancelFunc
	leaf     string // path of the leaf
	reviewer string // name of the reviewer or arbiter
	model    string
	usage    *leafUsage

	asking        chan struct{}   // holds a token while an agent runs, and guards the following fields
	waits         *Wait           // set if the run has to wait before an agent can answer
	conversations map[string]bool // conversations in which agents have answered

	logging sync.Mutex
	log     io.WriteCloser
	logged  int
}

// openServices returns the services for one call of a plugin.
func (x *Executor) openServices(ctx context.Context, c engine.Call, b leafStart, name, model string) *HostServices {
	ctx, end := context.WithCancel(ctx)
	return &HostServices{
		executor: x, ctx: ctx, end: end, leaf: c.Path, reviewer: name, model: model, usage: b.usage,
		asking: make(chan struct{}, 1), conversations: map[string]bool{},
	}
}

// close stops the agents that the plugin left running. The error is a *Wait if the run has to wait before
// an agent can answer.
func (d *HostServices) close() error {
	d.end()
	d.logging.Lock()
	defer d.logging.Unlock()
	if d.log != nil {
		_ = d.log.Close() // the events are the record; the log is for people
	}
	d.asking <- struct{}{} // no agent starts after this
	if d.waits == nil {
		return nil
	}
	return d.waits
}

// Ask runs a read-only agent and charges its usage to the leaf. The agent stops when ctx ends or the plugin
// has answered.
func (d *HostServices) Ask(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
	within, cancel := context.WithCancelCause(d.ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	select {
	case d.asking <- struct{}{}:
		defer func() { <-d.asking }()
	case <-within.Done():
		return hostservice.Answer{}, context.Cause(within)
	}
	if within.Err() != nil {
		return hostservice.Answer{}, context.Cause(within)
	}
	if ask.Conversation != "" && !d.conversations[ask.Conversation] {
		return hostservice.Answer{}, fmt.Errorf("no agent has answered in conversation %q in this call: %w", ask.Conversation, pluginerr.ErrInvalid)
	}
	run := AgentRun{Path: d.leaf + "/" + d.reviewer, Agent: ask.Agent, Model: cmp.Or(ask.Model, d.model), ReadOnly: true}
	if ask.Agent != "" {
		provider, model, err := d.executor.Agents.Reader(ask.Agent)
		if err != nil {
			return hostservice.Answer{}, err
		}
		run.Provider, run.Model = provider, cmp.Or(ask.Model, model, d.model)
	}
	answer, err := d.answer(within, ask, run)
	if errors.As(err, &d.waits) {
		d.end() // further requests would have to wait as well
	}
	return answer, err
}

// maxLogged limits the log of a call, in bytes.
const maxLogged = 1 << 20

// Log adds a line to the log of the leaf. It fails with pluginerr.ErrTooLarge after 1 MiB.
func (d *HostServices) Log(text string) error {
	d.logging.Lock()
	defer d.logging.Unlock()
	line := d.reviewer + ": " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
	if d.logged += len(line); d.logged > maxLogged {
		return fmt.Errorf("more than %d bytes for the log of a step: %w", maxLogged, pluginerr.ErrTooLarge)
	}
	if d.log == nil {
		log, _, err := d.executor.Journal.OpenLog(d.leaf)
		if err != nil {
			return err
		}
		d.log = log
	}
	_, err := io.WriteString(d.log, line)
	return err
}

// answer runs an agent until it has answered. After a rate limit, the agent continues.
func (d *HostServices) answer(ctx context.Context, ask hostservice.Ask, run AgentRun) (hostservice.Answer, error) {
	start := event.AgentStart{Conversation: ask.Conversation, Resumed: ask.Conversation != "", Prompt: ask.Prompt}
	if !start.Resumed {
		start.Conversation = uuid.NewString()
	}
	for {
		if wait := d.usage.exhausted(); wait != nil {
			return hostservice.Answer{}, wait
		}
		report, err := d.executor.runAgent(ctx, d.usage, start, run)
		start.Conversation = conversation(report, start) // some CLIs choose their own ID
		if wait := d.usage.exceeded(); wait != nil && (err != nil || report.Kind != driver.None) {
			return hostservice.Answer{}, wait
		}
		switch {
		case err != nil:
			return hostservice.Answer{}, err
		case report.Kind == driver.Limit:
			start.Resumed = start.Resumed || report.Started
		case report.Kind != driver.None:
			return hostservice.Answer{}, fmt.Errorf("the agent gave no answer (%s): %s", report.Kind, report.Error)
		default:
			d.conversations[start.Conversation] = true
			return hostservice.Answer{Text: report.Text, Conversation: start.Conversation}, nil
		}
	}
}
