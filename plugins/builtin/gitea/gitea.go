// Package gitea is the built-in forge plugin for Gitea and Forgejo. It is experimental: it was tested only against a fake with the
// names of the published API.
//
// A poll takes two requests for each pull request, and a few more for each that has changed.
package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
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
const Name = "gitea"

// Variables returns the user's variables that the plugin reads: a token, and the address of the host for which it is. Gitea's own
// client tea reads them, too.
func Variables() []string { return []string{"GITEA_SERVER_TOKEN", "GITEA_SERVER_URL"} }

// usual is the host of a token without the address of a host.
const usual = "gitea.com"

// Forge is the plugin. It implements forge.Forge.
type Forge struct {
	Getenv    func(string) string // nil for the environment of the process
	Transport http.RoundTripper   // nil for the network
}

// repository is a repository on a host with a client for it.
type repository struct {
	*forgehttp.Client
	path  string
	limit forge.Limit
	me    string               // login of the user, once it is known
	write map[string]bool      // who may write to the repository, by login
	rules map[string]protected // by branch
}

// open returns a client for a repository. Without a token, it returns a pluginerr.ErrLogin.
func (f Forge) open(r forge.Repository) (*repository, error) {
	owner, name, ok := strings.Cut(r.Path, "/")
	if !ok || owner == "" || name == "" || strings.ContainsAny(r.Path, "?#%") || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q is not the path of a repository of Gitea, OWNER/NAME: %w", forge.ClipLine(r.Path), pluginerr.ErrInvalid)
	}
	base, err := forgehttp.NewBase(r.Host, r.API, "https://"+r.Host+"/api/v1")
	if err != nil {
		return nil, err
	}
	getenv := f.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	token := forgehttp.HostToken(r.Host, getenv("GITEA_SERVER_TOKEN"), getenv("GITEA_SERVER_URL"), usual)
	if token == "" {
		return nil, fmt.Errorf("there is no token for %s; run: export GITEA_SERVER_URL=https://%s GITEA_SERVER_TOKEN=...: %w", r.Host, r.Host, pluginerr.ErrLogin)
	}
	header := http.Header{"Accept": {"application/json"}, "Authorization": {"token " + token}}
	client := &forgehttp.Client{Base: base, Header: header, Secret: token, Transport: f.Transport}
	return &repository{
		Client: client, path: "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name), write: map[string]bool{}, rules: map[string]protected{},
	}, nil
}

// get reads a part of the repository, and counts the request.
func (r *repository) get(ctx context.Context, path string, into any) error {
	answer, err := r.JSON(ctx, forgehttp.Call{Path: r.path + path}, into)
	r.count(answer)
	return err
}

// count notes the rate limit, which servers behind a proxy may have.
func (r *repository) count(answer forgehttp.Answer) {
	cost := r.limit.Cost + 1
	if limit := forgehttp.LimitOf(answer.Header); limit.Total > 0 {
		r.limit = limit
	}
	r.limit.Cost = cost
}

const (
	pageSize = 50 // the limit that servers have
	maxPages = 40 // of a list
)

// all reads all pages of a list.
func all[T any](ctx context.Context, r *repository, path string) ([]T, error) {
	var list []T
	for n := 1; n <= maxPages; n++ {
		var part []T
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		if err := r.get(ctx, fmt.Sprintf("%s%spage=%d&limit=%d", path, separator, n, pageSize), &part); err != nil {
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
	Login string `json:"login"`
}

// login returns the login of an account, or "ghost" for a deleted one.
func (u *user) login() string {
	if u == nil || u.Login == "" {
		return "ghost"
	}
	return forge.ClipLine(u.Login)
}

// pull is a pull request.
type pull struct {
	Number    int       `json:"number"`
	HTMLURL   string    `json:"html_url"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	State     string    `json:"state"` // open or closed
	Draft     bool      `json:"draft"`
	Comments  int       `json:"comments"`
	Mergeable bool      `json:"mergeable"`
	Merged    bool      `json:"merged"`
	Commit    string    `json:"merge_commit_sha"`
	MergedBy  *user     `json:"merged_by"`
	Updated   time.Time `json:"updated_at"`
	Head      branch    `json:"head"`
	Base      branch    `json:"base"`
}

// branch is a branch of a pull request.
type branch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		FullName string `json:"full_name"`
	} `json:"repo"`
}

// combined is the combined status of a commit.
type combined struct {
	Statuses []status `json:"statuses"`
}

// status is the latest status with a name.
type status struct {
	ID          int64     `json:"id"`
	Context     string    `json:"context"`
	Status      string    `json:"status"`
	Description string    `json:"description"`
	TargetURL   string    `json:"target_url"`
	Updated     time.Time `json:"updated_at"`
}

// protected are the rules of a branch.
type protected struct {
	Approvals int      `json:"required_approvals"`
	Checked   bool     `json:"enable_status_check"`
	Contexts  []string `json:"status_check_contexts"` // may have wildcards
}

// Poll implements forge.Forge.
func (f Forge) Poll(ctx context.Context, query forge.Query) (forge.Report, error) {
	r, err := f.open(query.Repository)
	if err != nil {
		return forge.Report{}, err
	}
	var whole struct {
		FullName string `json:"full_name"`
	}
	if err := r.get(ctx, "", &whole); err != nil {
		return forgehttp.Partial(forge.Report{Limit: r.limit}, err)
	}
	report, err := forgehttp.Each(query.Known, &r.limit, func(k forge.Known) (*forge.PullRequest, error) {
		return r.changed(ctx, k)
	})
	if whole.FullName != "" && !strings.EqualFold(whole.FullName, query.Repository.Path) {
		report.Moved = whole.FullName
	}
	return report, err
}

// changed returns the state of a pull request if it is not the known one, and otherwise nil.
func (r *repository) changed(ctx context.Context, known forge.Known) (*forge.PullRequest, error) {
	p := &pull{}
	if err := r.get(ctx, fmt.Sprintf("/pulls/%d", known.Number), p); err != nil {
		return nil, err
	}
	rules, err := r.protection(ctx, p.Base.Ref)
	if err != nil {
		return nil, err
	}
	checks := combined{}
	if err := r.get(ctx, "/commits/"+url.PathEscape(p.Head.SHA)+"/status", &checks); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	version := forgehttp.Hash(p, checks, rules)
	if version == known.Version {
		return nil, nil
	}
	state, err := r.full(ctx, p, checks, rules)
	if err != nil {
		return nil, forgehttp.Inner(err)
	}
	state.Version = version
	return &state, nil
}

// protection returns the rules of a branch.
func (r *repository) protection(ctx context.Context, name string) (protected, error) {
	if known, ok := r.rules[name]; ok {
		return known, nil
	}
	rules := protected{}
	err := r.get(ctx, "/branches/"+url.PathEscape(name), &rules)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return rules, err
	}
	r.rules[name] = rules
	return rules, nil
}

// Open implements forge.Forge.
func (f Forge) Open(ctx context.Context, request forge.Request) (forge.PullRequest, error) {
	r, err := f.open(request.Repository)
	if err != nil {
		return forge.PullRequest{}, err
	}
	open, err := all[pull](ctx, r, "/pulls?state=open")
	if err != nil {
		return forge.PullRequest{}, err
	}
	from := cmp.Or(request.HeadPath, request.Repository.Path)
	i := slices.IndexFunc(open, func(p pull) bool {
		return p.Head.Ref == request.Head && p.Head.Repo != nil && strings.EqualFold(p.Head.Repo.FullName, from)
	})
	got := pull{}
	if i >= 0 {
		got = open[i]
		title := request.Title
		if got.Draft {
			title = draftPrefix + title // only the title makes a draft
		}
		body := map[string]any{"title": title, "body": request.Text, "base": request.Base}
		if got.Title != title || got.Body != request.Text || got.Base.Ref != request.Base {
			err = r.send(ctx, http.MethodPatch, fmt.Sprintf("/pulls/%d", got.Number), body, &got)
		}
	} else {
		body := map[string]any{"title": request.Title, "head": request.Head, "base": request.Base, "body": request.Text}
		if request.Draft {
			body["title"] = draftPrefix + request.Title
		}
		if owner, _, fork := strings.Cut(request.HeadPath, "/"); fork {
			body["head"] = owner + ":" + request.Head
		}
		err = r.send(ctx, http.MethodPost, "/pulls", body, &got)
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	state, err := r.changed(ctx, forge.Known{Number: got.Number})
	if err != nil {
		return forge.PullRequest{}, err
	}
	return *state, nil
}

// draftPrefix makes a pull request a draft.
const draftPrefix = "WIP: "

// send changes a part of the repository.
func (r *repository) send(ctx context.Context, method, path string, body, into any) error {
	_, err := r.JSON(ctx, forgehttp.Call{Method: method, Path: r.path + path, Body: body}, into)
	return err
}

// Log implements forge.Forge. A status has only its description.
func (f Forge) Log(_ context.Context, _ forge.Repository, check forge.Check, limit int) (string, error) {
	if !strings.HasPrefix(check.ID, statusID) {
		return "", fmt.Errorf("%q is not an ID of this plugin: %w", forge.ClipLine(check.ID), pluginerr.ErrInvalid)
	}
	return forgehttp.Tail(check.Summary, limit), nil
}

// Rerun implements forge.Forge.
func (f Forge) Rerun(context.Context, forge.Repository, forge.Check) error {
	return fmt.Errorf("run a check of Gitea again: %w", pluginerr.ErrUnsupported)
}

// Reply implements forge.Forge. The API has no answers in a thread: an answer is a comment that names the author.
func (f Forge) Reply(ctx context.Context, where forge.Repository, reply forge.Reply) error {
	r, err := f.open(where)
	if err != nil {
		return err
	}
	kind, _, _ := strings.Cut(reply.Comment, ":")
	if !slices.Contains([]string{"issue", "review", "line"}, kind) {
		return fmt.Errorf("%q is not an ID of this plugin: %w", forge.ClipLine(reply.Comment), pluginerr.ErrInvalid)
	}
	return r.send(ctx, http.MethodPost, fmt.Sprintf("/issues/%d/comments", reply.Number), map[string]any{"body": reply.Text}, nil)
}

// Merge implements forge.Forge. It returns the commit of a merge that has already happened, too.
func (f Forge) Merge(ctx context.Context, where forge.Repository, merge forge.Merge) (commit string, err error) {
	r, err := f.open(where)
	if err != nil {
		return "", err
	}
	at, p := fmt.Sprintf("/pulls/%d", merge.Number), pull{}
	if err := r.get(ctx, at, &p); err != nil {
		return "", err
	}
	if p.Head.SHA != merge.Head {
		return "", fmt.Errorf("the head of pull request %d is %.12s, and not the checked commit %.12s", merge.Number, p.Head.SHA, merge.Head)
	}
	if p.Merged {
		return p.Commit, nil
	}
	method := merge.Method
	if method == "" {
		var whole struct {
			Style string `json:"default_merge_style"`
		}
		if err := r.get(ctx, "", &whole); err != nil {
			return "", err
		}
		method = cmp.Or(whole.Style, "merge")
	}
	if err := r.send(ctx, http.MethodPost, at+"/merge", map[string]any{"Do": method, "head_commit_id": merge.Head}, nil); err != nil {
		return "", err
	}
	if err := r.get(ctx, at, &p); err != nil {
		return "", err
	}
	if !p.Merged {
		return "", fmt.Errorf("%s has not merged pull request %d yet: %w", r.Base.Host, merge.Number, pluginerr.ErrTransient)
	}
	return p.Commit, nil
}
