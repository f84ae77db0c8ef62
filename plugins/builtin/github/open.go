package github

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// found is a pull request as the REST API returns it.
type found struct {
	Number  int    `json:"number"`
	HTMLURL string `json:"html_url"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Draft   bool   `json:"draft"`
	Head    struct {
		SHA  string `json:"sha"`
		Ref  string `json:"ref"`
		Repo *struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
}

// Open implements forge.Forge.
func (f Forge) Open(ctx context.Context, request forge.Request) (forge.PullRequest, error) {
	r, err := f.open(request.Repository)
	if err != nil {
		return forge.PullRequest{}, err
	}
	got, err := r.find(ctx, request)
	switch {
	case err != nil:
	case got != nil:
		err = r.update(ctx, got, request)
	default:
		got, err = r.create(ctx, request)
	}
	if err != nil {
		return forge.PullRequest{}, err
	}
	return r.state(ctx, got)
}

// find returns the open pull request of the branch, or nil.
func (r *repository) find(ctx context.Context, request forge.Request) (*found, error) {
	path := cmp.Or(request.HeadPath, r.owner+"/"+r.name)
	owner, _, _ := strings.Cut(path, "/")
	query := url.Values{"state": {"open"}, "head": {owner + ":" + request.Head}, "per_page": {"100"}}
	var list []found
	if _, err := r.JSON(ctx, forgehttp.Call{Path: r.path("pulls") + "?" + query.Encode()}, &list); err != nil {
		return nil, err
	}
	for _, one := range list {
		if one.Head.Ref == request.Head && (request.HeadPath == "" || one.Head.Repo == nil || strings.EqualFold(one.Head.Repo.FullName, request.HeadPath)) {
			return &one, nil
		}
	}
	return nil, nil
}

// update gives an open pull request the title, the text and the base of the request.
func (r *repository) update(ctx context.Context, got *found, request forge.Request) error {
	changes := map[string]any{}
	if got.Title != request.Title {
		changes["title"] = request.Title
	}
	if strings.ReplaceAll(got.Body, "\r\n", "\n") != request.Text {
		changes["body"] = request.Text
	}
	if got.Base.Ref != request.Base {
		changes["base"] = request.Base
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := r.JSON(ctx, forgehttp.Call{Method: http.MethodPatch, Path: r.path("pulls", got.Number), Body: changes}, got)
	return err
}

// create opens a pull request. In a repository without drafts, it is none.
func (r *repository) create(ctx context.Context, request forge.Request) (*found, error) {
	body := map[string]any{"title": request.Title, "head": request.Head, "base": request.Base, "body": request.Text, "draft": request.Draft}
	if owner, name, fork := strings.Cut(request.HeadPath, "/"); fork {
		body["head"] = owner + ":" + request.Head
		body["head_repo"] = name // needed if both have the same owner
	}
	got := &found{}
	_, err := r.JSON(ctx, forgehttp.Call{Method: http.MethodPost, Path: r.path("pulls"), Body: body}, got)
	refusal := (*forgehttp.Refusal)(nil)
	if !errors.As(err, &refusal) || refusal.Status != http.StatusUnprocessableEntity {
		return got, err
	}
	switch message := strings.ToLower(refusal.Message); {
	case strings.Contains(message, "already exists"): // opened since, or the list was not up to date
		if again, err := r.find(ctx, request); err != nil || again != nil {
			return again, err
		}
	case request.Draft && strings.Contains(message, "draft"):
		request.Draft = false
		return r.create(ctx, request)
	}
	return nil, err
}

// state returns the state of a pull request that was opened or updated. The APIs of a host are not always up to date: if the GraphQL API does
// not know it yet, the state has no version, so that the next poll reports it.
func (r *repository) state(ctx context.Context, got *found) (forge.PullRequest, error) {
	p := &poll{repository: r, used: map[string]rules{}}
	rules, err := p.rulesOf(ctx, got.Base.Ref)
	if err == nil {
		var whole *pull
		if whole, err = r.full(ctx, got.Number); err == nil {
			return whole.convert(rules), nil
		}
	}
	if !errors.Is(err, pluginerr.ErrTransient) {
		return forge.PullRequest{}, err
	}
	return forge.PullRequest{
		Number: got.Number, URL: forgehttp.PageOf(got.HTMLURL), State: forge.Open, Draft: got.Draft, Head: got.Head.SHA, Base: got.Base.Ref,
	}, nil
}
