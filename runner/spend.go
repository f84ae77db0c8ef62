package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/ledger"
	"github.com/coven-run/coven/plugins/provider"
)

// budgetReason is why a session waits whose budget is spent.
const budgetReason = event.WaitBudget

// Purse is a budget that the tasks of one coven share. A nil Purse is endless.
type Purse struct {
	mu   sync.Mutex
	max  budget.Amount
	used budget.Amount
}

// NewPurse returns a purse with a budget; nil when that limits nothing.
func NewPurse(limit budget.Amount) *Purse {
	if limit == (budget.Amount{}) {
		return nil
	}
	return &Purse{max: limit}
}

// take takes out what was used, and says what is exceeded, if anything.
func (p *Purse) take(used budget.Amount) string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = p.used.Add(used)
	return p.max.Exceeds(p.used)
}

// Reached says what is used up, if anything: no other task should begin.
func (p *Purse) Reached() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.max.Reached(p.used)
}

// leftWall is the time at work that is left, if that is limited.
func (p *Purse) leftWall() (left time.Duration, limited bool) {
	if p == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.max.Wall - p.used.Wall, p.max.Wall > 0
}

// spending is one leaf's use of its budgets.
type spending struct {
	workshop *Workshop
	budgets  []budgetLeft
	before   budget.Amount // by runs of the leaf that were cut off

	mu    sync.Mutex
	now   budget.Amount  // by the runs of this process
	usage provider.Usage // of the runs of this process that gave a result
	wait  *Wait          // set when a budget is exceeded
}

// tally is what one run of an agent has used so far: part of its leaf's spending.
type tally struct {
	*spending
	used budget.Amount
}

// budgetLeft is a budget, with what has been used of it before.
type budgetLeft struct {
	Budget
	used budget.Amount
}

// spending begins the account of a leaf. The error is a *Wait when nothing is
// left for it.
func (w *Workshop) spending(c Call) (*spending, error) {
	events := w.Journal.Events()
	w.book().Read(events)
	s := &spending{workshop: w, before: w.book().Cut(c.Path)}
	for _, b := range c.Budgets {
		b.Max = raised(b, events)
		if b.Reserve > 0 {
			b.Max = b.Max.Part(1 - b.Reserve)
		}
		used := w.book().Within(b.Scope)
		s.budgets = append(s.budgets, budgetLeft{b, used})
		if c.Agent == nil { // only time is used
			b.Max, used = budget.Amount{Wall: b.Max.Wall}, budget.Amount{Wall: used.Wall}
		}
		if text := b.Max.Reached(used); text != "" {
			return nil, spent(b, text, b.Max.Like(used))
		}
	}
	left, limited := w.Purse.leftWall()
	if text := w.Purse.Reached(); text != "" && (c.Agent != nil || limited && left <= 0) {
		return nil, purseSpent(text)
	}
	return s, nil
}

// book is the session's ledger.
func (w *Workshop) book() *ledger.Ledger {
	if w.ledger == nil {
		w.ledger = ledger.New(w.Prices)
	}
	return w.ledger
}

// amount is what an agent used, in the terms of a budget.
func (w *Workshop) amount(u event.Usage) budget.Amount { return w.book().Amount(u) }

// raised is what a budget allows with what persons have added to it.
func raised(b Budget, events []event.Event) budget.Amount {
	limit := b.Max
	for _, e := range events {
		var r event.Resumed
		if e.Type == event.SessionResumed && e.Decode(&r) == nil && ledger.Inside(b.Scope, r.At) {
			limit = limit.Raised(r.Budget)
		}
	}
	return limit
}

func spent(b Budget, text, more string) *Wait {
	of := "the run"
	if b.Name != "" {
		of = "step " + b.Name
	}
	if b.Reserve > 0 {
		text += fmt.Sprintf(", %.0f %% kept for review and landing", b.Reserve*100)
	}
	return &Wait{Reason: budgetReason, Detail: "the budget of " + of + " is spent: " + text, Next: "resume", More: more}
}

func purseSpent(text string) *Wait {
	return &Wait{Reason: budgetReason, Detail: "the budget of this coven run is spent: " + text, Next: "resume"}
}

// clock ends a context when the leaf has used the time that its budgets allow.
func (s *spending) clock(ctx context.Context) (context.Context, context.CancelFunc) {
	var ends []context.CancelFunc
	for _, b := range s.budgets {
		if b.Max.Wall == 0 {
			continue
		}
		wall := budget.Amount{Wall: b.Max.Wall}
		cause := spent(b.Budget, wall.Reached(wall), wall.Like(wall))
		var end context.CancelFunc
		ctx, end = withClock(ctx, max(b.Max.Wall-b.used.Wall, time.Millisecond), cause)
		ends = append(ends, end)
	}
	purse := s.workshop.Purse
	if left, limited := purse.leftWall(); limited {
		wall := budget.Amount{Wall: purse.max.Wall}
		var end context.CancelFunc
		ctx, end = withClock(ctx, max(left, time.Millisecond), purseSpent(wall.Reached(wall)))
		ends = append(ends, end)
	}
	ctx, worked := stopwatch(ctx)
	return ctx, func() {
		purse.take(budget.Amount{Wall: worked()})
		for _, end := range ends {
			end()
		}
	}
}

// tally begins the account of a run of an agent.
func (s *spending) tally() *tally { return &tally{spending: s} }

// spend takes what the agent has used so far. The error says that it must stop.
func (t *tally) spend(u event.Usage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := t.book(t.workshop.amount(u)); text != "" {
		t.wait = purseSpent(text)
	}
	for _, b := range t.budgets {
		if text := b.Max.Exceeds(b.used.Add(t.now)); text != "" {
			t.wait = spent(b.Budget, text, b.Max.Like(b.used.Add(t.now)))
		}
	}
	if t.wait != nil {
		return t.wait
	}
	return nil
}

// book puts what the agent has used into the account, and says what of the purse
// is exceeded by that.
func (t *tally) book(amount budget.Amount) string {
	more := amount.Sub(t.used)
	t.used, t.now = amount, t.now.Add(more)
	return t.workshop.Purse.take(more)
}

// ended takes an agent's last word: what a run that came to its end cost is what
// its CLI says.
func (t *tally) ended(r agent.Report) {
	if r.Used == (event.Usage{}) {
		return // it never began
	}
	amount := t.workshop.amount(r.Used)
	if r.Kind == agent.None && r.Used.Cost > 0 {
		amount.USD = r.Used.Cost
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage = t.usage.Add(r.Result.Usage)
	t.book(amount) // whoever comes next finds what is exceeded
}

// waits is the budget that is exceeded, nil while none is.
func (s *spending) waits() *Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

// reached is the budget of which nothing is left for another agent; nil: there is
// something left of each.
func (s *spending) reached() *Wait {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.budgets {
		if text := b.Max.Reached(b.used.Add(s.now)); text != "" {
			return spent(b.Budget, text, b.Max.Like(b.used.Add(s.now)))
		}
	}
	if text := s.workshop.Purse.Reached(); text != "" {
		return purseSpent(text)
	}
	return nil
}

// total is what the leaf has used, its time in this process left out.
func (s *spending) total() budget.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.before.Add(s.now)
}

// asked is what the agents used that judges asked, as their CLI reckons it.
func (s *spending) asked() provider.Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// isSpent says whether an error means that a budget is spent.
func isSpent(err error) bool {
	wait := (*Wait)(nil)
	return errors.As(err, &wait) && wait.Reason == budgetReason
}
