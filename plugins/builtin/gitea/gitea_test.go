package gitea

import (
	"errors"
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
	base  = "/api/v1/repos/acme/app"
	token = "secrettoken123456"
)

// place is a fake host with a repository, and the plugin.
type place struct {
	*fakeforge.Routes
	Forge
	where forge.Repository
	pull  m
}

func newPlace(t *testing.T) *place {
	t.Helper()
	routes := fakeforge.NewRoutes("Authorization", "token "+token)
	t.Cleanup(routes.Close)
	getenv := func(name string) string {
		return map[string]string{"GITEA_SERVER_TOKEN": token, "GITEA_SERVER_URL": "http://" + routes.Host}[name]
	}
	p := &place{Routes: routes, Forge: Forge{Getenv: getenv}}
	p.where = forge.Repository{Host: routes.Host, API: "http://" + routes.Host + "/api/v1", Path: "acme/app"}
	p.pull = m{
		"number": 1, "html_url": "http://" + routes.Host + "/acme/app/pulls/1", "title": "Fix it", "body": "Done.", "state": "open", "draft": false, "mergeable": true,
		"updated_at": "2026-01-02T03:04:05Z", "head": m{"ref": "coven/x", "sha": head, "repo": m{"full_name": "acme/app"}}, "base": m{"ref": "main", "sha": head},
	}
	p.Set("GET "+base, m{"full_name": "acme/app", "default_merge_style": "squash"})
	p.Set("GET "+base+"/pulls/1", p.pull)
	p.Set("GET "+base+"/branches/main", m{"name": "main", "required_approvals": 2, "enable_status_check": true, "status_check_contexts": []string{"CI / *", "deploy"}})
	p.Set("GET "+base+"/commits/"+head+"/status", m{"state": "failure", "statuses": []m{
		{"id": 11, "context": "CI / test", "status": "failure", "description": "2 failed", "target_url": "/acme/app/actions/runs/1"}, {"id": 12, "context": "lint", "status": "success"},
	}})
	ann := m{"login": "ann"}
	p.Set("GET "+base+"/pulls/1/reviews", []m{
		{"id": 21, "user": ann, "state": "REQUEST_CHANGES", "body": "No.", "submitted_at": "2026-01-02T03:04:06Z", "comments_count": 2},
		{"id": 22, "user": m{"login": "bob"}, "state": "APPROVED", "official": true, "submitted_at": "2026-01-02T03:04:09Z"},
		{"id": 23, "user": m{"login": "me"}, "state": "PENDING", "body": "draft"},
	})
	p.Set("GET "+base+"/pulls/1/reviews/21/comments", []m{
		{"id": 31, "user": ann, "body": "Here.", "created_at": "2026-01-02T03:04:07Z", "path": "a.txt", "position": 4, "commit_id": head, "resolver": ann},
		{"id": 32, "user": ann, "body": "Gone.", "created_at": "2026-01-02T03:04:08Z", "path": "b.txt", "original_position": 3, "commit_id": head},
	})
	p.Set("GET "+base+"/issues/1/comments", []m{{"id": 41, "user": m{"login": "me"}, "body": "Mine.", "created_at": "2026-01-02T03:04:05Z"}})
	p.Set("GET /api/v1/user", m{"login": "me"})
	p.Set("GET "+base+"/collaborators/ann/permission", m{"permission": "write"})
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
		Version: got.Version, Number: 1, URL: p.pull["html_url"].(string), State: forge.Open, Head: head, Base: "main", Mergeable: forge.Blocked, Changes: true, Needs: "1 more approval",
		Checks: []forge.Check{
			{ID: "status:11", Name: "CI / test", Status: forge.Failed, Required: true, Summary: "2 failed"},
			{Name: "deploy", Status: forge.Pending, Required: true},
			{ID: "status:12", Name: "lint", Status: forge.Passed},
		},
		Comments: []forge.Comment{
			{ID: "issue:41", By: "me", Trusted: true, Own: true, Time: at(5), Text: "Mine."},
			{ID: "review:21", By: "ann", Trusted: true, Time: at(6), Text: "No."},
			{ID: "line:31", By: "ann", Trusted: true, Time: at(7), Text: "Here.", Path: "a.txt", Line: 4, Commit: head, Resolved: true},
			{ID: "line:32", By: "ann", Trusted: true, Time: at(8), Text: "Gone.", Path: "b.txt", Line: 3, Old: true, Commit: head},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	p.Asked()
	if again := p.poll(t, got.Version); len(again.Changed) > 0 || len(p.Asked()) != 4 {
		t.Errorf("nothing has changed: %+v", again)
	}
	p.pull["mergeable"] = false
	if now := p.poll(t, got.Version).Changed[0]; now.Mergeable != forge.Conflict {
		t.Errorf("%+v", now)
	}
	p.pull["state"] = "closed"
	if now := p.poll(t, got.Version).Changed[0]; now.State != forge.Closed {
		t.Errorf("%+v", now)
	}
	p.pull["merged"], p.pull["merge_commit_sha"], p.pull["merged_by"], p.pull["head"] = true, strings.Repeat("1b", 20), m{"login": "ann"}, m{"ref": "refs/pull/1/head", "sha": head}
	if now := p.poll(t, got.Version).Changed[0]; now.State != forge.Merged || now.By != "ann" || now.Commit == "" || !now.HeadGone {
		t.Errorf("%+v", now)
	}
	p.Set("GET "+base, m{"full_name": "acme/tool"})
	p.Set("GET "+base+"/pulls/1", nil)
	if report := p.poll(t, "x"); report.Moved != "acme/tool" || report.Changed[0].State != forge.Gone {
		t.Errorf("%+v", report)
	}
}

func TestOpen(t *testing.T) {
	p := newPlace(t)
	var sent m
	save := func(body map[string]any) any { sent = body; return p.pull }
	p.Set("GET "+base+"/pulls", []m{})
	p.Set("POST "+base+"/pulls", save)
	request := forge.Request{Repository: p.where, Head: "coven/x", Base: "main", Title: "Fix it", Text: "Done.", Draft: true, HeadPath: "me/app"}
	pull, err := p.Open(t.Context(), request)
	if err != nil || pull.Number != 1 || pull.Version == "" || sent["head"] != "me:coven/x" || sent["title"] != "WIP: Fix it" {
		t.Errorf("%+v %v %v", pull, err, sent)
	}
	request.HeadPath = ""
	p.Set("GET "+base+"/pulls", []m{p.pull})
	p.Set("PATCH "+base+"/pulls/1", save)
	sent = nil
	if _, err := p.Open(t.Context(), request); err != nil || sent != nil {
		t.Errorf("unchanged: %v %v", err, sent)
	}
	request.Text = "All."
	if _, err := p.Open(t.Context(), request); err != nil || sent["body"] != "All." {
		t.Errorf("%v %v", err, sent)
	}
}

func TestAct(t *testing.T) {
	p := newPlace(t)
	check := forge.Check{ID: "status:11", Name: "test", Status: forge.Failed, Summary: "2 failed"}
	if log, err := p.Log(t.Context(), p.where, check, 1000); err != nil || log != "2 failed" {
		t.Errorf("%q %v", log, err)
	}
	if err := p.Rerun(t.Context(), p.where, check); !errors.Is(err, pluginerr.ErrUnsupported) {
		t.Error(err)
	}
	p.Set("POST "+base+"/issues/1/comments", m{})
	if err := p.Reply(t.Context(), p.where, forge.Reply{Number: 1, Comment: "line:31", Text: "Done."}); err != nil {
		t.Error(err)
	}
	p.Set("POST "+base+"/pulls/1/merge", func(body map[string]any) any {
		if body["Do"] != "squash" || body["head_commit_id"] != head {
			return 409
		}
		p.pull["merged"], p.pull["merge_commit_sha"] = true, strings.Repeat("1b", 20)
		return ""
	})
	if _, err := p.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: strings.Repeat("0", 40)}); err == nil {
		t.Error("another head was merged")
	}
	for range 2 {
		if commit, err := p.Merge(t.Context(), p.where, forge.Merge{Number: 1, Head: head}); err != nil || commit != strings.Repeat("1b", 20) {
			t.Errorf("%q %v", commit, err)
		}
	}
}

func TestErrors(t *testing.T) {
	p := newPlace(t)
	query := forge.Query{Repository: p.where, Known: []forge.Known{{Number: 1}}}
	for answer, want := range map[any]error{403: fs.ErrPermission, 500: pluginerr.ErrTransient, 401: pluginerr.ErrLogin, "<html>": pluginerr.ErrTransient} {
		p.Set("GET "+base+"/pulls/1", answer)
		if _, err := p.Poll(t.Context(), query); !errors.Is(err, want) || strings.Contains(err.Error(), token) {
			t.Errorf("%v: %v", answer, err)
		}
	}
	p.Set("GET "+base, 429)
	if report, err := p.Poll(t.Context(), query); err != nil || report.Limit.Until.IsZero() {
		t.Errorf("%+v %v", report, err)
	}
	p.Asked()
	for _, where := range []forge.Repository{{Host: "gitea.com", Path: "o/r"}, {Host: "evil.example", API: p.where.API, Path: "o/r"}, {Host: p.Host, Path: "o/r/x"}} {
		query.Repository = where
		if _, err := p.Poll(t.Context(), query); err == nil || len(p.Asked()) > 0 {
			t.Errorf("%+v: %v", where, err)
		}
	}
}
