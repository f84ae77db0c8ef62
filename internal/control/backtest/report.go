package backtest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/worktree"
	"github.com/coven-run/coven/worktree/diff"
)

// The results of a run.
const (
	Landed     = "landed"
	Failed     = "failed"     // it ended, or would wait for a person, without a landed change
	Unfinished = "unfinished" // the budget, a limit, an error or an interrupt ended it; it counts for nothing
)

// NotStarted is the detail of a run that did not start.
const NotStarted = "not started"

// Result is the result of one run.
type Result struct {
	Session  string        `json:"session_id"` // the recorded one
	Task     string        `json:"task"`
	Grimoire string        `json:"grimoire"`
	Status   string        `json:"status"`
	Detail   string        `json:"detail,omitempty"`
	FirstTry bool          `json:"first_try"`
	USD      float64       `json:"cost_usd"`
	Time     time.Duration `json:"active_ns"`
	// Change compares the change with the recorded one. It is nil if one of them has not landed.
	Change *Change `json:"change,omitempty"`

	of Case
}

// Change compares two changes of a task.
type Change struct {
	Same     bool `json:"same"`     // the same patch
	Common   int  `json:"common"`   // number of files that both change
	Recorded int  `json:"recorded"` // number of files that the recorded one changes
	Files    int  `json:"files"`    // number of files that the new one changes
}

// compare compares the change of v, which has landed in the scratch repository, with the recorded one.
func (r *Result) compare(ctx context.Context, recorded, scratch *worktree.Repo, v session.View) error {
	before, now := r.of.View.Landed, v.Landed
	if before.Old == "" || before.New == "" || now.Old == "" || now.New == "" {
		return nil
	}
	was, err := diff.Paths(ctx, recorded, before.Old, before.New)
	if err != nil {
		return nil //nolint:nilerr // the recorded change no longer exists
	}
	is, err := diff.Paths(ctx, scratch, now.Old, now.New)
	if err != nil {
		return err
	}
	oldPatch, err := diff.PatchID(ctx, recorded, before.Old, before.New)
	if err != nil {
		return err
	}
	newPatch, err := diff.PatchID(ctx, scratch, now.Old, now.New)
	if err != nil {
		return err
	}
	r.Change = &Change{Same: oldPatch == newPatch, Recorded: len(was), Files: len(is)}
	for _, path := range is {
		if slices.Contains(was, path) {
			r.Change.Common++
		}
	}
	return nil
}

// firstTry reports whether a session landed at the first try: all checks passed whenever they ran, no review asked for
// another round, and no person asked for changes.
func firstTry(v session.View, plan *grimoires.Plan) bool {
	for _, r := range v.Receipts {
		if r.ExitCode != 0 && plan.Proves(r.Command) {
			return false
		}
	}
	again := slices.ContainsFunc(v.Rounds, func(r session.Round) bool { return r.Continue })
	return v.Commit != "" && !again && len(v.Revisions) == 0
}

// firstTry reports whether the recorded session landed at the first try: for a step, after the step.
func (c Case) firstTry() bool {
	if c.step != nil {
		return c.step.first
	}
	return firstTry(c.View, c.Plan)
}

// Report compares the grimoires of a backtest, best first, with the recorded sessions.
type Report struct {
	Recorded Row      `json:"recorded"`
	Rows     []Row    `json:"grimoires"`
	Results  []Result `json:"runs"`
	USD      float64  `json:"cost_usd"`        // of all runs, including unfinished ones
	Spent    string   `json:"spent,omitempty"` // the budget, if it is spent: "$5.10 of $5.00"
	Today    string   `json:"today,omitempty"` // says that the budget of the day is spent, or is empty
}

// Row summarizes runs. Intervals have a confidence of 95 %.
type Row struct {
	Grimoire   string   `json:"grimoire,omitempty"` // empty for the recorded sessions
	Runs       int      `json:"runs"`               // finished ones
	Unfinished int      `json:"unfinished"`
	Landed     int      `json:"landed"`
	FirstTry   int      `json:"first_try"`
	Rate       Estimate `json:"first_try_rate"`
	USD        Estimate `json:"median_cost_usd"`
	Seconds    Estimate `json:"median_active_s"`
	// Better and Worse count the tasks that landed at the first try only here, or only in the recorded session.
	Better int `json:"better"`
	Worse  int `json:"worse"`
	// Same counts the landed changes that are the recorded ones, and SameFiles those that change the same files.
	Same      int `json:"same_change"`
	SameFiles int `json:"same_files"`
}

// Estimate is a value with its interval. The interval is nil if there are too few runs for one.
type Estimate struct {
	Value    float64     `json:"value"`
	Interval *[2]float64 `json:"interval_95"`
}

// report summarizes results.
func (r Request) report(results []Result) Report {
	report := Report{Results: results}
	var recorded []Result
	for _, c := range r.Cases {
		one := Result{Status: Failed, FirstTry: c.firstTry(), USD: c.View.Used.USD, Time: c.View.Active, of: c}
		if c.step != nil {
			one.USD, one.Time = c.step.used.USD, c.step.used.Wall
		}
		if c.View.Commit != "" {
			one.Status = Landed
		}
		recorded = append(recorded, one)
	}
	report.Recorded = rowOf("", recorded)
	report.Recorded.Better, report.Recorded.Worse = 0, 0
	for _, name := range r.Grimoires {
		var own []Result
		for _, one := range results {
			if one.Grimoire == name {
				own = append(own, one)
			}
		}
		report.Rows = append(report.Rows, rowOf(name, own))
	}
	for _, one := range results {
		report.USD += one.USD
	}
	slices.SortStableFunc(report.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Rate.Value, a.Rate.Value), cmp.Compare(a.USD.Value, b.USD.Value))
	})
	return report
}

func rowOf(name string, results []Result) Row {
	row := Row{Grimoire: name}
	var usd, seconds []float64
	for _, r := range results {
		if r.Status == Unfinished {
			row.Unfinished++
			continue
		}
		row.Runs++
		usd, seconds = append(usd, r.USD), append(seconds, r.Time.Seconds())
		if r.Status == Landed {
			row.Landed++
		}
		if c := r.Change; c != nil {
			row.Same += count(c.Same)
			row.SameFiles += count(c.Files == c.Common && c.Recorded == c.Common)
		}
		before := r.of.firstTry()
		switch {
		case r.FirstTry && !before:
			row.Better++
		case !r.FirstTry && before:
			row.Worse++
		}
		if r.FirstTry {
			row.FirstTry++
		}
	}
	row.Rate, row.USD, row.Seconds = proportion(row.FirstTry, row.Runs), median(usd), median(seconds)
	return row
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// z is the quantile of the normal distribution for a confidence of 95 %.
const z = 1.959964

// proportion returns k of n with Wilson's score interval (E. B. Wilson, JASA 22, 1927).
func proportion(k, n int) Estimate {
	if n == 0 {
		return Estimate{}
	}
	total := float64(n)
	p := float64(k) / total
	middle := (p + z*z/(2*total)) / (1 + z*z/total)
	half := z / (1 + z*z/total) * math.Sqrt(p*(1-p)/total+z*z/(4*total*total))
	return Estimate{p, &[2]float64{max(middle-half, 0), min(middle+half, 1)}}
}

// median returns the median with the interval between two order statistics that contains it with a probability of at
// least 95 %, for any distribution (H. A. David, Order Statistics, 7.1). It takes at least 6 values.
func median(values []float64) Estimate {
	n := len(values)
	if n == 0 {
		return Estimate{}
	}
	values = slices.Sorted(slices.Values(values))
	e := Estimate{Value: (values[(n-1)/2] + values[n/2]) / 2}
	below, chance := 0, math.Pow(0.5, float64(n)) // the probability that exactly below values are smaller than the median
	tail := chance
	for tail <= 0.025 {
		below++
		chance *= float64(n-below+1) / float64(below)
		tail += chance
	}
	if below > 0 {
		e.Interval = &[2]float64{values[below-1], values[n-below]}
	}
	return e
}
