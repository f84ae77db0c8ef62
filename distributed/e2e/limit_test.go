package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// limitOf is how long the account is limited. The second session must have asked by then.
const limitOf = 30 * time.Second

// A request is one that the model was asked.
type request struct {
	Kind   string    `json:"kind"`
	Status int       `json:"status"`
	Time   time.Time `json:"time"`
}

// TestLimit limits the account of two machines. The first one is refused, and its session ends its stretch. The second machine waits without a call.
func TestLimit(t *testing.T) {
	first := files()
	first[".coven/config.yaml"] += "limits: {max_wait: 1s}\n"
	for _, name := range []string{"one", "two"} {
		first[".beads/issues.jsonl"] += fmt.Sprintf(`{"_type":"issue","id":"t-%s","title":"Add %s","status":"open","issue_type":"task","labels":["grimoire:plain","needs:%s"],"created_at":"2026-01-01T00:00:00Z"}`+"\n", name, name, name)
	}
	refusal := fmt.Sprintf("fail: [{status: 429, retry_after: %s}]", limitOf)
	w := newWorld(t, strings.Replace(adds("one", "two"), "hold: one", refusal, 1), first)
	w.release("two")
	one, two := w.newPlace("one"), w.newPlace("two")
	for _, p := range []*place{one, two} { // an API on this machine would be another one for each
		p.env = append(p.env, "HTTP_PROXY="+w.api, "ANTHROPIC_BASE_URL=http://api.example.invalid", "ANTHROPIC_API_KEY=sk-ant-"+strings.Repeat("0", 40))
	}
	one.worker("--label", "one").says("serves")
	second := two.worker("--label", "two")
	refused := w.desk.coven("run", "t-one", "--yes")
	w.eventually("the first session waits", func() bool { return tells(w.desk.coven("status").wait(0), `t-one .*waiting \(limit\)`) })
	waited := w.desk.coven("run", "t-two", "--yes")
	second.says("t-two: waiting limit")
	w.contains(w.desk.coven("why", "t-two").wait(0), "the account anthropic is limited (met on another machine) until")
	refused.wait(0)
	waited.wait(0)
	w.landed("one", "two")

	var turns []request
	w.must(json.Unmarshal([]byte(w.ask(http.MethodGet, "requests", http.StatusOK)), &turns))
	turns = slices.DeleteFunc(turns, func(r request) bool { return r.Kind != "turn" })
	for i, turn := range turns {
		if limited := turn.Status == http.StatusTooManyRequests; limited != (i == 0) {
			t.Errorf("request %d was answered with %d", i, turn.Status)
		}
		if after := turn.Time.Sub(turns[0].Time); i > 0 && after < limitOf {
			t.Errorf("request %d came after %s", i, after)
		}
	}
}
