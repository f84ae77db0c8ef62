package agentresult_test

import (
	"testing"

	"github.com/coven-run/coven/runner/agentresult"
)

const fence = "```"

// K-15
func TestParse(t *testing.T) {
	tests := []struct {
		name, text    string
		found, broken bool
		success       bool
		summary       string
		shown         string
	}{
		{"none", "All done.", false, false, false, "", "All done."},
		{"json", "Done.\n\n" + fence + "json\n{\"success\": true, \"summary\": \"s\"}\n" + fence, true, false, true, "s", "Done."},
		{"unmarked", "Done.\n" + fence + "\n{\"success\": true, \"summary\": \"s\"}\n" + fence + "\n", true, false, true, "s", "Done."},
		{"failure without a summary", fence + "json\n{\"success\": false, \"error\": \"e\"}\n" + fence, true, false, false, "", ""},
		{"the last one counts", fence + "json\n{\"success\": false}\n" + fence + "\nthen\n" + fence + "json\n{\"success\": true, \"summary\": \"2\"}\n" + fence, true, false, true, "2", fence + "json\n{\"success\": false}\n" + fence + "\nthen"},
		{"other json", "See:\n" + fence + "json\n{\"a\": 1}\n" + fence, false, false, false, "", "See:\n" + fence + "json\n{\"a\": 1}\n" + fence},
		{"code at the end", "See:\n" + fence + "go\nfunc main() {}\n" + fence, false, false, false, "", "See:\n" + fence + "go\nfunc main() {}\n" + fence},
		{"broken", "x\n" + fence + "json\n{\"success\": tru}\n" + fence, false, true, false, "", "x\n" + fence + "json\n{\"success\": tru}\n" + fence},
		{"wrong type", "x\n" + fence + "json\n{\"success\": \"yes\"}\n" + fence, false, true, false, "", "x\n" + fence + "json\n{\"success\": \"yes\"}\n" + fence},
		{"wrong type beside a success", fence + "json\n{\"success\": true, \"outputs\": []}\n" + fence, false, true, false, "", fence + "json\n{\"success\": true, \"outputs\": []}\n" + fence},
		{"wrong type beside a failure", fence + "json\n{\"success\": false, \"outputs\": [1], \"summary\": \"s\"}\n" + fence, true, false, false, "s", ""}, // original 3c 8
		{"never closed", "x\n" + fence + "json\n{\"success\": true}", false, false, false, "", "x\n" + fence + "json\n{\"success\": true}"},
		{"empty", "", false, false, false, "", ""},
	}
	for _, tt := range tests {
		c, found, err := agentresult.Parse(tt.text)
		if found != tt.found || (err != nil) != tt.broken || c.Success != tt.success || c.Summary != tt.summary {
			t.Errorf("%s: %+v, %v, %v", tt.name, c, found, err)
		}
		if shown := agentresult.Without(tt.text); shown != tt.shown {
			t.Errorf("%s: shown as %q", tt.name, shown)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fence + "json\n{\"success\": true}\n" + fence)
	f.Add(fence + fence)
	f.Fuzz(func(t *testing.T, text string) {
		if _, found, err := agentresult.Parse(text); found && err != nil {
			t.Fatal("found, with an error")
		}
		if len(agentresult.Without(text)) > len(text) {
			t.Fatal("longer without the result block")
		}
	})
}
