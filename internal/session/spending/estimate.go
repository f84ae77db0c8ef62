package spending

import (
	"cmp"
	"slices"
	"time"

	"github.com/coven-run/coven/internal/session"
)

const (
	// minSessions is the number of sessions below which there is no estimate.
	minSessions = 5
	// maxSessions is the number of the last sessions that an estimate uses, because prices, models and prompts change.
	maxSessions = 30
	// maxCalibration is the number of the last sessions whose estimates are compared with their costs.
	maxCalibration = 20
)

// Estimate is the expected cost of a session, in US dollars. It comes from ended sessions of the same repository with the same
// grimoire.
type Estimate struct {
	Sessions    int         `json:"sessions"` // number of sessions that it comes from
	Median      float64     `json:"median_usd"`
	P90         float64     `json:"p90_usd"` // 90 of 100 sessions should not exceed it
	Calibration Calibration `json:"calibration"`
}

// Calibration compares earlier estimates with the costs of the sessions that followed.
type Calibration struct {
	Sessions int `json:"sessions"`       // the last sessions for which there was an estimate, at most 20
	Within   int `json:"within_p90"`     // number of them that did not exceed the 90th percentile
	Above    int `json:"exceeds_median"` // number of them that exceeded the median
}

// ended is the cost of an ended session.
type ended struct {
	began, ended time.Time
	usd          float64
}

// EstimateOf estimates the cost of a session with a grimoire. ok is false if too few sessions with that grimoire have ended.
// Sessions without a cost do not count: they ended before an agent began.
func EstimateOf(all []session.Summary, grimoire string) (e Estimate, ok bool) {
	var past []ended
	for _, s := range all {
		if s.Grimoire == grimoire && s.IsOver() && s.Cost > 0 {
			past = append(past, ended{s.Started, s.Ended, s.Cost})
		}
	}
	slices.SortFunc(past, func(a, b ended) int { return cmp.Or(a.ended.Compare(b.ended), a.began.Compare(b.began)) })
	if e, ok = estimate(past); ok {
		e.Calibration = calibrate(past)
	}
	return e, ok
}

// estimate returns the estimate from ended sessions, the newest last.
func estimate(past []ended) (e Estimate, ok bool) {
	if len(past) < minSessions {
		return e, false
	}
	var costs []float64
	for _, s := range past[max(len(past)-maxSessions, 0):] {
		costs = append(costs, s.usd)
	}
	slices.Sort(costs)
	n := len(costs)
	return Estimate{Sessions: n, Median: (costs[(n-1)/2] + costs[n/2]) / 2, P90: costs[rank90(n)-1]}, true
}

// rank90 returns the rank of the value among n that the next one does not exceed with a probability of 90%: if all n+1 values come
// from the same distribution, in any order, the next one is at most the k-th smallest of n with probability k/(n+1). Fewer than 9
// values reach only n/(n+1).
func rank90(n int) int { return min((9*(n+1)+9)/10, n) }

// calibrate estimates the last sessions from those that had ended when each began.
func calibrate(past []ended) (c Calibration) {
	latest := slices.Clone(past)
	slices.SortStableFunc(latest, func(a, b ended) int { return b.began.Compare(a.began) })
	for _, s := range latest {
		before := 0
		for before < len(past) && !past[before].ended.After(s.began) {
			before++
		}
		e, ok := estimate(past[:before])
		if !ok || c.Sessions == maxCalibration {
			break
		}
		c.Sessions++
		if s.usd <= e.P90 {
			c.Within++
		}
		if s.usd > e.Median {
			c.Above++
		}
	}
	return c
}
