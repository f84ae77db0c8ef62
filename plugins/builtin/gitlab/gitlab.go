// Package gitlab is the built-in forge plugin for GitLab. It is experimental: it was tested only against a fake with the names
// of the published API.
//
// A poll takes one request for each merge request, and a few more for each that has changed.
package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Name is the name of the plugin.
const Name = "gitlab"

// Variables returns the user's variables that the plugin reads: a token, and the host for which it is. GitLab's own client glab
// reads them, too.
func Variables() []string { return []string{"GITLAB_TOKEN", "GITLAB_HOST"} }

// usual is the host of a token without a host.
const usual = "gitlab.com"

// Forge is the plugin. It implements forge.Forge.
type Forge struct {
	Getenv    func(string) string // nil for the environment of the process
	Transport http.RoundTripper   // nil for the network
}

// project is a project on a host with a client for it.
type project struct {
	*forgehttp.Client
	path  string
	limit forge.Limit
	me    int64          // ID of the user, once it is known
	write map[int64]bool // who may write to the project, by ID
	settings
}

// settings are those of a project that matter here.
type settings struct {
	ID        int64  `json:"id"`
	Path      string `json:"path_with_namespace"`
	MustPass  bool   `json:"only_allow_merge_if_pipeline_succeeds"`
	SkippedOK bool   `json:"allow_merge_on_skipped_pipeline"`
	Squash    string `json:"squash_option"` // always, default_on, default_off or never
}

// open returns a client for a project. Without a token, it returns a pluginerr.ErrLogin.
func (f Forge) open(r forge.Repository) (*project, error) {
	if !strings.Contains(r.Path, "/") || strings.ContainsAny(r.Path, "?#%") || strings.HasPrefix(r.Path, "/") || strings.HasSuffix(r.Path, "/") {
		return nil, fmt.Errorf("%q is not the path of a project of GitLab, GROUP/NAME: %w", forge.ClipLine(r.Path), pluginerr.ErrInvalid)
	}
	base, err := forgehttp.NewBase(r.Host, r.API, "https://"+r.Host+"/api/v4")
	if err != nil {
		return nil, err
	}
	getenv := f.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	token := forgehttp.HostToken(r.Host, getenv("GITLAB_TOKEN"), getenv("GITLAB_HOST"), usual)
	if token == "" {
		return nil, fmt.Errorf("there is no token for %s; run: export GITLAB_HOST=%s GITLAB_TOKEN=...: %w", r.Host, r.Host, pluginerr.ErrLogin)
	}
	client := &forgehttp.Client{Base: base, Header: http.Header{"Private-Token": {token}}, Secret: token, Transport: f.Transport}
	return &project{Client: client, path: "/projects/" + url.PathEscape(r.Path), write: map[int64]bool{}}, nil
}

// get reads a part of the project, and counts the request.
func (p *project) get(ctx context.Context, path string, into any) error {
	answer, err := p.JSON(ctx, forgehttp.Call{Path: p.path + path}, into)
	cost := p.limit.Cost + 1
	if limit := forgehttp.LimitOf(answer.Header); limit.Total > 0 {
		p.limit = limit
	}
	p.limit.Cost = cost
	return err
}

const (
	pageSize = 100
	maxPages = 20 // of a list
)

// all reads all pages of a list.
func all[T any](ctx context.Context, p *project, path string) ([]T, error) {
	var list []T
	for n := 1; n <= maxPages; n++ {
		var part []T
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		if err := p.get(ctx, fmt.Sprintf("%s%sper_page=%d&page=%d", path, separator, pageSize, n), &part); err != nil {
			return nil, err
		}
		if list = append(list, part...); len(part) < pageSize {
			break
		}
	}
	return list, nil
}

// user is an account.
type user struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

// login returns the login of an account, or "ghost" for a deleted one.
func (u *user) login() string {
	if u == nil || u.Username == "" {
		return "ghost"
	}
	return forge.ClipLine(u.Username)
}

// request is a merge request.
type request struct {
	IID           int       `json:"iid"`
	WebURL        string    `json:"web_url"`
	Title         string    `json:"title"`
	Description   string    `json:"description"`
	State         string    `json:"state"` // opened, closed, merged, or locked while it is being merged
	Draft         bool      `json:"draft"`
	SHA           string    `json:"sha"`
	SourceBranch  string    `json:"source_branch"`
	TargetBranch  string    `json:"target_branch"`
	SourceProject int64     `json:"source_project_id"`
	MergeStatus   string    `json:"detailed_merge_status"`
	MergeCommit   string    `json:"merge_commit_sha"`
	SquashCommit  string    `json:"squash_commit_sha"`
	MergeUser     *user     `json:"merge_user"`
	ClosedBy      *user     `json:"closed_by"`
	Updated       time.Time `json:"updated_at"`
	Notes         int       `json:"user_notes_count"`
	Resolved      bool      `json:"blocking_discussions_resolved"`
	Squash        bool      `json:"squash"`
	Pipeline      *pipeline `json:"head_pipeline"`
}

// pipeline is the last pipeline of the head of a merge request.
type pipeline struct {
	ID      int64     `json:"id"`
	SHA     string    `json:"sha"`
	Status  string    `json:"status"`
	Updated time.Time `json:"updated_at"`
}

// Poll implements forge.Forge.
func (f Forge) Poll(ctx context.Context, query forge.Query) (forge.Report, error) {
	p, err := f.open(query.Repository)
	if err != nil {
		return forge.Report{}, err
	}
	if err := p.get(ctx, "", &p.settings); err != nil {
		return forgehttp.Partial(forge.Report{Limit: p.limit}, err)
	}
	report, err := forgehttp.Each(query.Known, &p.limit, func(k forge.Known) (*forge.PullRequest, error) { return p.changed(ctx, k) })
	if p.Path != "" && !strings.EqualFold(p.Path, query.Repository.Path) {
		report.Moved = p.Path
	}
	return report, err
}

// changed returns the state of a merge request if it is not the known one, and otherwise nil.
func (p *project) changed(ctx context.Context, known forge.Known) (*forge.PullRequest, error) {
	got := &request{}
	if err := p.get(ctx, fmt.Sprintf("/merge_requests/%d", known.Number), got); err != nil {
		return nil, err
	}
	version := forgehttp.Hash(got, p.MustPass, p.SkippedOK)
	if version == known.Version {
		return nil, nil
	}
	state, err := p.full(ctx, got)
	if err != nil {
		return nil, forgehttp.Inner(err)
	}
	state.Version = version
	return &state, nil
}

// draftPrefix makes a merge request a draft.
const draftPrefix = "Draft: "

// Open implements forge.Forge.
func (f Forge) Open(ctx context.Context, asked forge.Request) (forge.PullRequest, error) {
	p, err := f.open(asked.Repository)
	if err != nil {
		return forge.PullRequest{}, err
	}
	if err := p.get(ctx, "", &p.settings); err != nil {
		return forge.PullRequest{}, err
	}
	from := p.settings
	if asked.HeadPath != "" {
		if _, err := p.JSON(ctx, forgehttp.Call{Path: "/projects/" + url.PathEscape(asked.HeadPath)}, &from); err != nil {
			return forge.PullRequest{}, err
		}
	}
	open, err := all[request](ctx, p, "/merge_requests?state=opened&source_branch="+url.QueryEscape(asked.Head))
	if err != nil {
		return forge.PullRequest{}, err
	}
	var got request
	if i := slices.IndexFunc(open, func(m request) bool { return m.SourceBranch == asked.Head && m.SourceProject == from.ID }); i >= 0 {
		got, err = p.update(ctx, open[i], asked)
	} else {
		got, err = p.create(ctx, from.ID, asked)
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	state, err := p.changed(ctx, forge.Known{Number: got.IID})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return *state, nil
}

// update gives a merge request the title, the text and the base of a request.
func (p *project) update(ctx context.Context, got request, asked forge.Request) (request, error) {
	title := asked.Title
	if got.Draft {
		title = draftPrefix + title // only the title makes a draft
	}
	if got.Title == title && got.Description == asked.Text && got.TargetBranch == asked.Base {
		return got, nil
	}
	body := map[string]any{"title": title, "description": asked.Text, "target_branch": asked.Base}
	err := p.send(ctx, http.MethodPut, fmt.Sprintf("/merge_requests/%d", got.IID), body, &got)
	return got, err
}

// create opens a merge request from a branch of the project with an ID.
func (p *project) create(ctx context.Context, from int64, asked forge.Request) (got request, err error) {
	body := map[string]any{
		"source_branch": asked.Head, "target_branch": asked.Base, "title": asked.Title, "description": asked.Text, "target_project_id": p.ID,
	}
	if asked.Draft {
		body["title"] = draftPrefix + asked.Title
	}
	_, err = p.JSON(ctx, forgehttp.Call{Method: http.MethodPost, Path: fmt.Sprintf("/projects/%d/merge_requests", from), Body: body}, &got)
	return got, err
}

// send changes a part of the project.
func (p *project) send(ctx context.Context, method, path string, body, into any) error {
	_, err := p.JSON(ctx, forgehttp.Call{Method: method, Path: p.path + path, Body: body}, into)
	return err
}

// Rerun implements forge.Forge.
func (f Forge) Rerun(ctx context.Context, where forge.Repository, check forge.Check) error {
	p, err := f.open(where)
	if err != nil {
		return err
	}
	id, err := jobOf(check)
	if err != nil {
		return err
	}
	return p.send(ctx, http.MethodPost, "/jobs/"+id+"/retry", nil, nil)
}

// Reply implements forge.Forge.
func (f Forge) Reply(ctx context.Context, where forge.Repository, reply forge.Reply) error {
	p, err := f.open(where)
	if err != nil {
		return err
	}
	discussion, _, ok := strings.Cut(reply.Comment, ":")
	if !ok || discussion == "" {
		return fmt.Errorf("%q is not an ID of this plugin: %w", forge.ClipLine(reply.Comment), pluginerr.ErrInvalid)
	}
	path := fmt.Sprintf("/merge_requests/%d/discussions/%s/notes", reply.Number, url.PathEscape(discussion))
	return p.send(ctx, http.MethodPost, path, map[string]any{"body": reply.Text}, nil)
}

// Merge implements forge.Forge. It returns the commit of a merge that has already happened, too. A merge train is a queue.
func (f Forge) Merge(ctx context.Context, where forge.Repository, merge forge.Merge) (commit string, err error) {
	p, err := f.open(where)
	if err != nil {
		return "", err
	}
	at, got := fmt.Sprintf("/merge_requests/%d", merge.Number), request{}
	if err := p.get(ctx, at, &got); err != nil {
		return "", err
	}
	switch {
	case got.State == "merged":
		return got.commit(), nil
	case got.SHA != merge.Head:
		return "", fmt.Errorf("the head of merge request %d is %.12s, and not the checked commit %.12s", merge.Number, got.SHA, merge.Head)
	case merge.Method == "rebase":
		return "", fmt.Errorf("the API of GitLab has no merge by rebase; the project's settings choose it: %w", pluginerr.ErrUnsupported)
	}
	body := map[string]any{"sha": merge.Head}
	if merge.Method != "" {
		body["squash"] = merge.Method == "squash"
	}
	if err := p.send(ctx, http.MethodPut, at+"/merge", body, &got); err != nil {
		return "", err
	}
	if got.State != "merged" {
		return "", nil // it is merged later
	}
	return got.commit(), nil
}

// commit returns the commit of a merged merge request on the target branch.
func (m *request) commit() string { return cmp.Or(m.MergeCommit, m.SquashCommit, m.SHA) }
