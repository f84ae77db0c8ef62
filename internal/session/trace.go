package session

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session/trace"
)

// TraceID returns the default trace ID of the session's events.
func (s *Session) TraceID() string { return s.trace }

// traced updates the execution trace.
func (v *View) traced(e event.Event) error {
	switch e.Type {
	case event.AgentStarted:
		return v.agentStarted(e)
	case event.AgentUsage:
		var u event.Usage
		if err := e.Decode(&u); err != nil {
			return err
		}
		if run := v.run(e); run != nil {
			run.Tokens = v.tokensBefore[run.key()] + u.Input + u.Output + u.CacheRead + u.CacheWrite
			run.Model = cmp.Or(u.Model, run.Model)
		}
	case event.StepCompleted:
		return v.leafEnded(e)
	case event.SpawnStarted:
		if s := v.subagent(event.As[event.SpawnStart](e).ID); s != nil {
			v.Trace = append(v.Trace, tracedRun{Entry: entryOf(*s)})
		}
	case event.SpawnEnded:
		v.subagentEnded(e)
	case event.SessionStopped, event.SessionFailed, event.SessionCancelled, event.SessionBlocked:
		for i := range v.Trace {
			if v.Trace[i].Status == string(Running) {
				v.Trace[i].end(e.Time, string(Interrupted), "")
			}
		}
	}
	return nil
}

// tracedRun is an entry of the execution trace under construction.
type tracedRun struct{ trace.Entry }

// key identifies the run within the session.
func (r tracedRun) key() string {
	return r.TraceID + " " + r.Path + " " + r.ID + " " + r.SpawnedAt.String()
}

func (r *tracedRun) end(at time.Time, status, why string) {
	r.CompletedAt, r.DurationMS = at, at.UnixMilli()-r.SpawnedAt.UnixMilli()
	r.Status, r.Error = status, why
}

// agentStarted begins or continues the run of a step's or reviewer's agent.
func (v *View) agentStarted(e event.Event) error {
	var start event.AgentStart
	if err := e.Decode(&start); err != nil {
		return err
	}
	if run := v.run(e); run != nil {
		if v.tokensBefore == nil {
			v.tokensBefore = map[string]int64{}
		}
		v.tokensBefore[run.key()] = run.Tokens
		run.Status, run.CompletedAt, run.DurationMS, run.Error = string(Running), time.Time{}, 0, ""
		return nil
	}
	if start.Agent == "user" || event.IsSpawned(e.Path) { // a person requested the subagent that follows
		return nil
	}
	entry := trace.Entry{
		TraceID: e.TraceID, AgentName: event.AgentOf(e), Path: event.LeafOf(e.Path), Reviewer: strings.TrimPrefix(e.Path[len(event.LeafOf(e.Path)):], "/"),
		SpawnedAt: e.Time, Status: string(Running), Model: v.Info.Model,
	}
	entry.ParentChain = []string{"user", entry.AgentName}
	v.Trace = append(v.Trace, tracedRun{entry})
	return nil
}

// run returns the unfinished run that an agent's event belongs to, or nil.
func (v *View) run(e event.Event) *tracedRun {
	for i := range slices.Backward(v.Trace) {
		r := &v.Trace[i]
		own := r.ID == "" && r.Path == event.LeafOf(e.Path) && e.Path == r.Path+slash(r.Reviewer)
		spawned := r.ID != "" && r.TraceID == e.TraceID
		if own || spawned {
			if r.Status == string(Running) || r.Status == string(Interrupted) {
				return r
			}
			return nil
		}
	}
	return nil
}

func slash(name string) string {
	if name == "" {
		return ""
	}
	return "/" + name
}

// leafEnded ends the runs of a step's agent and its reviewers.
func (v *View) leafEnded(e event.Event) error {
	var r event.Result
	if err := e.Decode(&r); err != nil {
		return err
	}
	for i := range v.Trace {
		run := &v.Trace[i]
		if run.ID != "" || run.Path != e.Path || run.Status != string(Running) {
			continue
		}
		if run.Reviewer == "" && !r.OK {
			run.end(e.Time, string(Failed), r.Error)
			continue
		}
		run.end(e.Time, string(Completed), "")
	}
	return nil
}

// entryOf returns the trace entry of a starting subagent.
func entryOf(s Subagent) trace.Entry {
	return trace.Entry{
		TraceID: s.TraceID, ParentTraceID: s.ParentTraceID, AgentName: s.Agent, ParentChain: s.ParentChain, ID: s.ID, Path: s.step,
		SpawnedAt: s.Started, Status: string(Running), Model: s.Model,
	}
}

// subagentEnded ends the run of a subagent. The subagent may never have started.
func (v *View) subagentEnded(e event.Event) {
	s := v.subagent(event.As[event.SpawnEnd](e).ID)
	if s == nil {
		return
	}
	at := slices.IndexFunc(v.Trace, func(r tracedRun) bool { return r.ID == s.ID })
	if at < 0 {
		v.Trace, at = append(v.Trace, tracedRun{Entry: entryOf(*s)}), len(v.Trace)
	}
	why := ""
	if s.Error != nil {
		why = string(s.Error.Type) + ": " + s.Error.Message
	}
	v.Trace[at].end(e.Time, string(s.Status), why)
	v.Trace[at].Tokens = s.Tokens.Total
}

// ExecutionTrace returns the runs of agents, ordered by their start. Runs that a killed coven
// did not end are marked as interrupted.
func (v View) ExecutionTrace() []trace.Entry {
	all := []trace.Entry{}
	for _, run := range v.Trace {
		if run.Status == string(Running) && v.Status != Running && v.Status != Waiting {
			run.end(v.Updated, string(Interrupted), "")
		}
		all = append(all, run.Entry)
	}
	return all
}
