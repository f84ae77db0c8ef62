package accounts

import (
	"fmt"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/clock"
)

// Faults records the accounts that cannot be used for a reason other than a rate limit: no credit, a model that does not
// exist, no network. They are known only to this process: a person may remove the cause at any time, so that the next
// coven tries again. The zero value is empty.
type Faults struct {
	// Patient means that sessions wait and try again, as with coven run --watch. Otherwise they stop, and no more start.
	Patient bool

	mu    sync.Mutex
	known map[string]*Fault
}

// Fault is why an account cannot be used.
type Fault struct {
	Account string
	Reason  string // a word: see driver.FaultOf
	Text    string // what the API said
	limit   limits.Limit
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("the account %s cannot be used: %s (%s)", f.Account, f.Text, f.Reason)
}

// CommandExit returns exit.Limit.
func (f *Fault) CommandExit() int { return exit.Limit }

// NextCommand returns the command that continues.
func (f *Fault) NextCommand() string { return "coven resume" }

// Until returns when a patient session tries again.
func (f *Fault) Until() time.Time { return f.limit.Until }

// Met records that the API refused an account.
func (f *Faults) Met(account, reason, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := f.known[account]
	met := &Fault{Account: account, Reason: reason, Text: text}
	if last != nil {
		met.limit = last.limit
	}
	met.limit = met.limit.Next(0, reason)
	if f.known == nil {
		f.known = map[string]*Fault{}
	}
	f.known[account] = met
}

// Answered records that the API answered.
func (f *Faults) Answered(account string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, account)
}

// Any reports whether an account cannot be used.
func (f *Faults) Any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.known) > 0
}

// Of returns the fault of an account that its sessions wait for, or nil.
func (f *Faults) Of(account string) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	met := f.known[account]
	if met == nil || f.Patient && !met.limit.Until.After(clock.Now()) {
		return nil
	}
	return met
}
