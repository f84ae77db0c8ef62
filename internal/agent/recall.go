package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// Recall reads the report of a run that nobody saw the end of from its
// transcript. complete reports whether the agent had given its last result; how
// its process ended is not known then, and does not matter any more.
func Recall(ctx context.Context, p provider.Provider, transcript io.Reader) (report Report, complete bool, err error) {
	lines := bufio.NewReaderSize(transcript, 64<<10)
	var used meter
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // a line without its end was never whole
			report.reckon(used)
			return report, complete, nil
		}
		if err != nil {
			return report, false, fmt.Errorf("read the transcript: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		events, err := p.Parse(ctx, line)
		if err != nil {
			return report, false, err
		}
		for _, e := range events {
			report.remember(e)
			switch e := e.(type) {
			case provider.Started, provider.Acknowledged:
				complete = false // another stretch of work begins
			case provider.Spent:
				used.spent(e)
			case provider.Result:
				complete = true
			}
		}
	}
}

// reckon fills in what a run used whose CLI says so of its answers only.
func (r *Report) reckon(used meter) {
	if r.Result != (provider.Result{}) && r.Result.Usage == (provider.Usage{}) {
		r.Result.Usage = used.sum()
	}
}

// remember takes what the agent said into the report.
func (r *Report) remember(e provider.Event) {
	switch e := e.(type) {
	case provider.Started:
		if !r.Started { // what comes later, an agent's command may have printed
			r.Started, r.Conversation = true, e.Conversation
		}
		r.Kind, r.Error = None, ""
	case provider.Text:
		r.Text = e.Text
	case provider.Limit:
		r.Limit = e
	case provider.Acknowledged:
		r.Heard = append(r.Heard, e.ID)
	case provider.Result:
		if e.Text != "" {
			r.Text = e.Text
		}
		if r.Text != "" && (e.Text != "" || e.OK) { // not every CLI says its last text again
			r.Said = append(r.Said, r.Text)
		}
		r.Result = sum(r.Result, e)
		r.Kind, r.Error = verdict(e)
	}
}

// sum is a process's last result, with what all of them used. A result has the
// cost of the whole process.
func sum(before, last provider.Result) provider.Result {
	cost := max(before.Usage.CostUSD, last.Usage.CostUSD)
	last.Usage = last.Usage.Add(before.Usage)
	last.Usage.CostUSD = cost
	last.Turns += before.Turns
	return last
}

// verdict is what a result alone says about a run.
func verdict(result provider.Result) (event.ErrorType, string) {
	switch {
	case result.Limit:
		return Limit, oneline.Of(result.Error)
	case !result.OK:
		return Failed, oneline.Of(result.Error)
	}
	return None, ""
}
