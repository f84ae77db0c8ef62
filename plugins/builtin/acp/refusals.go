package acp

import (
	"fmt"
	"sync"

	"github.com/coven-run/coven/plugins/provider"
)

// maxRefusedTurns limits the turns of a session that end at a call that failed, before coven gives up.
const maxRefusedTurns = 8

// refusals are the sessions in which a call failed, as a refused one does. Some agents end their turn there as if the task
// were done, so coven tells them to continue. The agent's output alone decides, so that the recorded output of an agent that
// was killed has the same meaning. A nil refusals remembers nothing.
type refusals struct {
	mu       sync.Mutex
	sessions map[string]*refusal
}

// refusal is a session in which a call failed.
type refusal struct {
	last  bool           // the agent has done nothing since
	why   string         // why coven refused the call; empty if it did not
	turns int            // turns that ended at such a call
	used  provider.Usage // in these turns
}

// session returns the entry of a session. The lock is held.
func (r *refusals) session(id string) *refusal {
	one := r.sessions[id]
	if one == nil {
		one = &refusal{}
		r.sessions[id] = one
	}
	return one
}

// refused notes that coven refuses a call, which will fail.
func (r *refusals) refused(session, why string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session(session).why = why
}

// failed notes that a call failed.
func (r *refusals) failed(session string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session(session).last = true
}

// worked notes that the agent has gone on after a call.
func (r *refusals) worked(session string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.sessions[session]; one != nil {
		one.last, one.why = false, ""
	}
}

// end returns the event for the end of a turn: its result, or the step that tells the agent to continue.
func (r *refusals) end(session string, turn provider.Result) provider.Event {
	if r == nil {
		return turn
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.sessions[session]
	if one == nil {
		return turn
	}
	one.used.InputTokens += turn.Usage.InputTokens
	one.used.OutputTokens += turn.Usage.OutputTokens
	one.used.CacheReadTokens += turn.Usage.CacheReadTokens
	one.used.CacheWriteTokens += turn.Usage.CacheWriteTokens
	if one.last && turn.OK && one.turns < maxRefusedTurns {
		one.last = false
		one.turns++
		return asked(step{Did: fmt.Sprintf("turn %d", one.turns), Session: session, Again: true, Why: one.why})
	}
	delete(r.sessions, session)
	turn.Usage = one.used
	if one.last && turn.OK {
		turn.OK, turn.Error = false, fmt.Sprintf("the agent ended %d turns at calls that failed or were refused: %s", one.turns+1, one.why)
	}
	return turn
}

// goOn is the message to an agent that ended its turn at a call that failed.
func goOn(why string) string {
	last := "Your last call failed or was refused"
	if why != "" {
		last += ": " + why
	}
	return last + ".\n\nContinue your task without it. If it is impossible without it, say so in your final answer."
}
