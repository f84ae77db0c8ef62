package driver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/provider"
)

// Recall reconstructs the report of an interrupted run from its transcript. complete reports
// whether the agent had returned its last result. In that case the unknown exit status of
// the process does not matter.
func Recall(ctx context.Context, p provider.Provider, transcript io.Reader) (report Report, complete bool, err error) {
	lines := bufio.NewReaderSize(transcript, 64<<10)
	var used meter
	var whole assembly
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // ignore an incomplete line
			for _, e := range whole.flush() {
				report.add(e)
			}
			report.fillUsage(used)
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
		for _, e := range joined(&whole, events) {
			report.add(e)
			switch e := e.(type) {
			case provider.Started, provider.Acknowledged:
				complete = false // another stretch of work starts
			case provider.Spent:
				used.spent(e)
			case provider.Result:
				complete = true
			}
		}
	}
}

// joined adds events to whole and returns the complete ones.
func joined(whole *assembly, events []provider.Event) (ready []provider.Event) {
	for _, e := range events {
		ready = append(ready, whole.add(e)...)
	}
	return ready
}

// fillUsage sets the usage of a result whose CLI reports usage only for answers.
func (r *Report) fillUsage(used meter) {
	if r.Result != (provider.Result{}) && r.Result.Usage == (provider.Usage{}) {
		r.Result.Usage = used.sum()
	}
}

func (r *Report) add(e provider.Event) {
	switch e := e.(type) {
	case provider.Started:
		if !r.Started { // later ones may be output of the agent's commands
			r.Started, r.Conversation = true, e.Conversation
		}
		r.Kind, r.Error = None, ""
	case provider.Text:
		r.Text = e.Text
	case provider.Limit:
		r.Limit = e
	case provider.Acknowledged:
		r.Acknowledged = append(r.Acknowledged, e.ID)
	case provider.Result:
		e.Usage = plausible(e.Usage)
		if e.Text != "" {
			r.Text = e.Text
		}
		if r.Text != "" && (e.Text != "" || e.OK) { // not every CLI repeats its last text
			r.Said = append(r.Said, r.Text)
		}
		r.Result = sum(r.Result, e)
		r.Kind, r.Error = verdict(e)
	}
}

// sum returns the last result with the total usage of all results. The cost of a result
// already covers the whole process.
func sum(before, last provider.Result) provider.Result {
	cost := max(before.Usage.CostUSD, last.Usage.CostUSD)
	last.Usage = last.Usage.Add(before.Usage)
	last.Usage.CostUSD = cost
	last.Turns += before.Turns
	return last
}

// verdict derives the kind of failure and the error from the result alone.
func verdict(result provider.Result) (event.ErrorType, string) {
	switch {
	case result.Limit:
		return Limit, oneline.Of(result.Error)
	case !result.OK && result.Status == http.StatusUnauthorized:
		return Login, oneline.Of(result.Error)
	case FaultOf(result) != "":
		return Limit, oneline.Of(result.Error)
	case !result.OK:
		return Failed, oneline.Of(result.Error)
	}
	return None, ""
}
