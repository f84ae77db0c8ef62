package spending

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
)

// The usage of sessions without records counts like that of others, for each session, also after their process was killed.
func TestBook(t *testing.T) {
	root := t.TempDir()
	now := time.Date(2026, 3, 10, 15, 0, 0, 0, time.Local)
	l := NewLedger(root, budget.DefaultPrices(), budget.Amount{USD: 9}, func() time.Time { return now })
	must(t, os.Mkdir(filepath.Join(root, ".coven"), 0o700))
	b, err := l.NewBook()
	must(t, err)
	seen := 0
	for n := range 2 {
		observe := b.Observe(n, "(x)", func(event.Event) { seen++ })
		for seq, e := range []event.Event{
			{Type: event.StepStarted, Path: "work#1", Data: []byte(`{"kind":"agent"}`)},
			{Type: event.AgentStarted, Path: "work#1", Data: []byte(`{"agent":"build"}`)},
			{Type: event.AgentUsage, Path: "work#1", Data: []byte(`{"input":10,"output":2,"cache_read":30,"cache_write":4,"cost":1,"model":"sonnet"}`)},
		} {
			e.Seq, e.Time, e.Task = int64(seq+1), now.AddDate(0, 0, -n), "t"
			observe(e)
		}
	}
	if d, err := l.Today(); err != nil || d.Used != (budget.Amount{USD: 1, Tokens: 16}) || seen != 6 {
		t.Errorf("%+v, %v, %d", d, err, seen)
	}
	must(t, b.Close())
	other := NewLedger(root, budget.DefaultPrices(), budget.Amount{}, l.now)
	for range 2 {
		all, err := other.Since(time.Time{})
		must(t, err)
		if sum := Of(all); sum != (Sum{Runs: 2, Input: 88, CacheRead: 60, Output: 4, Cached: 60. / 88, CostUSD: 2}) || all[0].Task != "(x)" || all[0].Agent != "build" || all[0].Model != "sonnet" || !all[0].Time.Equal(now) {
			t.Errorf("%+v of %+v", sum, all)
		}
	}

	// A torn line does not count, and a changed file is read again.
	file := filepath.Join(root, booksDir, b.name)
	text, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, text[:len(text)-9], 0o600))
	if all, err := other.Since(time.Time{}); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	// A file that was written earlier has nothing later.
	must(t, os.Chtimes(file, now.AddDate(0, 0, -3), now.AddDate(0, 0, -3)))
	if all, err := other.Since(now.AddDate(0, 0, -2)); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	// An empty one is removed.
	b, err = l.NewBook()
	must(t, err)
	must(t, b.Close())
	if entries, err := os.ReadDir(filepath.Join(root, booksDir)); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	// A write that fails is reported when it ends.
	b, err = l.NewBook()
	must(t, err)
	must(t, b.file.Close())
	b.write(Charge{})
	if b.Close() == nil {
		t.Error("no error")
	}
	// A link leads nowhere.
	must(t, os.RemoveAll(filepath.Join(root, booksDir)))
	must(t, os.Symlink(t.TempDir(), filepath.Join(root, booksDir)))
	if _, err := l.NewBook(); err == nil {
		t.Error("written beyond a link")
	}
	if _, err := other.Since(time.Time{}); err == nil {
		t.Error("read beyond a link")
	}
}

// The groups with the highest costs come first. Nothing has a ledger outside of a repository.
func TestOrder(t *testing.T) {
	charge := func(task string, usd float64) Charge {
		c := Charge{Session: task, Task: task}
		c.USD = usd
		return c
	}
	var keys []string
	for _, g := range By("task", []Charge{charge("a", 1), charge("c", 2), charge("b", 2)}) {
		keys = append(keys, g.Key)
	}
	if strings.Join(keys, " ") != "b c a" {
		t.Error(keys)
	}
	if d, err := (*Ledger)(nil).Today(); err != nil || d.Spent() != "" {
		t.Error(d, err)
	}
}
