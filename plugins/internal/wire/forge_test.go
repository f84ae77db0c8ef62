package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// recorder is a forge that returns fixed answers and records the calls.
type recorder struct {
	pull   forge.PullRequest
	report forge.Report
	log    string
	commit string
	err    error
	got    []any
}

func (r *recorder) Open(_ context.Context, request forge.Request) (forge.PullRequest, error) {
	r.got = append(r.got, request)
	return r.pull, r.err
}

func (r *recorder) Poll(_ context.Context, query forge.Query) (forge.Report, error) {
	r.got = append(r.got, query)
	return r.report, r.err
}

func (r *recorder) Log(_ context.Context, repository forge.Repository, check forge.Check, limit int) (string, error) {
	r.got = append(r.got, repository, check, limit)
	return r.log, r.err
}

func (r *recorder) Rerun(_ context.Context, repository forge.Repository, check forge.Check) error {
	r.got = append(r.got, repository, check)
	return r.err
}

func (r *recorder) Reply(_ context.Context, repository forge.Repository, reply forge.Reply) error {
	r.got = append(r.got, repository, reply)
	return r.err
}

func (r *recorder) Merge(_ context.Context, repository forge.Repository, merge forge.Merge) (string, error) {
	r.got = append(r.got, repository, merge)
	return r.commit, r.err
}

// served returns a client for r.
func served(t *testing.T, r *recorder) forge.Forge {
	t.Helper()
	return Forge(connected(t, func(s *grpc.Server) { RegisterForge(s, r) }))
}

// samplePull is a pull request with a value in each field.
func samplePull() forge.PullRequest {
	oid := strings.Repeat("0a", 20)
	return forge.PullRequest{
		Version: "v1", Number: 7, URL: "https://example.com/o/r/pull/7", State: forge.Merged, Draft: true, Head: oid, HeadGone: true, Base: "main",
		Mergeable: forge.Blocked, Queue: 2, Commit: oid, By: "ann", Changes: true, Needs: "1 more approval",
		Checks: []forge.Check{{ID: "1", Name: "test", Status: forge.Failed, Required: true, URL: "https://example.com/1", Summary: "2 failed"}},
		Comments: []forge.Comment{
			{ID: "c1", By: "bob", Trusted: true, Own: true, Time: time.Unix(1795280659, 0), Text: "no\nthis", Path: "a/b.go", From: 2, Line: 3, Old: true, Commit: oid, Resolved: true},
			{ID: "c2", By: "bob", Text: "yes", Answers: "c1"},
		},
	}
}

// All fields of the calls and of the answers arrive.
func TestForge(t *testing.T) {
	ctx, want := t.Context(), samplePull()
	r := &recorder{pull: want, log: "failed", commit: want.Head}
	r.report = forge.Report{Changed: []forge.PullRequest{want}, Version: "e", Moved: "o/new", Limit: forge.Limit{Total: 5000, Remaining: 4000, Reset: time.Unix(1795280659, 0), Cost: 1}}
	f := served(t, r)
	repository := forge.Repository{API: "https://example.com/api", Host: "example.com", Path: "o/r"}
	request := forge.Request{Repository: repository, Head: "coven/x", HeadPath: "me/r", Base: "main", Title: "T", Text: "B", Draft: true}
	if got, err := f.Open(ctx, request); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Open: %+v %v", got, err)
	}
	query := forge.Query{Repository: repository, Known: []forge.Known{{Number: 7, Version: "v0"}}, Version: "d"}
	if got, err := f.Poll(ctx, query); err != nil || !reflect.DeepEqual(got, r.report) {
		t.Errorf("Poll: %+v %v", got, err)
	}
	if got, err := f.Log(ctx, repository, want.Checks[0], 100); err != nil || got != r.log {
		t.Errorf("Log: %q %v", got, err)
	}
	reply, merge := forge.Reply{Number: 7, Comment: "c1", Text: "done"}, forge.Merge{Number: 7, Head: want.Head, Method: "squash"}
	if err := errors.Join(f.Rerun(ctx, repository, want.Checks[0]), f.Reply(ctx, repository, reply)); err != nil {
		t.Error(err)
	}
	if got, err := f.Merge(ctx, repository, merge); err != nil || got != want.Head {
		t.Errorf("Merge: %q %v", got, err)
	}
	calls := []any{request, query, repository, want.Checks[0], 100, repository, want.Checks[0], repository, reply, repository, merge}
	if !reflect.DeepEqual(r.got, calls) {
		t.Errorf("the plugin got\n%+v, want\n%+v", r.got, calls)
	}
}

// The sentinels of package forge arrive.
func TestForgeErrors(t *testing.T) {
	for _, sentinel := range []error{pluginerr.ErrLogin, pluginerr.ErrTransient, pluginerr.ErrUnsupported, fs.ErrPermission, fs.ErrNotExist} {
		f := served(t, &recorder{err: fmt.Errorf("no: %w", sentinel)})
		if _, err := f.Poll(t.Context(), forge.Query{}); !errors.Is(err, sentinel) {
			t.Errorf("%v arrives as %v", sentinel, err)
		}
	}
}

// Answers that violate the contract are rejected.
func TestForgeLies(t *testing.T) {
	for name, lie := range map[string]func(p *forge.PullRequest){
		"state":               func(p *forge.PullRequest) { p.State = "fine" },
		"mergeable":           func(p *forge.PullRequest) { p.Mergeable = "maybe" },
		"number":              func(p *forge.PullRequest) { p.Number = 0 },
		"another number":      func(p *forge.PullRequest) { p.Number = 8 },
		"head":                func(p *forge.PullRequest) { p.Head = "HEAD" },
		"commit":              func(p *forge.PullRequest) { p.Commit = "--upload-pack=x" },
		"base":                func(p *forge.PullRequest) { p.Base = "-x" },
		"address":             func(p *forge.PullRequest) { p.URL = "javascript:alert(1)" },
		"queue":               func(p *forge.PullRequest) { p.Queue = -1 },
		"version":             func(p *forge.PullRequest) { p.Version = strings.Repeat("v", forge.MaxLine+1) },
		"terminal codes":      func(p *forge.PullRequest) { p.Needs = "\x1b[31mred" },
		"many checks":         func(p *forge.PullRequest) { p.Checks = make([]forge.Check, forge.MaxChecks+1) },
		"many comments":       func(p *forge.PullRequest) { p.Comments = make([]forge.Comment, forge.MaxComments+1) },
		"status":              func(p *forge.PullRequest) { p.Checks[0].Status = "green" },
		"result without ID":   func(p *forge.PullRequest) { p.Checks[0].ID = "" },
		"check without name":  func(p *forge.PullRequest) { p.Checks[0].Name = "" },
		"same name":           func(p *forge.PullRequest) { p.Checks = append(p.Checks, p.Checks[0]) },
		"address of a check":  func(p *forge.PullRequest) { p.Checks[0].URL = "file:///etc/passwd" },
		"comment without ID":  func(p *forge.PullRequest) { p.Comments[0].ID = "" },
		"long comment":        func(p *forge.PullRequest) { p.Comments[0].Text = strings.Repeat("x", forge.MaxText+1) },
		"path":                func(p *forge.PullRequest) { p.Comments[0].Path = "../x" },
		"line without a path": func(p *forge.PullRequest) { p.Comments[0].Path = "" },
		"lines":               func(p *forge.PullRequest) { p.Comments[0].From = 4 },
		"commit of a comment": func(p *forge.PullRequest) { p.Comments[0].Commit = "x" },
		"time":                func(p *forge.PullRequest) { p.Comments[0].Time = time.Unix(1<<40, 0) },
	} {
		pull := samplePull()
		lie(&pull)
		f := served(t, &recorder{report: forge.Report{Changed: []forge.PullRequest{pull}}})
		if _, err := f.Poll(t.Context(), forge.Query{Known: []forge.Known{{Number: 7}}}); !errors.Is(err, pluginerr.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, report := range map[string]forge.Report{
		"twice":        {Changed: []forge.PullRequest{samplePull(), samplePull()}},
		"long version": {Version: strings.Repeat("v", forge.MaxVersion+1)},
		"moved":        {Moved: "../x"},
		"limit":        {Limit: forge.Limit{Cost: -1}},
		"refused":      {Limit: forge.Limit{Until: time.Unix(1795280659, 0)}, Changed: []forge.PullRequest{samplePull()}},
	} {
		f := served(t, &recorder{report: report})
		if _, err := f.Poll(t.Context(), forge.Query{Known: []forge.Known{{Number: 7}}}); !errors.Is(err, pluginerr.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := served(t, &recorder{log: "four", commit: "main"})
	if _, err := f.Log(t.Context(), forge.Repository{}, forge.Check{}, 3); !errors.Is(err, pluginerr.ErrInvalid) {
		t.Errorf("long log: %v", err)
	}
	if _, err := f.Merge(t.Context(), forge.Repository{}, forge.Merge{}); !errors.Is(err, pluginerr.ErrInvalid) {
		t.Errorf("commit of a merge: %v", err)
	}
}

func TestClip(t *testing.T) {
	if got := forge.ClipLine(" a\n\x1b[31mb\u202e\xff c "); got != "a [31mb \uFFFD c" {
		t.Errorf("ClipLine: %q", got)
	}
	if got := forge.ClipText(strings.Repeat("é", forge.MaxText)); len(got) > forge.MaxText || !strings.HasSuffix(got, "é...") {
		t.Errorf("ClipText: %d bytes", len(got))
	}
}
