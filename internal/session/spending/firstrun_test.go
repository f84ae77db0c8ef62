package spending

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A leaf belongs to the steps at the beginning of its path.
func TestIsIn(t *testing.T) {
	t.Parallel()
	fix := []string{"quality", "tests", "fix"}
	for leaf, want := range map[string]bool{
		"quality[1]/tests[1]/fix#1": true, "quality[2]/tests#2[3]/fix#4": true, "quality[1]/fix#1": false, "tests[1]/fix#1": false,
		"quality[1]/tests[1]/fixed#1": false, "revise@1/quality[1]/tests[1]/fix#1": false,
	} {
		if isIn(leaf, fix) != want {
			t.Errorf("%s: %v", leaf, !want)
		}
	}
	if !isIn("quality[1]/tests[1]/fix#1", fix[:1]) || !isIn("quality[1]/review#1", fix[:1]) || isIn("quality#1", nil) {
		t.Error("of a step with inner steps")
	}
	if got := iterationsAround("quality[1]/tests[2]/fix#1", fix); got != "quality[1]/tests[2]" || iterationsAround("a#1", []string{"a"}) != "" {
		t.Error(got)
	}
}

// The first run of a step has all its attempts, and nothing of its later iterations or of other steps.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var text strings.Builder
	for i, line := range []string{
		`"type":"session.started","data":{"query":"Do it"}`,
		`"type":"step.started","path":"work#1","data":{"kind":"agent","snapshot":"s1"}`,
		`"type":"step.completed","path":"work#1","data":{"ok":true,"used":{"usd":1},"input":"x"}`,
		`"type":"land.done","path":"land-one#1","data":{"old":"a","new":"b"}`,
		`"type":"check.ended","path":"loop[1]/tests#1","data":{"command":"make","exit_code":1}`,
		`"type":"step.started","path":"loop[1]/fix#1","data":{"kind":"agent","snapshot":"s2"}`,
		`"type":"step.completed","path":"loop[1]/fix#1","data":{"used":{"usd":2,"wall":1000000000},"input":"x"}`,
		`"type":"step.started","path":"loop[1]/fix#2","data":{"kind":"agent","snapshot":"s3"}`,
		`"type":"step.completed","path":"loop[1]/fix#2","data":{"ok":true,"used":{"usd":3},"input":"x"}`,
		`"type":"step.started","path":"loop[2]/fix#1","data":{"kind":"agent","snapshot":"s4"}`,
		`"type":"step.completed","path":"loop[2]/fix#1","data":{"ok":true,"used":{"usd":9},"input":"x"}`,
		`"type":"check.ended","path":"land#1","data":{"command":"make","exit_code":0}`,
		`"type":"session.completed","data":{"commit":"c"}`,
	} {
		fmt.Fprintf(&text, `{"v":1,"seq":%d,"time":"2026-01-01T00:00:00Z","task":"t",%s}`+"\n", i+1, line)
	}
	if err := os.WriteFile(filepath.Join(dir, "events.jsonl"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, found, err := FirstRun(dir, []string{"loop", "fix"})
	if err != nil || !found || len(r.Before) != 5 || r.Landed != "b" || r.Snapshot != "s2" || r.Used.USD != 5 || len(r.After.Receipts) != 1 || r.After.Commit != "c" {
		t.Errorf("%+v, %v, %v", r, found, err)
	}
	if r, found, err = FirstRun(dir, []string{"loop"}); err != nil || !found || r.Used.USD != 14 || r.Snapshot != "s2" {
		t.Errorf("of the loop: %+v, %v, %v", r, found, err)
	}
	if _, found, err := FirstRun(dir, []string{"fix"}); found || err != nil {
		t.Error(found, err)
	}
}
