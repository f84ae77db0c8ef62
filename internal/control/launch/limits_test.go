package launch

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/plugins/provider"
)

// The time that a session waits for limits is counted once, however many of its
// agents wait then.
func TestWaits(t *testing.T) {
	zero := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(minutes int) time.Time { return zero.Add(time.Duration(minutes) * time.Minute) }
	type wait struct {
		from, to int
		ok       bool
	}
	for name, all := range map[string][]wait{
		"one after the other":            {{0, 4, true}, {5, 9, true}, {10, 12, true}, {13, 14, false}},
		"as much as is allowed":          {{0, 10, true}, {10, 11, false}},
		"too long at once":               {{0, 11, false}, {0, 10, true}},
		"the same, twice":                {{0, 6, true}, {0, 6, true}, {6, 10, true}, {10, 11, false}},
		"the same, met a little later":   {{0, 6, true}, {1, 6, true}, {6, 10, true}, {10, 11, false}},
		"a longer one meanwhile":         {{0, 6, true}, {3, 10, true}, {3, 11, false}},
		"a shorter one meanwhile":        {{0, 10, true}, {3, 7, true}, {10, 11, false}},
		"a limit that is over":           {{5, 4, true}, {5, 15, true}},
		"one that is refused is no wait": {{0, 12, false}, {1, 11, true}},
	} {
		var w LimitWait
		for i, one := range all {
			if ok := w.add(at(one.from), at(one.to), 10*time.Minute); ok != one.ok {
				t.Errorf("%s: wait %d: %v", name, i+1, ok)
			}
		}
	}
	var w LimitWait
	if !w.add(at(0), at(10), 10*time.Minute) || w.add(at(10), at(11), 10*time.Minute) {
		t.Error("before an answer")
	}
	if w.renew(); !w.add(at(9), at(19), 10*time.Minute) || w.add(at(19), at(20), 10*time.Minute) {
		t.Error("after an answer")
	}
}

func TestWaitsAtTheSameTime(t *testing.T) {
	var w LimitWait
	var all sync.WaitGroup
	var refused atomic.Int32
	from := time.Now()
	for range 20 {
		all.Go(func() {
			if !w.add(from, from.Add(6*time.Minute), 10*time.Minute) {
				refused.Add(1)
			}
		})
	}
	if all.Wait(); refused.Load() != 0 || w.waited != 6*time.Minute {
		t.Errorf("%d of 20 refused, %s", refused.Load(), w.waited)
	}
}

// A launcher for a coven-worker tells the limits that its agents meet, if the API says until when, and asks for those of other machines if it knows none.
func TestLimitsOfOthers(t *testing.T) {
	const name = "anthropic-loop"
	in, answer := io.Pipe()
	var lines []string
	l := &Launcher{
		Providers: &accounts.Providers{Accounts: accounts.NewAccounts(t.TempDir())}, Plan: &grimoires.Plan{Provider: name}, Provider: name,
		Others: accounts.Others{
			Logins: &accounts.Logins{Getenv: func(name string) string {
				return map[string]string{"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef"}[name]
			}},
			Worker: &fleet.Worker{In: in, Print: func(line string) error {
				lines = append(lines, line)
				return nil
			}},
		},
	}
	said := func(want string) {
		t.Helper()
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
		lines = nil
	}
	limited := func(provider, account string, want bool) limits.Limit {
		t.Helper()
		limit, got, err := l.limited(t.Context(), provider, account)
		if got != want || err != nil {
			t.Errorf("limited: %v, %v", got, err)
		}
		return limit
	}
	refused := func(account string, limit provider.Limit) {
		t.Helper()
		met := &limitTracker{launcher: l, provider: name, account: account}
		if met.limited(limit); met.broken != nil {
			t.Error(met.broken)
		}
	}
	account, until := l.Others.Logins.Identity(name), time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	asks, tells := `{"account":"`+account+`"}`, `{"account":"`+account+`","until":"`+until.Format(time.RFC3339)+`"}`
	answers := func(line string) { _, _ = io.WriteString(answer, line+"\n") }
	go answers(tells)
	if limit := limited("", "anthropic", true); !limit.Until.Equal(until) || !limit.Told {
		t.Errorf("got %+v", limit)
	}
	said(asks)
	go answers("{}")
	limited(name, "anthropic", false)
	said(asks)
	limited("codex", "openai", false) // it has no name
	said("")

	refused("anthropic", provider.Limit{Until: until})
	said(tells)
	limited(name, "anthropic", true) // by what this machine knows
	said("")
	refused("retries", provider.Limit{After: time.Second, Again: time.Second})
	refused("unknown", provider.Limit{})
	said("")

	l.Others = accounts.Others{}
	refused("anthropic", provider.Limit{Until: until.Add(time.Hour)})
	limited(name, "free", false)
	said("")
}
