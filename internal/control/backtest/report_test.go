package backtest

import (
	"math"
	"testing"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-4 }

// The intervals are those of Wilson's formula in tables, and of the binomial distribution.
func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{0, 10, 0, 0.2775}, {5, 10, 0.2366, 0.7634}, {20, 20, 0.8389, 1}, {81, 263, 0.2553, 0.3662}} {
		e := proportion(c.k, c.n)
		if !near(e.Interval[0], c.low) || !near(e.Interval[1], c.high) || !near(e.Value, float64(c.k)/float64(c.n)) {
			t.Errorf("%d of %d: %v %v", c.k, c.n, e.Value, *e.Interval)
		}
	}
	if e := proportion(0, 0); e.Interval != nil {
		t.Error("an interval without runs")
	}
	values := func(n int) (all []float64) {
		for i := n; i > 0; i-- {
			all = append(all, float64(i))
		}
		return all
	}
	for n, want := range map[int][2]float64{6: {1, 6}, 8: {1, 8}, 9: {2, 8}, 20: {6, 15}} {
		if e := median(values(n)); e.Interval == nil || *e.Interval != want || e.Value != float64(n+1)/2 {
			t.Errorf("median of 1 to %d: %v %v, want %v", n, e.Value, e.Interval, want)
		}
	}
	for n := range 6 {
		if e := median(values(n)); e.Interval != nil {
			t.Errorf("an interval of %d values", n)
		}
	}
}

func TestFirstTry(t *testing.T) {
	plan, err := grimoires.NewLibrary("", "").Freeze(&grimoires.Grimoire{Name: "x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	landed := func(change func(*session.View)) session.View {
		v := session.View{Outcome: session.Outcome{Commit: "c"}}
		change(&v)
		return v
	}
	for name, c := range map[string]struct {
		v    session.View
		want bool
	}{
		"landed":         {landed(func(*session.View) {}), true},
		"not landed":     {session.View{}, false},
		"another round":  {landed(func(v *session.View) { v.Rounds = []session.Round{{Continue: true}, {}} }), false},
		"revised":        {landed(func(v *session.View) { v.Revisions = []session.Revision{{}} }), false},
		"a script fails": {landed(func(v *session.View) { v.Receipts = []event.Receipt{{Command: "ls", ExitCode: 1}} }), true},
	} {
		if got := firstTry(c.v, plan); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Unfinished runs do not count, and the best grimoire comes first.
func TestReport(t *testing.T) {
	good := session.View{ID: "1", Outcome: session.Outcome{Commit: "c"}}
	plan := &grimoires.Plan{Grimoire: &grimoires.Grimoire{}}
	cases := []Case{{View: good, Plan: plan}, {View: session.View{ID: "2"}, Plan: plan}}
	r := Request{Grimoires: []string{"worse", "better"}, Cases: cases}
	report := r.report([]Result{
		{Grimoire: "worse", Status: Failed, USD: 1, of: cases[0]},
		{Grimoire: "better", Status: Landed, FirstTry: true, USD: 2, Time: time.Second, of: cases[0]},
		{Grimoire: "worse", Status: Unfinished, USD: 4, of: cases[1]},
		{Grimoire: "better", Status: Landed, FirstTry: true, USD: 8, Time: 3 * time.Second, of: cases[1]},
	})
	better, worse := report.Rows[0], report.Rows[1]
	switch {
	case better.Grimoire != "better" || better.Runs != 2 || better.Better != 1 || better.Worse != 0 || better.USD.Value != 5 || better.Seconds.Value != 2:
		t.Errorf("better: %+v", better)
	case worse.Runs != 1 || worse.Unfinished != 1 || worse.Worse != 1 || worse.Landed != 0:
		t.Errorf("worse: %+v", worse)
	case report.Recorded.Runs != 2 || report.Recorded.FirstTry != 1 || report.USD != 15:
		t.Errorf("report: %+v", report)
	}
}

// Changes are compared with the recorded ones. Of two grimoires with the same rate, the cheaper one comes first.
func TestCompared(t *testing.T) {
	one := Case{Plan: &grimoires.Plan{Grimoire: &grimoires.Grimoire{}}}
	r := Request{Grimoires: []string{"dear", "cheap"}, Cases: []Case{one}}
	var results []Result
	for i, c := range []*Change{nil, {Same: true, Common: 2, Recorded: 2, Files: 2}, {Common: 2, Recorded: 2, Files: 2}, {Common: 1, Recorded: 2, Files: 1}, {Common: 1, Recorded: 1, Files: 2}} {
		results = append(results, Result{Grimoire: "dear", Status: Landed, USD: 2, Change: c, of: one}, Result{Grimoire: "cheap", Status: Landed, USD: float64(i) / 4, of: one})
	}
	report := r.report(results)
	if row := report.Rows[1]; report.Rows[0].Grimoire != "cheap" || row.Same != 1 || row.SameFiles != 2 || report.Rows[0].Same != 0 {
		t.Errorf("%+v", report.Rows)
	}
}
