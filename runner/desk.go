package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Desk is where a plugin that judges finds the runner, until it has answered.
type Desk struct {
	workshop *Workshop
	ctx      context.Context // of the leaf: its clocks are in it
	end      context.CancelFunc
	leaf     string // path
	name     string // of the judge
	model    string
	account  *spending

	asking        chan struct{}   // one agent at a time: who has put a token in has what follows
	waits         *Wait           // what the run has to wait for before an agent can answer
	conversations map[string]bool // that agents have answered in

	logging sync.Mutex
	log     io.WriteCloser
	logged  int
}

// openDesk opens a desk for a judge of a leaf.
func (w *Workshop) openDesk(ctx context.Context, c Call, b beginning, name, model string) *Desk {
	ctx, end := context.WithCancel(ctx)
	return &Desk{
		workshop: w, ctx: ctx, end: end, leaf: c.Path, name: name, model: model, account: b.spending,
		asking: make(chan struct{}, 1), conversations: map[string]bool{},
	}
}

// close ends what the judge has left at work. The error is a *Wait when the run
// has to wait before an agent can answer.
func (d *Desk) close() error {
	d.end()
	d.logging.Lock()
	defer d.logging.Unlock()
	if d.log != nil {
		_ = d.log.Close() // the events are the record, the log is for people
	}
	d.asking <- struct{}{} // and nobody asks any more
	if d.waits == nil {
		return nil
	}
	return d.waits
}

// Ask has an agent answer that can only read, and charges it to the leaf. It ends
// with ctx and with the desk.
func (d *Desk) Ask(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
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
	if ask.Model == "" {
		ask.Model = d.model
	}
	answer, err := d.answer(within, ask)
	if errors.As(err, &d.waits) {
		d.end() // whatever else it asks has to wait, too
	}
	return answer, err
}

// mostLogged is how much a judge may log, in bytes.
const mostLogged = 1 << 20

// Log puts a line into the log of the leaf; pluginerr.ErrTooLarge after 1 MiB.
func (d *Desk) Log(text string) error {
	d.logging.Lock()
	defer d.logging.Unlock()
	line := d.name + ": " + strings.ReplaceAll(text, "\n", "\n    ") + "\n"
	if d.logged += len(line); d.logged > mostLogged {
		return fmt.Errorf("more than %d bytes for the log of a step: %w", mostLogged, pluginerr.ErrTooLarge)
	}
	if d.log == nil {
		log, _, err := d.workshop.Logs.Open(d.leaf)
		if err != nil {
			return err
		}
		d.log = log
	}
	_, err := io.WriteString(d.log, line)
	return err
}

// answer has an agent answer. After a limit it goes on when that is over.
func (d *Desk) answer(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
	start := event.AgentStart{Conversation: ask.Conversation, Resumed: ask.Conversation != "", Prompt: ask.Prompt}
	if !start.Resumed {
		start.Conversation = uuid.NewString()
	}
	for {
		if wait := d.account.reached(); wait != nil {
			return hostservice.Answer{}, wait
		}
		report, err := d.workshop.runAgent(ctx, d.account, start, AgentRun{Path: d.leaf + "/" + d.name, Model: ask.Model, ReadOnly: true})
		start.Conversation = conversation(report, start) // not every CLI takes the id that coven chose
		if wait := d.account.waits(); wait != nil && (err != nil || report.Kind != agent.None) {
			return hostservice.Answer{}, wait
		}
		switch {
		case err != nil:
			return hostservice.Answer{}, err
		case report.Kind == agent.Limit:
			start.Resumed = start.Resumed || report.Started
		case report.Kind != agent.None:
			return hostservice.Answer{}, fmt.Errorf("the agent gave no answer (%s): %s", report.Kind, report.Error)
		default:
			d.conversations[start.Conversation] = true
			return hostservice.Answer{Text: report.Text, Conversation: start.Conversation}, nil
		}
	}
}
