package metrics

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	seconds := func(n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(i+1)*time.Second)
		}
		return all
	}
	for _, test := range []struct{ n, p50, p95 int }{{1, 1, 1}, {2, 1, 2}, {3, 2, 3}, {10, 5, 10}, {19, 10, 19}, {20, 10, 19}, {100, 50, 95}} {
		took := seconds(test.n)
		if p50, p95 := percentile(took, 50), percentile(took, 95); p50 != time.Duration(test.p50)*time.Second || p95 != time.Duration(test.p95)*time.Second {
			t.Errorf("of %d: %s, %s", test.n, p50, p95)
		}
	}
}

// An agent without questions and evaluations has no rates, rather than rates of zero.
func TestRates(t *testing.T) {
	t.Parallel()
	got := Of([]Run{{Agent: "b", Kind: Primary}, {Agent: "a", Kind: Subagent, Succeeded: true, Answered: 2, Approved: 1, Attempts: 3, Passed: true}, {Agent: "a", Kind: Primary}})
	if len(got) != 3 || got[0].Kind != Primary || got[1].Kind != Subagent || got[2].Agent != "b" {
		t.Fatalf("%+v", got)
	}
	if got[2].Approvals.Rate != nil || got[2].Reflection.Rate != nil || got[2].Success != 0 {
		t.Errorf("%+v", got[2])
	}
	if r := got[1]; *r.Approvals.Rate != 0.5 || *r.Reflection.Rate != 1 || r.Reflection.Attempts != 3 || r.Success != 1 {
		t.Errorf("%+v", r)
	}
}
