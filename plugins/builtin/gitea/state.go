package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
)

// review is a review.
type review struct {
	ID        int64     `json:"id"`
	User      *user     `json:"user"`
	State     string    `json:"state"`
	Body      string    `json:"body"`
	Stale     bool      `json:"stale"`
	Official  bool      `json:"official"`
	Dismissed bool      `json:"dismissed"`
	Lines     int       `json:"comments_count"`
	Submitted time.Time `json:"submitted_at"`
}

// comment is a comment of a pull request, or of a line.
type comment struct {
	ID       int64     `json:"id"`
	User     *user     `json:"user"`
	Body     string    `json:"body"`
	Created  time.Time `json:"created_at"`
	Path     string    `json:"path"` // of a line, also the following
	Line     int       `json:"position"`
	OldLine  int       `json:"original_position"`
	Commit   string    `json:"commit_id"`
	Resolver *user     `json:"resolver"`
}

// full returns the complete state of a pull request, without its version.
func (r *repository) full(ctx context.Context, p *pull, checks combined, rules protected) (forge.PullRequest, error) {
	state := forge.PullRequest{
		Number: p.Number, URL: forgehttp.PageOf(p.HTMLURL), State: forge.Open, Draft: p.Draft, Head: p.Head.SHA, Base: p.Base.Ref,
		HeadGone: p.Head.Repo == nil || strings.HasPrefix(p.Head.Ref, "refs/pull/"), Checks: checksOf(checks, rules),
	}
	reviews, err := all[review](ctx, r, fmt.Sprintf("/pulls/%d/reviews", p.Number))
	if err != nil {
		return state, err
	}
	approvals := 0
	for _, one := range latest(reviews) {
		switch {
		case one.State == "REQUEST_CHANGES":
			state.Changes = true
		case one.State == "APPROVED" && one.Official:
			approvals++
		}
	}
	switch {
	case p.Merged:
		state.State, state.Commit, state.By = forge.Merged, p.Commit, p.MergedBy.login()
	case p.State == "closed":
		state.State = forge.Closed
	default:
		state.Mergeable, state.Needs = p.mergeable(state.Checks), needs(rules.Approvals-approvals)
		if state.Mergeable == forge.Clean && (state.Needs != "" || state.Changes) {
			state.Mergeable = forge.Blocked
		}
	}
	state.Comments, err = r.comments(ctx, p.Number, reviews)
	return state, err
}

// latest returns the last opinion of each person.
func latest(reviews []review) map[string]review {
	last := map[string]review{}
	for _, one := range reviews {
		if (one.State == "APPROVED" || one.State == "REQUEST_CHANGES") && !one.Dismissed {
			last[one.User.login()] = one
		}
	}
	return last
}

func needs(approvals int) string {
	switch {
	case approvals <= 0:
		return ""
	case approvals == 1:
		return "1 more approval"
	}
	return fmt.Sprintf("%d more approvals", approvals)
}

// mergeable returns the reason for which an open pull request can or cannot be merged. The host tells only whether there are conflicts.
func (p *pull) mergeable(checks []forge.Check) forge.Mergeable {
	switch {
	case !p.Mergeable:
		return forge.Conflict
	case p.Draft, slices.ContainsFunc(checks, func(c forge.Check) bool { return c.Required && c.Status != forge.Passed }):
		return forge.Blocked
	}
	return forge.Clean
}

// statusID begins the IDs of checks.
const statusID = "status:"

// checksOf returns the checks of the head, and the required ones that have not reported.
func checksOf(checks combined, rules protected) []forge.Check {
	var list []forge.Check
	reported := map[string]bool{}
	required := func(name string) bool {
		return rules.Checked && slices.ContainsFunc(rules.Contexts, func(pattern string) bool {
			matches, err := path.Match(pattern, name)
			return pattern == name || err == nil && matches
		})
	}
	for _, s := range checks.Statuses {
		name := cmp.Or(forge.ClipLine(s.Context), "default")
		if reported[name] || len(list) == forge.MaxChecks {
			continue
		}
		reported[name] = true
		list = append(list, forge.Check{
			ID: fmt.Sprint(statusID, s.ID), Name: name, Status: statusOf(s.Status), Required: required(name), URL: forgehttp.PageOf(s.TargetURL), Summary: forge.ClipLine(s.Description),
		})
	}
	for _, name := range rules.Contexts {
		if name = forge.ClipLine(name); rules.Checked && name != "" && !strings.ContainsAny(name, "*?[") && !reported[name] && len(list) < forge.MaxChecks {
			reported[name] = true
			list = append(list, forge.Check{Name: name, Status: forge.Pending, Required: true})
		}
	}
	slices.SortFunc(list, func(a, b forge.Check) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func statusOf(state string) forge.Status {
	switch state {
	case "success", "skipped", "warning":
		return forge.Passed
	case "error", "failure":
		return forge.Failed
	}
	return forge.Pending
}

// comments returns the comments of people, oldest first. If there are too many, it returns the latest.
func (r *repository) comments(ctx context.Context, number int, reviews []review) ([]forge.Comment, error) {
	list, err := all[comment](ctx, r, fmt.Sprintf("/issues/%d/comments", number))
	if err != nil {
		return nil, err
	}
	var found []forge.Comment
	add := func(kind string, c comment) error {
		if strings.TrimSpace(c.Body) == "" {
			return nil
		}
		one := forge.Comment{ID: fmt.Sprintf("%s:%d", kind, c.ID), By: c.User.login(), Time: c.Created, Text: forge.ClipText(c.Body)}
		c.place(&one)
		var err error
		one.Own, one.Trusted, err = r.relation(ctx, c.User.login())
		found = append(found, one)
		return err
	}
	for _, c := range list {
		err = errors.Join(err, add("issue", c))
	}
	for _, one := range reviews {
		if one.State == "PENDING" {
			continue
		}
		err = errors.Join(err, add("review", comment{ID: one.ID, User: one.User, Body: one.Body, Created: one.Submitted}))
		if one.Lines == 0 {
			continue
		}
		var lines []comment
		err = errors.Join(err, r.get(ctx, fmt.Sprintf("/pulls/%d/reviews/%d/comments", number, one.ID), &lines))
		for _, c := range lines {
			err = errors.Join(err, add("line", c))
		}
	}
	slices.SortStableFunc(found, func(a, b forge.Comment) int { return a.Time.Compare(b.Time) })
	return found[max(0, len(found)-forge.MaxComments):], err
}

// place sets the place of a comment.
func (c comment) place(one *forge.Comment) {
	if !forgehttp.IsFile(c.Path) {
		return
	}
	one.Path, one.Line, one.Commit, one.Resolved = c.Path, c.Line, c.Commit, c.Resolver != nil
	if c.Line <= 0 {
		one.Line, one.Old = max(c.OldLine, 0), c.OldLine > 0
	}
}

// relation tells whether an account is the user's own, and whether it may write to the repository. If the user may not ask,
// only the user's own is trusted.
func (r *repository) relation(ctx context.Context, login string) (own, trusted bool, err error) {
	if r.me == "" {
		me := user{}
		if _, err := r.JSON(ctx, forgehttp.Call{Path: "/user"}, &me); err != nil {
			return false, false, err
		}
		r.me = me.login()
	}
	if login == r.me {
		return true, true, nil
	}
	if known, ok := r.write[login]; ok {
		return false, known, nil
	}
	var permission struct {
		Permission string `json:"permission"`
	}
	err = r.get(ctx, "/collaborators/"+url.PathEscape(login)+"/permission", &permission)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
		return false, false, err
	}
	r.write[login] = slices.Contains([]string{"write", "admin", "owner"}, permission.Permission)
	return false, r.write[login], nil
}
