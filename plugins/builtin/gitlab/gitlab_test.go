package gitlab

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/fake/fakeforge"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

type m = map[string]any

const (
	head  = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
	base  = "/api/v4/projects/acme%2Ftools%2Fapp"
	token = "glpat-secrettoken123456"
)

// place is a fake host with a project, and the plugin.
type place struct {
	*fakeforge.Routes
	Forge
	where forge.Repository
	mr    m
}

func newPlace(t *testing.T) *place {
	t.Helper()
	routes := fakeforge.NewRoutes("Private-Token", token)
	t.Cleanup(routes.Close)
	getenv := func(name string) string {
		return map[string]string{"GITLAB_TOKEN": token, "GITLAB_HOST": "http://" + routes.Host}[name]
	}
	p := &place{Routes: routes, Forge: Forge{Getenv: getenv}}
	p.where = forge.Repository{Host: routes.Host, API: "http://" + routes.Host + "/api/v4", Path: "acme/tools/app"}
	p.mr = m{
		"iid": 1, "web_url": "http://" + routes.Host + "/acme/tools/app/-/merge_requests/1", "title": "Fix it", "description": "Done.", "state": "opened", "draft": false, "sha": head,
		"source_branch": "coven/x", "target_branch": "main", "source_project_id": 7, "detailed_merge_status": "mergeable", "updated_at": "2026-01-02T03:04:05.678Z",
		"head_pipeline": m{"id": 5, "sha": head, "status": "failed", "updated_at": "2026-01-02T03:04:05Z"},
	}
	p.Set("GET "+base, m{"id": 7, "path_with_namespace": "acme/tools/app", "only_allow_merge_if_pipeline_succeeds": true})
	p.Set("GET "+base+"/merge_requests/1", p.mr)
	p.Set("GET "+base+"/merge_requests/1/approvals", m{"approvals_left": 2})
	p.Set("GET "+base+"/repository/commits/"+head+"/statuses", []m{
		{"id": 11, "name": "test", "status": "failed"}, {"id": 12, "name": "test", "status": "running"}, // run again
		{"id": 13, "name": "lint", "status": "failed", "allow_failure": true, "description": "3 errors"}, {"id": 14, "name": "deploy", "status": "manual", "allow_failure": true},
	})
	p.Set("GET /api/v4/projects/7/repository/branches/coven%2Fx", m{"name": "coven/x"})
	p.Set("GET /api/v4/user", m{"id": 1, "username": "me"})
	p.Set("GET "+base+"/members/all/1", m{"access_level": 40})
	p.Set("GET "+base+"/members/all/2", m{"access_level": 10})
	p.Set("GET "+base+"/merge_requests/1/discussions", []m{
		{"id": "d1", "notes": []m{
			{
				"id": 21, "body": "Here.", "author": m{"id": 1, "username": "me"}, "created_at": "2026-01-02T03:04:05Z", "resolved": true,
				"position": m{"position_type": "text", "head_sha": head, "new_path": "a.txt", "old_path": "a.txt", "new_line": 4, "line_range": m{"start": m{"new_line": 2}}},
			},
			{"id": 22, "body": "So?", "author": m{"id": 2, "username": "eve"}, "created_at": "2026-01-02T03:04:06Z"},
		}},
		{"id": "d2", "notes": []m{
			{"id": 23, "body": "approved", "system": true},
			{"id": 24, "body": "Gone.", "author": m{"id": 3, "username": "bob"}, "created_at": "2026-01-02T03:04:07Z", "position": m{"head_sha": head, "old_path": "b.txt", "new_path": "b.txt", "old_line": 3}},
		}},
	})
	return p
}

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

func (p *place) poll(t *testing.T, version string) forge.Report {
	t.Helper()
	query := forge.Query{Repository: p.where, Known: []forge.Known{{Number: 1, Version: version}}}
	report, err := p.Poll(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Validate(query); err != nil {
		t.Fatal(err)
	}
	return report
}

func TestPoll(t *testing.T) {
	p := newPlace(t)
	report := p.poll(t, "")
	if len(report.Changed) != 1 {
		t.Fatalf("%+v", report)
	}
	got := report.Changed[0]
	want := forge.PullRequest{
		Version: got.Version, Number: 1, URL: p.mr["web_url"].(string), State: forge.Open, Head: head, Base: "main", Mergeable: forge.Clean, Needs: "2 more approvals",
		Checks: []forge.Check{{ID: "job:13", Name: "lint", Status: forge.Failed, Summary: "3 errors"}, {ID: "job:12", Name: "test", Status: forge.Pending, Required: true}},
		Comments: []forge.Comment{
			{ID: "d1:21", By: "me", Trusted: true, Own: true, Time: at(5), Text: "Here.", Path: "a.txt", From: 2, Line: 4, Commit: head, Resolved: true},
			{ID: "d1:22", By: "eve", Time: at(6), Text: "So?", Answers: "d1:21"},
			{ID: "d2:24", By: "bob", Time: at(7), Text: "Gone.", Path: "b.txt", Line: 3, Old: true, Commit: head},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	p.Asked()
	if again := p.poll(t, got.Version); len(again.Changed) > 0 || len(p.Asked()) != 2 {
		t.Errorf("nothing has changed: %+v", again)
	}
	for status, want := range map[string]forge.Mergeable{"need_rebase": forge.Behind, "conflict": forge.Conflict, "ci_must_pass": forge.Blocked, "checking": forge.Unknown, "requested_changes": forge.Blocked} {
		p.mr["detailed_merge_status"] = status
		if now := p.poll(t, got.Version).Changed[0]; now.Mergeable != want || now.Changes != (status == "requested_changes") {
			t.Errorf("%s: %+v", status, now)
		}
	}
	for state, want := range map[string]forge.State{"merged": forge.Merged, "closed": forge.Closed, "locked": forge.Queued} {
		p.mr["state"], p.mr["merge_user"], p.mr["closed_by"], p.mr["squash_commit_sha"] = state, m{"username": "ann"}, m{"username": "ann"}, strings.Repeat("1b", 20)
		if now := p.poll(t, got.Version).Changed[0]; now.State != want || state == "merged" && (now.Commit != strings.Repeat("1b", 20) || now.By != "ann") {
			t.Errorf("%s: %+v", state, now)
		}
	}
	p.Set("GET "+base, m{"id": 7, "path_with_namespace": "acme/app"})
	p.Set("GET "+base+"/merge_requests/1", nil)
	if report := p.poll(t, "x"); report.Moved != "acme/app" || report.Changed[0].State != forge.Gone {
		t.Errorf("%+v", report)
	}
}

func TestOpen(t *testing.T) {
	p := newPlace(t)
	var sent m
	save := func(body map[string]any) any { sent = body; return p.mr }
	p.Set("GET "+base+"/merge_requests", []m{})
	p.Set("POST /api/v4/projects/7/merge_requests", save)
	request := forge.Request{Repository: p.where, Head: "coven/x", Base: "main", Title: "Fix it", Text: "Done.", Draft: true}
	pull, err := p.Open(t.Context(), request)
	if err != nil || pull.Number != 1 || pull.Version == "" || fmt.Sprint(sent["source_branch"], sent["target_branch"], sent["title"], sent["target_project_id"]) != "coven/xmainDraft: Fix it7" {
		t.Errorf("%+v %v %v", pull, err, sent)
	}
	p.Set("GET "+base+"/merge_requests", []m{p.mr})
	p.Set("PUT "+base+"/merge_requests/1", save)
	sent = nil
	if _, err := p.Open(t.Context(), request); err != nil || sent != nil {
		t.Errorf("unchanged: %v %v", err, sent)
	}
	request.Title = "Fix it all"
	if _, err := p.Open(t.Context(), request); err != nil || sent["title"] != "Fix it all" {
		t.Errorf("%v %v", err, sent)
	}
}

func TestAct(t *testing.T) {
	p := newPlace(t)
	check := forge.Check{ID: "job:12", Name: "test", Status: forge.Failed}
	p.Set("GET "+base+"/jobs/12/trace", "section_start:1:step_script\r\x1b[0K\x1b[0Kmake test\n\x1b[31mFAIL\x1b[0m a\nsection_end:2:step_script\r\x1b[0KERROR: Job failed: exit code 1\n")
	if log, err := p.Log(t.Context(), p.where, check, 1000); err != nil || log != "make test\nFAIL a\nERROR: Job failed: exit code 1" {
		t.Errorf("%q %v", log, err)
	}
	p.Set("POST "+base+"/jobs/12/retry", m{})
	p.Set("POST "+base+"/merge_requests/1/discussions/d1/notes", m{})
	if err := errors.Join(p.Rerun(t.Context(), p.where, check), p.Reply(t.Context(), p.where, forge.Reply{Number: 1, Comment: "d1:21", Text: "Done."})); err != nil {
		t.Error(err)
	}
	p.Set("PUT "+base+"/merge_requests/1/merge", func(body map[string]any) any {
		if body["sha"] != head || body["squash"] != true {
			return 409
		}
		p.mr["state"], p.mr["merge_commit_sha"] = "merged", strings.Repeat("1b", 20)
		return p.mr
	})
	if _, err := p.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: strings.Repeat("0", 40)}); err == nil {
		t.Error("another head was merged")
	}
	for range 2 {
		if commit, err := p.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: head, Method: "squash"}); err != nil || commit != strings.Repeat("1b", 20) {
			t.Errorf("%q %v", commit, err)
		}
	}
}

func TestErrors(t *testing.T) {
	p := newPlace(t)
	query := forge.Query{Repository: p.where, Known: []forge.Known{{Number: 1}}}
	for answer, want := range map[any]error{403: fs.ErrPermission, 500: pluginerr.ErrTransient, 401: pluginerr.ErrLogin, "<html>": pluginerr.ErrTransient} {
		p.Set("GET "+base+"/merge_requests/1", answer)
		if _, err := p.Poll(t.Context(), query); !errors.Is(err, want) || strings.Contains(err.Error(), token) {
			t.Errorf("%v: %v", answer, err)
		}
	}
	p.Set("GET "+base, 429)
	if report, err := p.Poll(t.Context(), query); err != nil || report.Limit.Until.IsZero() {
		t.Errorf("%+v %v", report, err)
	}
	p.Asked()
	for _, where := range []forge.Repository{{Host: "gitlab.com", Path: "o/r"}, {Host: "evil.example", API: p.where.API, Path: "o/r"}, {Host: p.Host, Path: "r"}} {
		query.Repository = where
		if _, err := p.Poll(t.Context(), query); err == nil || len(p.Asked()) > 0 {
			t.Errorf("%+v: %v", where, err)
		}
	}
}
