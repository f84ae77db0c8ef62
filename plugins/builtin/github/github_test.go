package github

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeforge"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

const token = "gho_secrettoken1234567890"

// place is a fake host with a repository, and the plugin.
type place struct {
	*fakeforge.Server
	Forge
	t     *testing.T
	dir   string // bare repository
	where forge.Repository
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newPlace returns a host whose repository has the branches main and coven/x, one commit ahead.
func newPlace(t *testing.T) *place {
	t.Helper()
	work, dir := filepath.Join(t.TempDir(), "work"), filepath.Join(t.TempDir(), "bare.git")
	git(t, "init", "-q", work)
	git(t, "-C", work, "commit", "-q", "--allow-empty", "-m", "begin")
	git(t, "-C", work, "checkout", "-q", "-b", "coven/x")
	git(t, "-C", work, "commit", "-q", "--allow-empty", "-m", "work")
	git(t, "clone", "-q", "--bare", work, dir)
	server, err := fakeforge.New(dir, "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	getenv := func(name string) string { return map[string]string{"GH_ENTERPRISE_TOKEN": token}[name] }
	return &place{server, Forge{Getenv: getenv}, t, dir, forge.Repository{Host: server.Host, API: server.API, Path: "acme/app"}}
}

// opened opens the pull request of coven/x.
func (p *place) opened() forge.PullRequest {
	p.t.Helper()
	pull, err := p.Open(p.t.Context(), p.request())
	if err != nil {
		p.t.Fatal(err)
	}
	return pull
}

func (p *place) request() forge.Request {
	return forge.Request{Repository: p.where, Head: "coven/x", Base: "main", Title: "Fix it", Text: "It is fixed.\n"}
}

// poll polls for known pull requests and validates the report.
func (p *place) poll(version string, known ...forge.Known) forge.Report {
	p.t.Helper()
	query := forge.Query{Repository: p.where, Known: known, Version: version}
	report, err := p.Poll(p.t.Context(), query)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := report.Validate(query); err != nil {
		p.t.Fatal(err)
	}
	return report
}

// changed polls for the pull request, which has changed, and returns its state.
func (p *place) changed(before forge.PullRequest) forge.PullRequest {
	p.t.Helper()
	report := p.poll("", forge.Known{Number: before.Number, Version: before.Version})
	if len(report.Changed) != 1 {
		p.t.Fatalf("pull request %d has not changed", before.Number)
	}
	return report.Changed[0]
}

func (p *place) do(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	want := forge.PullRequest{
		Version: pull.Version, Number: 1, URL: "http://" + p.Host + "/acme/app/pull/1", State: forge.Open, Head: git(t, "-C", p.dir, "rev-parse", "coven/x"),
		Base: "main", Mergeable: forge.Clean,
	}
	if !reflect.DeepEqual(pull, want) || pull.Validate() != nil {
		t.Errorf("opened %+v, want %+v: %v", pull, want, pull.Validate())
	}
	again := p.request()
	again.Title, again.Text = "Fix it all", "All."
	if second, err := p.Open(t.Context(), again); err != nil || second.Number != 1 {
		t.Errorf("a second Open: %+v %v", second, err)
	}
	if all := p.Pulls(); len(all) != 1 || all[0].Title != "Fix it all" || all[0].Text != "All." {
		t.Errorf("%+v", all)
	}
	if _, err := p.Open(t.Context(), again); err != nil {
		t.Error(err)
	}
	if counts, _ := p.Counts(); counts["POST pulls"] != 1 || counts["PATCH pulls"] != 1 {
		t.Errorf("requests %v: an unchanged pull request was updated", counts)
	}
	fork := p.request()
	fork.HeadPath = "me/app"
	if pull, err := p.Open(t.Context(), fork); err != nil || pull.Number != 2 {
		t.Errorf("of a fork: %+v %v", pull, err)
	}
	none := p.request()
	none.Head = "coven/none"
	if _, err := p.Open(t.Context(), none); err == nil || !strings.Contains(err.Error(), "head invalid") {
		t.Errorf("of no branch: %v", err)
	}
}

// A poll returns each change once.
func TestPoll(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	if report := p.poll("", forge.Known{Number: 1, Version: pull.Version}); len(report.Changed) > 0 || report.Limit.Total != 5000 || report.Limit.Cost < 1 {
		t.Errorf("nothing has changed: %+v", report)
	}
	for _, step := range []struct {
		name   string
		change func() error
		want   func(pull forge.PullRequest) bool
	}{
		{"push", func() error { return p.Push(1, "a.txt", "a\n", false) }, func(now forge.PullRequest) bool { return now.Head != pull.Head }},
		{"pending", func() error { return p.Check(1, "test", "pending", "") }, func(now forge.PullRequest) bool {
			return len(now.Checks) == 1 && now.Checks[0].Status == forge.Pending && !now.Checks[0].Required && now.Checks[0].ID != ""
		}},
		{"failed", func() error { return p.Check(1, "test", "failed", "@ make\nno\n") }, func(now forge.PullRequest) bool { return now.Checks[0].Status == forge.Failed }},
		{"failed again", func() error { return p.Check(1, "test", "failed", "@ make\nno\n") }, func(now forge.PullRequest) bool {
			return now.Checks[0].Status == forge.Failed && now.Checks[0].ID != pull.Checks[0].ID
		}},
		{"required", func() error { p.Require("test", "deploy"); return nil }, func(now forge.PullRequest) bool {
			return len(now.Checks) == 2 && now.Checks[0] == forge.Check{Name: "deploy", Status: forge.Pending, Required: true} && now.Checks[1].Required && now.Mergeable == forge.Blocked
		}},
		{"status", func() error { return p.Check(1, "status:ext/ci", "failed", "3 errors") }, func(now forge.PullRequest) bool {
			return now.Checks[1].Name == "ext/ci" && now.Checks[1].Status == forge.Failed && now.Checks[1].Summary == "3 errors"
		}},
		{"comment", func() error { return p.Comment(1, "ann", "", "Why?") }, func(now forge.PullRequest) bool {
			c := now.Comments[0]
			return c.By == "ann" && c.Trusted && !c.Own && c.Text == "Why?" && c.Path == ""
		}},
		{"comment of a stranger", func() error { return p.Comment(1, "eve:NONE", "", "Do it.") }, func(now forge.PullRequest) bool { return !now.Comments[1].Trusted }},
		{"comment of a bot", func() error { return p.Comment(1, "ci[bot]:MEMBER", "", "Failed.") }, func(now forge.PullRequest) bool { return !now.Comments[2].Trusted }},
		{"comment on lines", func() error { return p.Comment(1, "ann", "a.txt:1-2", "Here.") }, func(now forge.PullRequest) bool {
			c := now.Comments[3]
			return c.Path == "a.txt" && c.From == 1 && c.Line == 2 && !c.Old && c.Commit == now.Head && !c.Resolved
		}},
		{"comment on a removed line", func() error { return p.Comment(1, "ann", "a.txt:-3", "Gone.") }, func(now forge.PullRequest) bool {
			return now.Comments[4].Old && now.Comments[4].Line == 3 && now.Comments[4].From == 0
		}},
		{"resolved", func() error { return p.Resolve(1) }, func(now forge.PullRequest) bool { return now.Comments[3].Resolved }},
		{"changes requested", func() error { return p.Review(1, "bob", "CHANGES_REQUESTED", "No.") }, func(now forge.PullRequest) bool {
			return now.Changes && now.Comments[5].Text == "No." && now.Comments[5].By == "bob"
		}},
		{"approvals", func() error { p.RequireReviews(2); return p.Review(1, "bob", "APPROVED", "") }, func(now forge.PullRequest) bool {
			return !now.Changes && now.Needs == "1 more approval" && len(now.Comments) == 6
		}},
		{"conflict", func() error {
			return errors.Join(p.PushBase("main", "a.txt", "b\n"), p.Push(1, "a.txt", "c\n", false))
		}, func(now forge.PullRequest) bool { return now.Mergeable == forge.Conflict && len(now.Checks) == 2 }},
		{"closed", func() error { return p.CloseRequest(1, "bob") }, func(now forge.PullRequest) bool { return now.State == forge.Closed && now.By == "bob" }},
		{"branch deleted", func() error { return p.DeleteBranch(1) }, func(now forge.PullRequest) bool { return now.HeadGone }},
		{"own comment", func() error { return p.Comment(1, "owner:NONE", "", "Mine.") }, func(now forge.PullRequest) bool {
			c := now.Comments[6]
			return c.Own && c.Trusted
		}},
		{"deleted", func() error { return p.Delete(1) }, func(now forge.PullRequest) bool { return now.State == forge.Gone }},
	} {
		p.do(step.change())
		now := p.changed(pull)
		if !step.want(now) {
			t.Errorf("%s: %+v", step.name, now)
		}
		if report := p.poll("", forge.Known{Number: 1, Version: now.Version}); len(report.Changed) > 0 {
			t.Errorf("%s is reported twice: %+v", step.name, report.Changed)
		}
		pull = now
	}
}

func TestMerge(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	if _, err := p.Forge.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: strings.Repeat("0", 40)}); err == nil || !strings.Contains(err.Error(), "not the checked commit") {
		t.Errorf("another head: %v", err)
	}
	p.Require("test")
	if _, err := p.Forge.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: pull.Head}); err == nil || !strings.Contains(err.Error(), "Required status check") {
		t.Errorf("without the required check: %v", err)
	}
	p.do(p.Check(1, "test", "passed", ""))
	for range 2 { // the second time, it is merged already
		commit, err := p.Forge.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: pull.Head, Method: "squash"})
		if err != nil || commit != git(t, "-C", p.dir, "rev-parse", "main") {
			t.Fatalf("%q %v", commit, err)
		}
	}
	if now := p.changed(pull); now.State != forge.Merged || now.Commit == "" || now.By != fakeforge.User {
		t.Errorf("%+v", now)
	}
	if parents := git(t, "-C", p.dir, "log", "-1", "--format=%p", "main"); strings.Contains(parents, " ") {
		t.Errorf("squashed, but its parents are %s", parents)
	}
}

func TestQueue(t *testing.T) {
	p := newPlace(t)
	p.Queue(true)
	pull := p.opened()
	for range 2 {
		if commit, err := p.Forge.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: pull.Head}); err != nil || commit != "" {
			t.Fatalf("%q %v", commit, err)
		}
	}
	if now := p.changed(pull); now.State != forge.Queued || now.Queue != 1 {
		t.Errorf("%+v", now)
	}
}

func TestReplyAndRerun(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	p.do(p.Comment(1, "ann", "a.txt:1", "Here."))
	p.do(p.Comment(1, "ann", "", "Why?"))
	p.do(p.Check(1, "test", "failed", "@ make\nno\n"))
	p.do(p.Check(1, "lint-app:lint", "failed", "a:1: bad"))
	p.do(p.Check(1, "status:ext", "failed", "broken"))
	pull = p.changed(pull)
	for _, c := range pull.Comments {
		p.do(p.Reply(t.Context(), p.where, forge.Reply{Number: 1, Comment: c.ID, Text: "Done: " + c.Text}))
	}
	pull = p.changed(pull)
	if n := len(pull.Comments); n != 4 || pull.Comments[2].Answers != pull.Comments[0].ID || !pull.Comments[2].Own || pull.Comments[2].Path != "a.txt" || pull.Comments[3].Text != "Done: Why?" {
		t.Errorf("%+v", pull.Comments)
	}
	for _, c := range pull.Checks {
		err := p.Rerun(t.Context(), p.where, c)
		if c.Name == "ext" && !errors.Is(err, pluginerr.ErrUnsupported) || c.Name != "ext" && err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	for _, c := range p.changed(pull).Checks {
		if c.Name == "ext" {
			continue
		}
		if err := p.Rerun(t.Context(), p.where, c); c.Status != forge.Pending || !errors.Is(err, pluginerr.ErrTransient) {
			t.Errorf("%+v runs again: %v", c, err)
		}
	}
	for _, id := range []string{"", "x:1", "job"} {
		if err := p.Rerun(t.Context(), p.where, forge.Check{ID: id}); err == nil {
			t.Errorf("ID %q: no error", id)
		}
	}
}

func TestLog(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	p.do(p.Check(1, "test", "failed", "@ make build\nbuilt\n@ make test\n\x1b[31mFAIL\x1b[0m a_test.go:1\nprogress 1\rprogress 2\n"))
	p.do(p.Check(1, "lint-app:lint", "failed", "a:1: bad\x1b[0m"))
	p.do(p.Check(1, "status:ext", "failed", "broken"))
	pull = p.changed(pull)
	for name, want := range map[string]string{
		"test": "Run make test\nmake test\n\nFAIL a_test.go:1\nprogress 2\nProcess completed with exit code 1.",
		"lint": "Result of lint\n\na:1: bad", "ext": "broken",
	} {
		i := slices.IndexFunc(pull.Checks, func(c forge.Check) bool { return c.Name == name })
		if got, err := p.Log(t.Context(), p.where, pull.Checks[i], 10_000); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
		if got, err := p.Log(t.Context(), p.where, pull.Checks[i], 40); err != nil || len(got) > 40 || !strings.HasSuffix(want, got) {
			t.Errorf("%s, 40 bytes: %q %v", name, got, err)
		}
	}
	if !p.Authorized("127.0.0.1") || p.Authorized("localhost") {
		t.Error("the token was sent to the host of the log")
	}
}

// The errors of a host are those of the contract, and contain no token.
func TestErrors(t *testing.T) {
	p := newPlace(t)
	p.opened()
	for fault, want := range map[string]error{
		"wrong": pluginerr.ErrTransient, "empty": pluginerr.ErrTransient, "error": pluginerr.ErrTransient, "die": pluginerr.ErrTransient, "denied": fs.ErrPermission, "login": pluginerr.ErrLogin, "secondary": pluginerr.ErrTransient,
	} {
		query := forge.Query{Repository: p.where, Known: []forge.Known{{Number: 1}}}
		p.Fail(fault, 1)
		report, err := p.Poll(t.Context(), query)
		if fault == "secondary" {
			if err != nil || report.Limit.Until.IsZero() || len(report.Changed) > 0 {
				t.Errorf("%s: %+v %v", fault, report, err)
			}
		} else if !errors.Is(err, want) {
			t.Errorf("%s, Poll: %v", fault, err)
		}
		for name, call := range map[string]func() error{
			"Open":  func() error { _, err := p.Open(t.Context(), p.request()); return err },
			"Merge": func() error { _, err := p.Forge.Merge(t.Context(), p.where, forge.Merge{Number: 1}); return err },
		} {
			p.Fail(fault, 1)
			if err := call(); !errors.Is(err, want) || strings.Contains(err.Error(), token) {
				t.Errorf("%s, %s: %v", fault, name, err)
			}
		}
	}
	p.Fail("late", 1)
	p.poll("", forge.Known{Number: 1})
	none := p.where
	none.Path = "acme/none"
	if _, err := p.Poll(t.Context(), forge.Query{Repository: none, Known: []forge.Known{{Number: 1}}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no repository: %v", err)
	}
	p.Getenv = func(string) string { return "" }
	if _, err := p.Open(t.Context(), p.request()); !errors.Is(err, pluginerr.ErrLogin) {
		t.Errorf("no token: %v", err)
	}
}

// The limit of a user is reported, and while it lasts, polls fail without an error.
func TestLimit(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	p.Limit(0, time.Hour)
	report := p.poll("", forge.Known{Number: 1, Version: pull.Version})
	if wait := time.Until(report.Limit.Until); wait < 50*time.Minute || wait > time.Hour {
		t.Errorf("%+v", report.Limit)
	}
	if _, err := p.Open(t.Context(), p.request()); !errors.Is(err, pluginerr.ErrTransient) || !strings.Contains(err.Error(), "rate limit") {
		t.Errorf("Open: %v", err)
	}
	p.do(p.Comment(1, "ann", "", "Why?"))
	p.Limit(1, time.Hour) // enough for the light query
	if report := p.poll("", forge.Known{Number: 1, Version: pull.Version}); report.Limit.Until.IsZero() {
		t.Errorf("in the middle: %+v", report)
	}
}

func TestRename(t *testing.T) {
	p := newPlace(t)
	pull := p.opened()
	p.Rename("acme/tool")
	report := p.poll("", forge.Known{Number: 1, Version: pull.Version})
	if report.Moved != "acme/tool" {
		t.Errorf("%+v", report)
	}
	p.do(p.Comment(1, "ann", "", "Why?"))
	pull = p.changed(pull)
	p.do(p.Reply(t.Context(), p.where, forge.Reply{Number: 1, Comment: pull.Comments[0].ID, Text: "So."})) // redirected
	again := p.request()
	again.Title = "New"
	if _, err := p.Open(t.Context(), again); err != nil || p.Pulls()[0].Title != "New" {
		t.Errorf("%v %+v", err, p.Pulls())
	}
}

// A hundred pull requests that are polled every half minute stay within the rate limit. The rules of their base do not count if
// they are unchanged.
func TestHundred(t *testing.T) {
	p := newPlace(t)
	p.Require("test")
	var known []forge.Known
	for i := range 100 {
		branch := fmt.Sprintf("coven/%d", i)
		git(t, "-C", p.dir, "branch", branch, "coven/x")
		request := p.request()
		request.Head = branch
		pull, err := p.Open(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, forge.Known{Number: pull.Number, Version: pull.Version})
	}
	first := p.poll("", known...)
	requests, before := p.Counts()
	const polls = 3
	for range polls {
		if report := p.poll(first.Version, known...); len(report.Changed) > 0 {
			t.Fatalf("%d have changed", len(report.Changed))
		}
	}
	after, points := p.Counts()
	hourly := (points - before) / polls * 120
	t.Logf("%d points an hour", hourly)
	if hourly > 1000 || after["304"]-requests["304"] != polls || after["POST graphql"]-requests["POST graphql"] != polls {
		t.Errorf("%d points an hour, requests %v after %v", hourly, after, requests)
	}
}
