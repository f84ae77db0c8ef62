package session

import (
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
