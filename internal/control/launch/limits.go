package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/workclock"
)

// LimitWait measures how long a session has waited for limits since its account's API last answered. Agents that wait
// at the same time count once.
type LimitWait struct {
	mu     sync.Mutex
	waited time.Duration
	until  time.Time // waited includes the time up to here
}

// add adds the part of a wait that is not counted yet. It returns false if the sum would exceed most.
func (w *LimitWait) add(from, to time.Time, most time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if from.Before(w.until) {
		from = w.until
	}
	sum := w.waited + max(to.Sub(from), 0)
	if sum > most {
		return false
	}
	w.waited = sum
	if to.After(w.until) {
		w.until = to
	}
	return true
}

func (w *LimitWait) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waited, w.until = 0, time.Time{}
}

// Await implements the agents of package runner. It waits for the limits of the account in this process: it keeps the
// session's lock and the claim, and the clocks of the session stand still.
func (l *Launcher) Await(ctx context.Context, path, provider string) error {
	if err := l.checkToday(); err != nil {
		return err
	}
	return l.awaitAccount(ctx, path, provider)
}

// checkToday returns a *runner.Wait if today's budget of the repository is spent. Amounts that a user has added today while the
// session waited for it belong to this session only.
func (l *Launcher) checkToday() error {
	day, err := l.Today()
	if err != nil {
		return err
	}
	waited := event.Waiting{}
	for _, e := range l.Session.Journal.Of(event.SessionWaiting, event.SessionResumed) {
		if e.Type == event.SessionWaiting {
			waited = event.As[event.Waiting](e)
		} else if waited.ForDay() && !e.Time.Before(day.Began) {
			day.Limit = day.Limit.Raised(event.As[event.Resumed](e).Budget)
		}
	}
	text := day.Spent()
	if text == "" {
		return nil
	}
	return &runner.Wait{Reason: event.WaitBudget, Detail: text, Next: "resume", More: day.Limit.SuggestMore(day.Used), Until: day.Ends}
}

// awaitAccount waits for the limits of an account, as Await.
func (l *Launcher) awaitAccount(ctx context.Context, path, provider string) error {
	name, err := l.account(ctx, provider)
	if err != nil {
		return err
	}
	if err := l.awaitFault(ctx, path, name); err != nil {
		return l.orElsewhere(ctx, provider, name, err)
	}
	limit, limited, err := l.limited(ctx, provider, name)
	if err != nil || !limited {
		return err
	}
	resume := workclock.Pause(ctx)
	defer resume()
	for limited {
		if err := l.waitOut(ctx, path, name, limit); err != nil {
			return l.orElsewhere(ctx, provider, name, err)
		}
		if limit, limited, err = l.limited(ctx, provider, name); err != nil {
			return err
		}
	}
	return l.Session.Append(event.Event{Type: event.LimitOver, Path: path}, nil)
}

// limited returns the limit of an account and reports whether it is in force. If this machine knows none, it is that which another machine has met.
func (l *Launcher) limited(ctx context.Context, provider, account string) (limits.Limit, bool, error) {
	limit, limited, err := l.Providers.Accounts.Limits.Limited(account)
	if err != nil || limited {
		return limit, limited, err
	}
	provider, _ = l.driven(provider, "")
	limit, limited = l.Others.Limited(ctx, provider)
	return limit, limited, nil
}

// awaitFault waits while an account cannot be used, if this process is patient. Otherwise it returns the wait of the session.
func (l *Launcher) awaitFault(ctx context.Context, path, name string) error {
	faults := &l.Providers.Accounts.Faults
	fault := faults.Of(name)
	if fault == nil {
		return nil
	}
	resume := workclock.Pause(ctx)
	defer resume()
	for ; fault != nil; fault = faults.Of(name) {
		if !faults.Patient {
			return &runner.Wait{Reason: event.WaitLimit, Detail: fault.Error(), Next: "resume"}
		}
		met := event.Limit{Account: name, Reason: fault.Reason + ": " + fault.Text, At: fault.Until().Round(0)}
		if err := l.Session.Append(event.Event{Type: event.LimitMet, Path: path}, met); err != nil {
			return err
		}
		if err := clock.SleepUntil(ctx, met.At); err != nil {
			return err
		}
	}
	return l.Session.Append(event.Event{Type: event.LimitOver, Path: path}, nil)
}

// waitOut waits until a limit has ended and a little longer, or returns why it does not wait.
func (l *Launcher) waitOut(ctx context.Context, path, name string, limit limits.Limit) error {
	now := clock.Now().Round(0)
	met := event.Limit{Account: name, Reason: limit.Reason, At: limit.Wake(now).Round(0)}
	if limit.Told {
		met.Until = limit.Until
	}
	if !l.LimitWait.add(now, met.At, l.Limits.MaxWait) {
		return tooLong(met, now, l.Limits.MaxWait)
	}
	if err := l.Session.Append(event.Event{Type: event.LimitMet, Path: path}, met); err != nil {
		return err
	}
	return clock.SleepUntil(ctx, met.At)
}

// tooLong returns the wait of a session that does not wait for a limit in this process.
func tooLong(met event.Limit, now time.Time, most time.Duration) error {
	detail := fmt.Sprintf("the account %s is limited (%s)", met.Account, met.Reason)
	if met.Until.IsZero() {
		detail += fmt.Sprintf(", the API did not report until when; try again after %s", terminal.Clock(met.At, now))
	} else {
		detail += " until " + terminal.Clock(met.Until, now)
	}
	detail += fmt.Sprintf(" (limits.max_wait is %s)", most)
	return &runner.Wait{Reason: event.WaitLimit, Detail: detail, Next: "resume", Until: met.At}
}

// orElsewhere adds to the wait of an agent for an account another provider that can continue, if there is one. A step that
// names its provider keeps it.
func (l *Launcher) orElsewhere(ctx context.Context, provider, account string, err error) error {
	wait := (*runner.Wait)(nil)
	if errors.As(err, &wait) && (provider == "" || provider == l.Plan.Provider) {
		wait.Other = l.Providers.Other(ctx, account, l.Ungated)
	}
	return err
}

// account returns the account of a provider's agents. An empty provider stands for that of the plan.
func (l *Launcher) account(ctx context.Context, provider string) (string, error) {
	provider, _ = l.driven(provider, "")
	drives, err := l.Providers.Traits(ctx, provider)
	return drives.Account, err
}

// limitTracker records the limits of an account as one run of an agent meets them.
type limitTracker struct {
	launcher *Launcher
	provider string
	account  string
	broken   error // the account's limits could not be recorded: no agent may try again
}

// limited records a refusal of the API and reports whether the agent must be stopped.
func (t *limitTracker) limited(l provider.Limit) bool {
	stop, err := t.launcher.Providers.Accounts.Limits.Refused(t.account, l)
	t.broken = errors.Join(t.broken, err)
	if stop {
		t.launcher.Others.Tell(t.provider, l)
	}
	return stop
}

// fault records that the API refused the account for another reason.
func (t *limitTracker) fault(reason, text string) {
	t.launcher.Providers.Accounts.Faults.Met(t.account, reason, text)
}

// observe notes that the agent printed something, which may be an answer of the API.
func (t *limitTracker) observe(part provider.Event) {
	if _, answer := part.(provider.Spent); answer {
		t.launcher.LimitWait.renew()
		t.launcher.Providers.Accounts.Faults.Answered(t.account)
		t.broken = errors.Join(t.broken, t.launcher.Providers.Accounts.Limits.Answered(t.account))
	}
}
