package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// batch is the number of pull requests in a light query.
const batch = 100

// Poll implements forge.Forge.
func (f Forge) Poll(ctx context.Context, query forge.Query) (forge.Report, error) {
	r, err := f.open(query.Repository)
	if err != nil {
		return forge.Report{}, err
	}
	p := &poll{repository: r, rules: loadRules(query.Version), used: map[string]rules{}}
	for known := range slices.Chunk(query.Known, batch) {
		if err := p.changed(ctx, known); err != nil {
			p.report.Version, p.report.Limit = saveRules(p.used), r.limit
			return forgehttp.Partial(p.report, err)
		}
	}
	p.report.Version, p.report.Limit = saveRules(p.used), r.limit
	return p.report, nil
}

// poll is the state of one poll.
type poll struct {
	*repository
	rules  map[string]rules // by base branch, of the last report
	used   map[string]rules // those that this poll has read or confirmed
	report forge.Report
}

// changed adds the pull requests whose state is not the known one to the report.
func (p *poll) changed(ctx context.Context, known []forge.Known) error {
	states, err := p.lights(ctx, known)
	if err != nil {
		return err
	}
	for _, k := range known {
		raw, exists := states[k.Number]
		if !exists {
			if gone := forgehttp.Gone(k.Number); k.Version != gone.Version {
				p.report.Changed = append(p.report.Changed, gone)
			}
			continue
		}
		var state light
		if err := json.Unmarshal(raw, &state); err != nil {
			return fmt.Errorf("%s sent an invalid pull request: %w", p.Base.Host, pluginerr.ErrTransient)
		}
		rules, err := p.rulesOf(ctx, state.BaseRefName)
		if err != nil {
			return err
		}
		if versionOf(raw, rules) == k.Version {
			continue
		}
		pull, err := p.full(ctx, k.Number)
		if err != nil {
			return err
		}
		p.report.Changed = append(p.report.Changed, pull.convert(rules))
	}
	return nil
}

// lights returns the light states of those pull requests that exist, as JSON, by number. It notices if the repository has moved.
func (p *poll) lights(ctx context.Context, known []forge.Known) (map[int]json.RawMessage, error) {
	var numbers []int
	for _, k := range known {
		numbers = append(numbers, k.Number)
	}
	var answer struct {
		Repository map[string]json.RawMessage `json:"repository"`
	}
	if _, err := p.query(ctx, lightQuery(numbers), p.variables(nil), &answer); err != nil {
		return nil, err
	}
	if answer.Repository == nil {
		return nil, fmt.Errorf("%s sent no repository: %w", p.Base.Host, pluginerr.ErrTransient)
	}
	var path string
	if json.Unmarshal(answer.Repository["nameWithOwner"], &path) == nil && path != "" && !strings.EqualFold(path, p.owner+"/"+p.name) {
		p.report.Moved = path
	}
	states := map[int]json.RawMessage{}
	for _, n := range numbers {
		if raw := answer.Repository[fmt.Sprintf("p%d", n)]; len(raw) > 0 && string(raw) != "null" {
			states[n] = raw
		}
	}
	return states, nil
}

// variables adds the repository to the variables of a query.
func (r *repository) variables(more map[string]any) map[string]any {
	all := map[string]any{"owner": r.owner, "name": r.name}
	for name, value := range more {
		all[name] = value
	}
	return all
}

// versionOf identifies the state of a pull request.
func versionOf(light json.RawMessage, r rules) string {
	var compact any
	_ = json.Unmarshal(light, &compact) // a valid part of an answer
	return forgehttp.Hash(compact, r.Checks, r.Reviews, r.Threads)
}

// maxPages is the number of queries for one pull request.
const maxPages = 20

// full returns the complete state of a pull request.
func (r *repository) full(ctx context.Context, number int) (*pull, error) {
	var whole *pull
	next := map[string]any{"number": number, "rest": true, "contexts": true, "comments": true, "reviews": true, "threads": true}
	for range maxPages {
		page, raw, err := r.page(ctx, next)
		if err != nil {
			return nil, err
		}
		if whole == nil {
			whole = page
			whole.light = lightOf(raw)
		} else {
			whole.add(page)
		}
		if next = page.next(number); next == nil {
			break
		}
	}
	return whole, nil
}

// page returns a page of the complete state of a pull request, also as JSON.
func (r *repository) page(ctx context.Context, variables map[string]any) (*pull, json.RawMessage, error) {
	var answer struct {
		Repository struct {
			PullRequest json.RawMessage `json:"pullRequest"`
		} `json:"repository"`
	}
	if _, err := r.query(ctx, fullQuery, r.variables(variables), &answer); err != nil {
		return nil, nil, err
	}
	page := &pull{}
	raw := answer.Repository.PullRequest
	if err := json.Unmarshal(raw, page); err != nil || len(raw) == 0 || string(raw) == "null" {
		// It was there a moment ago. The next poll finds out.
		return nil, nil, fmt.Errorf("%s sent no pull request %v: %w", r.Base.Host, variables["number"], pluginerr.ErrTransient)
	}
	return page, raw, nil
}

// lightOf returns the light state in a complete one.
func lightOf(raw json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(raw, &all) // it was decoded before
	for _, name := range []string{"url", "mergeCommit", "mergedBy", "timelineItems", "latestOpinionatedReviews", "baseRef", "checks", "comments", "reviews", "threads"} {
		delete(all, name)
	}
	light, _ := json.Marshal(all)
	return light
}

// next returns the variables for the next page of the lists that continue, or nil.
func (p *pull) next(number int) map[string]any {
	next := map[string]any{"number": number, "rest": false, "contexts": false, "comments": false, "reviews": false, "threads": false}
	more := false
	want := func(name string, has bool, cursor string) {
		if has && cursor != "" {
			next[name], next[name+"After"], more = true, cursor, true
		}
	}
	if p.Checks != nil {
		want("contexts", p.Checks.Contexts.PageInfo.HasNextPage, p.Checks.Contexts.PageInfo.EndCursor)
	}
	want("comments", p.Comments.PageInfo.HasNextPage, p.Comments.PageInfo.EndCursor)
	want("reviews", p.Reviews.PageInfo.HasNextPage, p.Reviews.PageInfo.EndCursor)
	want("threads", p.Threads.PageInfo.HasNextPage, p.Threads.PageInfo.EndCursor)
	if !more {
		return nil
	}
	return next
}

// add adds the lists of another page.
func (p *pull) add(page *pull) {
	if p.Checks != nil && page.Checks != nil {
		p.Checks.Contexts.Nodes = append(p.Checks.Contexts.Nodes, page.Checks.Contexts.Nodes...)
	}
	p.Comments.Nodes = append(p.Comments.Nodes, page.Comments.Nodes...)
	p.Reviews.Nodes = append(p.Reviews.Nodes, page.Reviews.Nodes...)
	p.Threads.Nodes = append(p.Threads.Nodes, page.Threads.Nodes...)
}

// rules are the rules of a branch.
type rules struct {
	ETag    string   `json:"e,omitempty"`
	Checks  []string `json:"c,omitempty"` // required
	Reviews int      `json:"r,omitempty"` // required approvals
	Threads bool     `json:"t,omitempty"` // conversations must be resolved
}

// rulesOf returns the rules of a branch, which a poll asks for once. A host without rules, or a user who may not read them, has none.
func (p *poll) rulesOf(ctx context.Context, branch string) (rules, error) {
	if known, ok := p.used[branch]; ok {
		return known, nil
	}
	known := p.rules[branch]
	var list []struct {
		Type       string `json:"type"`
		Parameters struct {
			RequiredStatusChecks []struct {
				Context string `json:"context"`
			} `json:"required_status_checks"`
			RequiredApprovingReviewCount   int  `json:"required_approving_review_count"`
			RequiredReviewThreadResolution bool `json:"required_review_thread_resolution"`
		} `json:"parameters"`
	}
	answer, err := p.JSON(ctx, forgehttp.Call{Path: p.path("rules", "branches", branch) + "?per_page=100", ETag: known.ETag}, &list)
	refusal := (*forgehttp.Refusal)(nil)
	switch {
	case errors.As(err, &refusal) && !errors.Is(err, pluginerr.ErrLogin) && !errors.Is(err, pluginerr.ErrTransient):
		known = rules{}
	case err != nil:
		return rules{}, err
	case answer.Status != http.StatusNotModified:
		known = rules{ETag: answer.Header.Get("Etag")}
		for _, rule := range list {
			for _, check := range rule.Parameters.RequiredStatusChecks {
				known.Checks = append(known.Checks, check.Context)
			}
			known.Reviews = max(known.Reviews, rule.Parameters.RequiredApprovingReviewCount)
			known.Threads = known.Threads || rule.Parameters.RequiredReviewThreadResolution
		}
		slices.Sort(known.Checks)
		known.Checks = slices.Compact(known.Checks)
	}
	p.used[branch] = known
	return known, nil
}

// loadRules returns the rules in the version of a report.
func loadRules(version string) map[string]rules {
	var all map[string]rules
	if json.Unmarshal([]byte(version), &all) != nil {
		return nil
	}
	return all
}

// saveRules returns the version of a report. Rules that do not fit are left out, and read again.
func saveRules(all map[string]rules) string {
	kept := map[string]rules{}
	for _, branch := range slices.Sorted(maps.Keys(all)) {
		kept[branch] = all[branch]
		if text, err := json.Marshal(kept); err != nil || len(text) > forge.MaxVersion {
			delete(kept, branch)
		}
	}
	text, _ := json.Marshal(kept) // strings and numbers can always be encoded
	return string(text)
}
