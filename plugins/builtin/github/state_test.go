package github

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/forge"
)

// whole returns the pull request of an answer to fullQuery.
func whole(t *testing.T, answer string) *pull {
	t.Helper()
	p := &pull{light: json.RawMessage(`{}`)}
	if err := json.Unmarshal([]byte(`{"number": 1, "state": "OPEN", "headRefOid": "`+strings.Repeat("0a", 20)+`", "baseRefName": "main", "url": "https://github.com/o/r/pull/1", `+answer[1:]), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// run returns a check run of GitHub Actions as JSON.
func run(id int, name, workflow, event, conclusion string) string {
	return fmt.Sprintf(`{"__typename": "CheckRun", "databaseId": %d, "name": %q, "status": "COMPLETED", "conclusion": %q, "startedAt": "2026-01-02T03:04:%02dZ",
		"checkSuite": {"app": {"slug": "github-actions"}, "workflowRun": {"event": %q, "workflow": {"name": %q}}}}`, id, name, conclusion, id%60, event, workflow)
}

func contexts(all ...string) string {
	return `{"checks": {"contexts": {"nodes": [` + strings.Join(all, ",") + `]}}}`
}

// The names of checks are unique, and an earlier run of a check is left out.
func TestChecks(t *testing.T) {
	p := whole(t, contexts(
		run(1, "test", "CI", "push", "FAILURE"), run(2, "test", "CI", "push", "SUCCESS"), // run again
		run(3, "test", "CI", "pull_request", "SUCCESS"), run(4, "test", "Nightly", "push", "SUCCESS"), run(5, "lint", "CI", "push", "CANCELLED"),
		`{"__typename": "StatusContext", "id": "s", "context": "lint", "state": "EXPECTED"}`,
		`{"__typename": "CheckRun", "name": "", "status": "WAITING", "url": "https://github.com/o/r/runs/77"}`,
		`{"__typename": "CheckRun", "databaseId": 8, "name": "skipped\u001b[1m", "status": "COMPLETED", "conclusion": "SKIPPED", "detailsUrl": "javascript:x", "isRequired": true}`,
	))
	state := p.convert(rules{Checks: []string{"test", "lint", "absent"}})
	if err := state.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range state.Checks {
		got = append(got, fmt.Sprintf("%s|%s|%s|%v|%s", c.Name, c.Status, c.ID, c.Required, c.Summary))
	}
	want := []string{
		"CI / lint|failed|job:5|true|cancelled", "CI / test (pull_request)|passed|job:3|true|", "CI / test (push)|passed|job:2|true|", "Nightly / test|passed|job:4|true|",
		"absent|pending||true|", "check|failed|run:77|false|waiting", "lint|pending|status:s|true|", "skipped [1m|passed|run:8|true|",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("checks\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Too many checks and comments are cut: what failed and the latest stay.
func TestMany(t *testing.T) {
	var runs, comments []string
	for i := range forge.MaxChecks + 50 {
		conclusion := "SUCCESS"
		if i > forge.MaxChecks {
			conclusion = "FAILURE"
		}
		runs = append(runs, run(i+1, fmt.Sprintf("check %04d", i), "CI", "push", conclusion))
		comments = append(comments, fmt.Sprintf(`{"id": "c%d", "body": "é", "createdAt": "2026-01-02T03:%02d:%02dZ"}`, i, i/60, i%60))
	}
	p := whole(t, contexts(runs...))
	more := whole(t, `{"comments": {"nodes": [`+strings.Join(comments, ",")+`]}}`)
	p.Comments = more.Comments
	p.Comments.Nodes[0].Body, p.Comments.Nodes[60].Body = strings.Repeat("é", 40_000), strings.Repeat("é", 40_000)
	state := p.convert(rules{})
	if err := state.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(state.Checks) != forge.MaxChecks || state.Checks[0].Status != forge.Failed || state.Comments[len(state.Comments)-1].ID != fmt.Sprintf("issue:c%d", forge.MaxChecks+49) {
		t.Errorf("%d checks, the first %+v", len(state.Checks), state.Checks[0])
	}
}

// Without required checks and without checks, there are none.
func TestNoChecks(t *testing.T) {
	if state := whole(t, `{"checks": null}`).convert(rules{}); len(state.Checks) > 0 || state.Needs != "" {
		t.Errorf("%+v", state)
	}
	old := whole(t, `{"baseRef": {"refUpdateRule": {"requiredStatusCheckContexts": ["ci"], "requiredApprovingReviewCount": 2, "requiresConversationResolution": true}},
		"threads": {"nodes": [{"id": "t", "path": "a", "comments": {"nodes": []}}]}}`)
	if state := old.convert(rules{}); len(state.Checks) != 1 || state.Needs != "2 more approvals, 1 open conversation to resolve" {
		t.Errorf("the older protection: %+v", state)
	}
}

// Comments that cannot be placed, drafts, and those that are hidden.
func TestComments(t *testing.T) {
	p := whole(t, `{"threads": {"nodes": [
		{"id": "t1", "path": "../x", "diffSide": "RIGHT", "comments": {"nodes": [{"id": "a", "body": "outside", "originalLine": 3, "createdAt": "2026-01-02T03:04:05Z"}]}},
		{"id": "t2", "path": "f", "diffSide": "RIGHT", "comments": {"nodes": [{"id": "b", "body": "draft", "state": "PENDING"}, {"id": "c", "body": "hidden", "isMinimized": true},
			{"id": "d", "body": "file", "author": null, "createdAt": "2026-01-02T03:04:06Z", "originalCommit": {"oid": "`+strings.Repeat("1b", 20)+`"}}]}}]}}`)
	state := p.convert(rules{})
	if err := state.Validate(); err != nil || len(state.Comments) != 2 {
		t.Fatalf("%+v %v", state.Comments, err)
	}
	if c := state.Comments[0]; c.Path != "" || c.Line != 0 || c.Text != "outside" {
		t.Errorf("%+v", c)
	}
	if c := state.Comments[1]; c.Path != "f" || c.Line != 0 || c.By != "ghost" || c.Commit == "" || c.Answers != "" {
		t.Errorf("%+v", c)
	}
}

func TestCut(t *testing.T) {
	const log = "2026-01-02T03:04:05.1Z before\n2026-01-02T03:04:06.9Z ##[group]Run a\n2026-01-02T03:04:06.9Z ##[endgroup]\n2026-01-02T03:04:06.9Z \x1b[31mno\x1b[0m\r\n2026-01-02T03:04:06.9Z ##[error]exit code 1.\n2026-01-02T03:04:06.95Z Post job cleanup.\n"
	for name, c := range map[string]struct {
		step step
		want string
	}{
		"the step":   {step{StartedAt: at("06"), CompletedAt: at("06")}, "Run a\n\nno\nexit code 1."},
		"no times":   {step{}, "before\nRun a\n\nno\nexit code 1.\nPost job cleanup."},
		"other time": {step{StartedAt: at("09"), CompletedAt: at("09")}, ""},
	} {
		if got, err := cut(strings.NewReader(log), c.step, 1000); err != nil || got != c.want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	long := strings.Repeat("x", 3*maxLine) + "\n" + strings.Repeat("line\n", 100_000)
	if got, err := cut(strings.NewReader(long), step{}, 14); err != nil || got != "line\nline" {
		t.Errorf("long: %q %v", got, err)
	}
}

func at(second string) time.Time {
	t, _ := time.Parse(time.RFC3339, "2026-01-02T03:04:"+second+"Z")
	return t
}

// The lists of a pull request that need several pages are complete.
func TestPages(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	for i := range 120 {
		p.do(p.Check(1, fmt.Sprintf("check %d", i), "passed", ""))
		p.do(p.Comment(1, "ann", "", fmt.Sprint("comment ", i)))
		p.do(p.Comment(1, "ann", "a.txt:1", fmt.Sprint("on a line ", i)))
	}
	if now := p.changed(pull); len(now.Checks) != 120 || len(now.Comments) != 240 {
		t.Errorf("%d checks, %d comments", len(now.Checks), len(now.Comments))
	}
}

// A poll that fails in the middle reports what it has read, so that the next one continues.
func TestPartial(t *testing.T) {
	p := newPlace(t)
	var known []forge.Known
	for i := range 3 {
		branch := fmt.Sprintf("coven/%d", i)
		git(t, "-C", p.dir, "branch", branch, "coven/x")
		number, err := p.OpenRequest(branch, "main", branch)
		p.do(err)
		known = append(known, forge.Known{Number: number})
	}
	p.Limit(4, time.Hour) // the light query, the rules, and two pull requests
	report := p.poll("", known...)
	if len(report.Changed) != 2 || !report.Limit.Until.IsZero() || report.Version == "" {
		t.Fatalf("%+v", report)
	}
	p.Limit(4, time.Hour)
	for i, pull := range report.Changed {
		known[i].Version = pull.Version
	}
	if report = p.poll(report.Version, known...); len(report.Changed) != 1 || report.Changed[0].Number != 3 {
		t.Errorf("%+v", report)
	}
}
