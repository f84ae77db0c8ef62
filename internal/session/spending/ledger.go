// Package spending adds up the usage that the sessions of a repository have recorded, by task, agent, model and day, and estimates
// the cost of further sessions.
//
// Rules. The records are the only source: each coven reads those of all others. A usage belongs to the local day on which it was
// reported. Sessions that were removed or are damaged do not count. Sessions without records write a Book.
package spending

import (
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/usage"
)

// Charge is the usage of an agent of a session between two of its reports.
type Charge struct {
	Session string
	Task    string
	usage.Charge
}

// Ledger reads the charges of a repository's sessions. It reads a journal again only if the journal has changed. It is safe for
// concurrent use.
type Ledger struct {
	root   string
	prices budget.Prices
	limit  budget.Amount
	now    func() time.Time

	mu    sync.Mutex
	known map[string]charges // by session ID
	books map[string]book    // by file
}

// charges are the charges of a journal.
type charges struct {
	of  session.Journal
	all []Charge
}

// NewLedger returns the ledger of a project. The costs that a CLI did not report are computed from prices. limit is the budget for
// one day.
func NewLedger(root string, prices budget.Prices, limit budget.Amount, now func() time.Time) *Ledger {
	return &Ledger{root: root, prices: prices, limit: limit, now: now, known: map[string]charges{}, books: map[string]book{}}
}

// Since returns the charges at or after a time, by session, and those in Books. It omits sessions that cannot be read and reports them in the error
// (see session.DamagedIn).
func (l *Ledger) Since(since time.Time) ([]Charge, error) {
	journals, err := session.Journals(l.root, since)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found, broken := l.inBooks(since)
	for _, j := range journals {
		of, ok := l.known[j.Session]
		if !ok || of.of != j {
			if of.all, err = l.read(j); errors.Is(err, fs.ErrNotExist) {
				continue // it was removed concurrently
			} else if err != nil {
				broken = errors.Join(broken, err)
				continue
			}
			of.of = j
			l.known[j.Session] = of
		}
		for _, c := range of.all {
			if !c.Time.Before(since) {
				found = append(found, c)
			}
		}
	}
	return found, broken
}

// read returns the charges of a journal.
func (l *Ledger) read(j session.Journal) (all []Charge, err error) {
	task, book := "", usage.New(l.prices)
	book.Charged(func(c usage.Charge) {
		all = append(all, Charge{Session: j.Session, Task: task, Charge: c})
	})
	err = j.Each(func(e event.Event) {
		task = e.Task
		book.Take(e)
	})
	return all, err
}
