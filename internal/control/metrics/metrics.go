// Package metrics computes the performance of agents from the records of sessions: their success, duration,
// and approval by people and evaluators. Package spending adds up their usage.
//
// Rules. A run is an agent step with a result, or a subagent that has ended. A subagent counts for itself,
// and not for the agent that started it. A percentile is the smallest duration that at least that share of
// the runs does not exceed.
package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// The kinds of runs.
const (
	Primary  = "primary"  // of the agent of a step
	Subagent = "subagent" // of an agent that another agent or a person started
)

// Run is one run of an agent.
type Run struct {
	Agent     string
	Kind      string
	Ended     time.Time
	Duration  time.Duration // at work
	Succeeded bool
	Answered  int // questions about tool calls that have an answer
	Approved  int // number of them that were approved
	Attempts  int // attempts judged by an evaluator; 0 if the work is not evaluated
	Passed    bool
}

// Runs returns the runs of a session in the order of their ends.
func Runs(v session.View, events []event.Event) []Run {
	s := steps{open: map[string]*step{}}
	for _, e := range events {
		s.take(e)
	}
	all := s.done
	for _, sub := range v.Subagents {
		if sub.Ended.IsZero() {
			continue
		}
		r := Run{
			Agent: sub.Agent, Kind: Subagent, Ended: sub.Ended, Duration: time.Duration(sub.Duration) * time.Millisecond,
			Succeeded: sub.Status == session.Completed,
		}
		r.Attempts = len(sub.Reflection)
		r.Passed = r.Attempts > 0 && sub.Reflection[r.Attempts-1].Passed
		r.answers(v, func(a session.Approval) bool { return a.TraceID == sub.TraceID })
		all = append(all, r)
	}
	for i := range s.done {
		path := s.paths[i]
		since, until := s.from[i], all[i].Ended
		all[i].answers(v, func(a session.Approval) bool {
			return a.TraceID == "" && a.Path == path && !a.Asked.Before(since) && !a.Asked.After(until)
		})
	}
	slices.SortStableFunc(all, func(a, b Run) int { return a.Ended.Compare(b.Ended) })
	return all
}

// answers counts the answers to the questions of a run.
func (r *Run) answers(v session.View, asked func(session.Approval) bool) {
	for _, a := range v.Approvals {
		if a.Open() || !asked(a) || a.Answer.Answer == event.Unasked {
			continue
		}
		r.Answered++
		switch a.Answer.Answer {
		case event.Approved, event.Modified, event.AutoApprove:
			r.Approved++
		}
	}
}

// steps collects the runs of the agents of steps.
type steps struct {
	open  map[string]*step // by path
	done  []Run
	paths []string    // of done
	from  []time.Time // when they started
}

// step is an agent step without a result.
type step struct {
	agent   string
	started time.Time
}

func (s *steps) take(e event.Event) {
	switch e.Type {
	case event.StepStarted:
		if event.As[event.StepStart](e).Kind == "agent" && s.open[e.Path] == nil {
			s.open[e.Path] = &step{started: e.Time}
		}
	case event.AgentStarted:
		if at := s.open[e.Path]; at != nil {
			at.agent = event.As[event.AgentStart](e).Agent
		}
	case event.StepCompleted:
		if at := s.open[e.Path]; at != nil {
			s.complete(e, at)
		}
	}
}

func (s *steps) complete(e event.Event, at *step) {
	delete(s.open, e.Path)
	result := event.As[event.Result](e)
	run := Run{Agent: cmp.Or(result.Agent, at.agent, "build"), Kind: Primary}
	if run.Agent == spawn.User { // the step of coven spawn runs no model
		return
	}
	run.Ended, run.Succeeded = e.Time, result.OK
	run.Duration = cmp.Or(result.Used.Wall, e.Time.Sub(at.started))
	s.done, s.paths, s.from = append(s.done, run), append(s.paths, e.Path), append(s.from, at.started)
}

// Agent is the performance of one agent.
type Agent struct {
	Agent     string  `json:"agent"`
	Kind      string  `json:"kind"` // primary or subagent
	Runs      int     `json:"runs"`
	Succeeded int     `json:"succeeded"`
	Success   float64 `json:"success_rate"`
	P50       int64   `json:"p50_ms"`
	P95       int64   `json:"p95_ms"`

	Approvals  Approvals  `json:"approvals"`
	Reflection Reflection `json:"reflection"`
}

// Approvals summarizes the answers to the questions of an agent.
type Approvals struct {
	Answered int      `json:"answered"`
	Approved int      `json:"approved"`
	Rate     *float64 `json:"rate"` // null if no question was answered
}

// Reflection summarizes the evaluations of the work of an agent.
type Reflection struct {
	Runs     int      `json:"runs"` // evaluated runs
	Passed   int      `json:"passed"`
	Attempts int      `json:"attempts"`
	Rate     *float64 `json:"rate"` // null if no run was evaluated
}

// Of summarizes runs by agent and kind, sorted by both.
func Of(runs []Run) []Agent {
	type key struct{ agent, kind string }
	by := map[key][]Run{}
	for _, r := range runs {
		k := key{r.Agent, r.Kind}
		by[k] = append(by[k], r)
	}
	all := []Agent{}
	for k, runs := range by {
		all = append(all, agentOf(k.agent, k.kind, runs))
	}
	slices.SortFunc(all, func(a, b Agent) int { return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Kind, b.Kind)) })
	return all
}

func agentOf(name, kind string, runs []Run) Agent {
	a := Agent{Agent: name, Kind: kind, Runs: len(runs)}
	var took []time.Duration
	for _, r := range runs {
		if r.Succeeded {
			a.Succeeded++
		}
		a.Approvals.Answered += r.Answered
		a.Approvals.Approved += r.Approved
		if r.Attempts > 0 {
			a.Reflection.Runs++
			a.Reflection.Attempts += r.Attempts
		}
		if r.Passed {
			a.Reflection.Passed++
		}
		took = append(took, r.Duration)
	}
	slices.Sort(took)
	a.Success = float64(a.Succeeded) / float64(a.Runs)
	a.P50, a.P95 = percentile(took, 50).Milliseconds(), percentile(took, 95).Milliseconds()
	a.Approvals.Rate = rate(a.Approvals.Approved, a.Approvals.Answered)
	a.Reflection.Rate = rate(a.Reflection.Passed, a.Reflection.Runs)
	return a
}

func rate(part, of int) *float64 {
	if of == 0 {
		return nil
	}
	share := float64(part) / float64(of)
	return &share
}

// percentile returns the smallest of sorted durations that p percent of them do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	rank := (len(sorted)*p + 99) / 100
	return sorted[max(rank, 1)-1]
}
