package spending

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// journal writes the journal of a session with one step, whose agent reports its usage at the given times. Each report adds a
// dollar and 10 tokens. ended is the end of the session, or zero.
func journal(t testing.TB, root, id string, began time.Time, reports []time.Time, ended time.Time) {
	t.Helper()
	var text strings.Builder
	seq := 0
	emit := func(at time.Time, what event.Type, path, data string) {
		seq++
		fmt.Fprintf(&text, `{"v":1,"seq":%d,"time":%q,"type":%q,"session":%q,"task":"t-%s","path":%q,"data":%s}`+"\n", seq, at.UTC().Format(time.RFC3339Nano), what, id, id, path, data)
	}
	emit(began, event.SessionStarted, "", `{"project":"p","query":"Do it","grimoire":"make"}`)
	emit(began, event.StepStarted, "work#1", `{"kind":"agent"}`)
	emit(began, event.AgentStarted, "work#1", `{"agent":"build","conversation":"c","log_offset":0,"prompt":"Do it"}`)
	for i, at := range reports {
		emit(at, event.AgentUsage, "work#1", fmt.Sprintf(`{"input":%d,"output":0,"cache_read":%d,"cache_write":0,"cost":%d,"turns":%d,"model":"sonnet"}`, 10*(i+1), 30*(i+1), i+1, i+1))
	}
	if !ended.IsZero() {
		emit(ended, event.StepCompleted, "work#1", fmt.Sprintf(`{"ok":true,"agent":"build","used":{"usd":%d},"input":"x"}`, len(reports)))
		emit(ended, event.SessionCompleted, "", `{}`)
	}
	dir := filepath.Join(root, session.Dir, id)
	must(t, os.MkdirAll(dir, 0o700))
	file := filepath.Join(dir, "events.jsonl")
	must(t, os.WriteFile(file, []byte(text.String()), 0o600))
	last := began
	if len(reports) > 0 {
		last = reports[len(reports)-1]
	}
	if ended.After(last) {
		last = ended
	}
	must(t, os.Chtimes(file, last, last))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The usage of a day is that which was reported on it, whenever the sessions began and ended, and also of sessions that run.
func TestDay(t *testing.T) {
	root := t.TempDir()
	now := time.Date(2026, 3, 10, 15, 0, 0, 0, time.Local)
	midnight := time.Date(2026, 3, 10, 0, 0, 0, 0, time.Local)
	at := func(hours ...int) (all []time.Time) {
		for _, h := range hours {
			all = append(all, midnight.Add(time.Duration(h)*time.Hour))
		}
		return all
	}
	journal(t, root, "yesterday", at(-10)[0], at(-9, -8), at(-7)[0])
	journal(t, root, "overnight", at(-2)[0], at(-1, 0, 1), at(2)[0])
	journal(t, root, "today", at(1)[0], at(2, 3), at(4)[0])
	journal(t, root, "running", at(13)[0], at(14), time.Time{})
	journal(t, root, "damaged", at(13)[0], at(14), at(14)[0])
	damaged := filepath.Join(root, session.Dir, "damaged", "events.jsonl")
	text, err := os.ReadFile(damaged)
	must(t, err)
	must(t, os.WriteFile(damaged, []byte("no event\n"+string(text)), 0o600))
	must(t, os.Chtimes(damaged, now, now))

	l := NewLedger(root, budget.DefaultPrices(), budget.Amount{USD: 9}, func() time.Time { return now })
	for range 2 { // the second time from its memory
		d, err := l.Today()
		if err != nil {
			t.Fatal(err)
		}
		if _, err = l.Since(midnight); err == nil || !strings.Contains(err.Error(), "session damaged is damaged") {
			t.Error(err)
		}
		if d.Used != (budget.Amount{USD: 5, Tokens: 50}) || !d.Began.Equal(midnight) || !d.Ends.Equal(midnight.AddDate(0, 0, 1)) {
			t.Errorf("%+v", d)
		}
	}
	// It sees later charges of other processes.
	journal(t, root, "running", at(13)[0], at(14, 15), time.Time{})
	if d, _ := l.Today(); d.Used.USD != 6 {
		t.Errorf("%+v", d)
	}
	must(t, os.RemoveAll(filepath.Join(root, session.Dir, "today")))
	if d, _ := l.Today(); d.Used.USD != 4 {
		t.Errorf("%+v", d)
	}
	all, _ := l.Since(time.Time{})
	if sum := Of(all); math.Abs(sum.CostUSD-7) > 1e-9 || sum.Runs != 3 || sum.Cached != 0.75 {
		t.Errorf("%+v", sum)
	}
	if days := By("day", all); len(days) != 2 || days[0].Key != "2026-03-10" || days[0].CostUSD != 4 || days[1].Runs != 2 {
		t.Errorf("%+v", days)
	}
	if empty, err := NewLedger(t.TempDir(), budget.Prices{}, budget.Amount{}, time.Now).Since(time.Time{}); err != nil || len(By("task", empty)) != 0 {
		t.Error(empty, err)
	}
}

// thousand writes 1,000 ended sessions with 100 reports each, 20 of them today.
func thousand(b *testing.B) (root string, now time.Time) {
	root, now = b.TempDir(), time.Now()
	for i := range 1000 {
		began := now.Add(-time.Duration(i/20*24+1) * time.Hour)
		var reports []time.Time
		for n := range 100 {
			reports = append(reports, began.Add(time.Duration(n)*time.Second))
		}
		journal(b, root, fmt.Sprintf("s%04d", i), began, reports, began.Add(time.Minute*2))
	}
	return root, now
}

// BenchmarkEstimate estimates from 1,000 sessions with an index, in a new process.
func BenchmarkEstimate(b *testing.B) {
	root, _ := thousand(b)
	must(b, os.MkdirAll(filepath.Join(root, ".coven/run"), 0o700))
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			_, err := session.NewFinder(root).Summaries()
			must(b, err)
			must(b, os.RemoveAll(filepath.Join(root, ".coven/run/sessions.index")))
		}
	})
	for settled := false; !settled; { // the index has only journals that have not changed for two seconds
		_, err := session.NewFinder(root).Summaries()
		must(b, err)
		info, err := os.Stat(filepath.Join(root, ".coven/run/sessions.index"))
		settled = err == nil && info.Size() > 1000*50
	}
	b.Run("indexed", func(b *testing.B) {
		for b.Loop() {
			all, err := session.NewFinder(root).Summaries()
			must(b, err)
			if e, ok := EstimateOf(all, "make"); !ok || e.Sessions != maxSessions {
				b.Fatal(e)
			}
		}
	})
}

// BenchmarkDay adds up the usage of today beside 1,000 sessions.
func BenchmarkDay(b *testing.B) {
	root, now := thousand(b)
	ledger := func() *Ledger {
		return NewLedger(root, budget.DefaultPrices(), budget.Amount{USD: 1}, func() time.Time { return now })
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			_, err := ledger().Today()
			must(b, err)
		}
	})
	b.Run("again", func(b *testing.B) {
		l := ledger()
		for b.Loop() {
			_, err := l.Today()
			must(b, err)
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			_, err := ledger().Since(time.Time{})
			must(b, err)
		}
	})
}
