// Package github is the built-in forge plugin for GitHub and GitHub Enterprise Server. It uses the REST and the GraphQL API.
//
// A poll takes one light query for up to a hundred pull requests, which counts as about three points of the 5,000 an hour,
// and a query for each that has changed. The rules of the base branches are read with conditional requests, which do not count.
package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Name is the name of the plugin.
const Name = "github"

// Forge is the plugin. It implements forge.Forge.
type Forge struct {
	Getenv    func(string) string // nil for the environment of the process
	Transport http.RoundTripper   // nil for the network
	Now       func() time.Time    // nil for the system's clock
}

// repository is a repository on a host with a client for it.
type repository struct {
	*forgehttp.Client
	owner, name string
	graphQL     string // address of the GraphQL API
	limit       forge.Limit
}

// open returns a client for a repository. Without a token, it returns a pluginerr.ErrLogin.
func (f Forge) open(r forge.Repository) (*repository, error) {
	owner, name, ok := strings.Cut(r.Path, "/")
	if !ok || owner == "" || name == "" || strings.ContainsAny(name, "/?#%") || strings.ContainsAny(owner, "?#%") {
		return nil, fmt.Errorf("%q is not the path of a repository of GitHub, OWNER/NAME: %w", forge.ClipLine(r.Path), pluginerr.ErrInvalid)
	}
	base, err := forgehttp.NewBase(r.Host, r.API, usualAPI(r.Host))
	if err != nil {
		return nil, err
	}
	getenv := f.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	token := tokenFor(r.Host, getenv)
	if token == "" {
		return nil, fmt.Errorf("there is no token for %s; run: gh auth login --hostname %s, or export %s: %w", r.Host, r.Host, variables(r.Host)[0], pluginerr.ErrLogin)
	}
	header := http.Header{
		"Accept":               {"application/vnd.github.merge-info-preview+json, application/vnd.github+json"},
		"Authorization":        {"Bearer " + token},
		"X-Github-Api-Version": {"2022-11-28"},
	}
	client := &forgehttp.Client{Base: base, Header: header, Secret: token, Transport: f.Transport, Now: f.Now}
	return &repository{Client: client, owner: owner, name: name, graphQL: graphQLOf(base)}, nil
}

// usualAPI returns the address of a host's REST API.
func usualAPI(host string) string {
	if isCloud(host) {
		return "https://api." + host
	}
	return "https://" + host + "/api/v3"
}

// isCloud reports whether a host is run by GitHub: github.com, or NAME.ghe.com.
func isCloud(host string) bool {
	host = strings.ToLower(host)
	return host == "github.com" || strings.HasSuffix(host, ".ghe.com")
}

// graphQLOf returns the address of the GraphQL API beside a REST API.
func graphQLOf(base *url.URL) string {
	if prefix, enterprise := strings.CutSuffix(base.String(), "/api/v3"); enterprise {
		return prefix + "/api/graphql"
	}
	return base.String() + "/graphql"
}

// path returns the address of a part of the repository. Each part is escaped.
func (r *repository) path(parts ...any) string {
	at := "/repos/" + url.PathEscape(r.owner) + "/" + url.PathEscape(r.name)
	for _, part := range parts {
		at += "/" + url.PathEscape(fmt.Sprint(part))
	}
	return at
}

// problem is an error in an answer of the GraphQL API.
type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Path    []any  `json:"path"`
}

// query sends a GraphQL query and decodes its data. It returns the problems with parts of the data that do not exist. If there is
// no data, or another problem, it returns an error. The answer must have rateLimit.
func (r *repository) query(ctx context.Context, text string, variables map[string]any, into any) ([]problem, error) {
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []problem       `json:"errors"`
	}
	call := forgehttp.Call{Method: http.MethodPost, Path: r.graphQL, Body: map[string]any{"query": text, "variables": variables}}
	response, err := r.JSON(ctx, call, &answer)
	if err != nil {
		return nil, err
	}
	r.count(answer.Data)
	for _, p := range answer.Errors {
		if err := r.fatal(p, response.Header); err != nil {
			return nil, err
		}
	}
	if len(answer.Data) == 0 || string(answer.Data) == "null" {
		return nil, fmt.Errorf("%s sent no data: %w", r.Base.Host, pluginerr.ErrTransient)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return nil, fmt.Errorf("%s sent other data than the query asks for: %w", r.Base.Host, pluginerr.ErrTransient)
	}
	return answer.Errors, nil
}

// count adds the cost of a query to the rate limit.
func (r *repository) count(data json.RawMessage) {
	var cost struct {
		RateLimit *struct {
			Cost, Limit, Remaining int
			ResetAt                time.Time
		}
	}
	if json.Unmarshal(data, &cost) != nil || cost.RateLimit == nil {
		return
	}
	l := cost.RateLimit
	r.limit = forge.Limit{Total: max(l.Limit, 0), Remaining: max(l.Remaining, 0), Reset: l.ResetAt, Cost: r.limit.Cost + max(l.Cost, 0)}
}

// fatal returns the error of a problem, or nil if it is that something does not exist.
func (r *repository) fatal(p problem, header http.Header) error {
	message := forge.ClipLine(strings.ReplaceAll(p.Message, r.Secret, "***"))
	switch p.Type {
	case "NOT_FOUND":
		if len(p.Path) == 1 { // the repository
			return fmt.Errorf("%s: %s/%s: %w", r.Base.Host, r.owner, r.name, fs.ErrNotExist)
		}
		return nil
	case "RATE_LIMITED":
		until := forgehttp.LimitOf(header).Reset
		if now := r.now(); until.Before(now) || until.After(now.Add(2*time.Hour)) {
			until = now.Add(time.Minute)
		}
		return &forgehttp.Limited{Host: r.Base.Host, Until: until}
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		return fmt.Errorf("%s: %s: %w", r.Base.Host, message, fs.ErrPermission)
	case "", "INTERNAL", "SERVICE_UNAVAILABLE", "TIMEOUT":
		return fmt.Errorf("%s: %s: %w", r.Base.Host, cmp.Or(message, "unknown error"), pluginerr.ErrTransient)
	}
	return fmt.Errorf("%s: %s (%s)", r.Base.Host, message, forge.ClipLine(p.Type))
}

func (r *repository) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
