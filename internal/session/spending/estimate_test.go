package spending

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// sessions returns ended sessions of a grimoire with the given costs, one each hour.
func sessions(grimoire string, costs ...float64) (all []session.Summary) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, usd := range costs {
		began := at.Add(time.Duration(i) * time.Hour)
		all = append(all, session.Summary{
			ID: fmt.Sprint(grimoire, i), Task: "t", Grimoire: grimoire, Status: event.StatusCompleted, Started: began, Ended: began.Add(30 * time.Minute), Cost: usd,
		})
	}
	return all
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	others := sessions("other", 100, 100, 100, 100, 100, 100)
	open := sessions("make", 50)
	open[0].Ended = time.Time{}
	free := sessions("make", 0, 0, 0)
	for _, test := range []struct {
		costs []float64
		want  Estimate
	}{
		{nil, Estimate{}},
		{[]float64{1, 2, 3, 4}, Estimate{}},
		{[]float64{5, 1, 3, 4, 2}, Estimate{Sessions: 5, Median: 3, P90: 5}},
		{[]float64{1, 2, 3, 4, 5, 6}, Estimate{Sessions: 6, Median: 3.5, P90: 6, Calibration: Calibration{Sessions: 1, Above: 1}}},
		{[]float64{1, 2, 3, 4, 5, 2, 4}, Estimate{Sessions: 7, Median: 3, P90: 5, Calibration: Calibration{Sessions: 2, Within: 2, Above: 1}}},
		{[]float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, Estimate{Sessions: 10, Median: 5.5, P90: 10, Calibration: Calibration{Sessions: 5, Within: 5}}},
	} {
		all := append(append(append(sessions("make", test.costs...), others...), open...), free...)
		got, ok := EstimateOf(all, "make")
		if got != test.want || ok != (test.want.Sessions > 0) {
			t.Errorf("%v: %+v", test.costs, got)
		}
	}
	var costs []float64
	for i := range 200 {
		costs = append(costs, float64(200-i)) // the last 30 cost 30 to 1
	}
	if got, _ := EstimateOf(sessions("make", costs...), "make"); got != (Estimate{Sessions: 30, Median: 15.5, P90: 28, Calibration: Calibration{Sessions: 20, Within: 20}}) {
		t.Errorf("of many: %+v", got)
	}
}

// A session that ran while another one ended is not estimated from that one.
func TestCalibrationUsesOnlyEndedSessions(t *testing.T) {
	t.Parallel()
	all := sessions("make", 1, 1, 1, 1, 1, 2)
	last := &all[len(all)-1]
	last.Started = all[0].Started
	if got, _ := EstimateOf(all, "make"); got.Sessions != 6 || got.Calibration.Sessions != 0 {
		t.Errorf("%+v", got)
	}
	last.Started = all[4].Ended
	if got, _ := EstimateOf(all, "make"); got.Calibration != (Calibration{Sessions: 1, Above: 1}) {
		t.Errorf("at the same instant: %+v", got)
	}
}

// The estimates hold as often as they say, for costs that follow one distribution. They hold less often while costs grow.
func TestCalibrationOfSimulatedSessions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		cost        func(r *rand.Rand, i int) float64
		least, most float64 // share of the sessions within the 90th percentile
	}{
		{"log-normal", func(r *rand.Rand, _ int) float64 { return math.Exp(r.NormFloat64() * 0.8) }, 0.88, 0.92},
		{"two kinds of tasks", func(r *rand.Rand, _ int) float64 {
			if r.IntN(5) == 0 {
				return 5 * math.Exp(r.NormFloat64()*0.3)
			}
			return 0.5 * math.Exp(r.NormFloat64()*0.3)
		}, 0.88, 0.92},
		{"heavy tail", func(r *rand.Rand, _ int) float64 { return math.Pow(1-r.Float64(), -1) }, 0.88, 0.92},
		{"three times as much after 60", func(r *rand.Rand, i int) float64 {
			return math.Exp(r.NormFloat64()*0.8) * (1 + 2*float64(i/60))
		}, 0.65, 0.80},
	} {
		const repositories, each = 300, 80
		within, above, compared := 0, 0, 0
		few, fewWithin := 0, 0 // from 5 to 8 sessions
		for seed := range uint64(repositories) {
			r := rand.New(rand.NewPCG(seed, 38))
			var costs []float64
			for i := range each {
				costs = append(costs, test.cost(r, i))
			}
			for _, n := range []int{9, each} {
				c := calibrate(pastOf(costs[:n]))
				if n == each {
					within, above, compared = within+c.Within, above+c.Above, compared+c.Sessions
				} else {
					few, fewWithin = few+c.Sessions, fewWithin+c.Within
				}
			}
		}
		share := float64(within) / float64(compared)
		t.Logf("%s: %d of %d (%.1f%%) within the 90th percentile, %.1f%% above the median; from 5 to 8 sessions: %.1f%%",
			test.name, within, compared, 100*share, 100*float64(above)/float64(compared), 100*float64(fewWithin)/float64(few))
		if compared != repositories*maxCalibration || share < test.least || share > test.most {
			t.Errorf("%s: %.3f of %d", test.name, share, compared)
		}
	}
}

func pastOf(costs []float64) (past []ended) {
	for _, s := range sessions("make", costs...) {
		past = append(past, ended{s.Started, s.Ended, s.Cost})
	}
	return past
}
