package gitlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// full returns the complete state of a merge request, without its version.
func (p *project) full(ctx context.Context, m *request) (forge.PullRequest, error) {
	state := forge.PullRequest{
		Number: m.IID, URL: forgehttp.PageOf(m.WebURL), State: forge.Open, Draft: m.Draft, Head: m.SHA, Base: m.TargetBranch,
		Changes: m.MergeStatus == "requested_changes",
	}
	switch m.State {
	case "merged":
		state.State, state.Commit, state.By = forge.Merged, m.commit(), m.MergeUser.login()
	case "closed":
		state.State, state.By = forge.Closed, m.ClosedBy.login()
	case "locked":
		state.State = forge.Queued
	default:
		state.Mergeable = mergeable(m.MergeStatus)
		if err := p.openState(ctx, m, &state); err != nil {
			return state, err
		}
	}
	var err error
	if state.Checks, err = p.checks(ctx, m); err != nil {
		return state, err
	}
	state.Comments, err = p.comments(ctx, m.IID)
	return state, err
}

// openState sets what only an open merge request has.
func (p *project) openState(ctx context.Context, m *request, state *forge.PullRequest) error {
	var approvals struct {
		Left int `json:"approvals_left"`
	}
	err := p.get(ctx, fmt.Sprintf("/merge_requests/%d/approvals", m.IID), &approvals)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // not in each edition
		return err
	}
	switch {
	case approvals.Left == 1:
		state.Needs = "1 more approval"
	case approvals.Left > 1:
		state.Needs = fmt.Sprintf("%d more approvals", approvals.Left)
	case m.MergeStatus == "discussions_not_resolved":
		state.Needs = "open threads to resolve"
	}
	at := fmt.Sprintf("/projects/%d/repository/branches/%s", m.SourceProject, url.PathEscape(m.SourceBranch))
	if _, err = p.JSON(ctx, forgehttp.Call{Path: at}, &struct{}{}); errors.Is(err, fs.ErrNotExist) {
		state.HeadGone, err = true, nil
	}
	return err
}

// mergeable returns the meaning of a status of a merge.
func mergeable(status string) forge.Mergeable {
	switch status {
	case "mergeable":
		return forge.Clean
	case "need_rebase":
		return forge.Behind
	case "conflict", "broken_status":
		return forge.Conflict
	case "", "checking", "unchecked", "preparing", "approvals_syncing":
		return forge.Unknown
	}
	return forge.Blocked
}

// job is a job of a pipeline, or a status that another CI has reported.
type job struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	Status       string `json:"status"`
	AllowFailure bool   `json:"allow_failure"`
	TargetURL    string `json:"target_url"`
	Description  string `json:"description"`
}

// jobID begins the IDs of checks.
const jobID = "job:"

// checks returns the checks of the last pipeline. They are required if the project merges only what passes.
func (p *project) checks(ctx context.Context, m *request) ([]forge.Check, error) {
	if m.Pipeline == nil || m.Pipeline.SHA != m.SHA && m.State == "opened" {
		if p.MustPass && m.State == "opened" {
			return []forge.Check{{Name: "pipeline", Status: forge.Pending, Required: true}}, nil
		}
		return nil, nil
	}
	jobs, err := all[job](ctx, p, fmt.Sprintf("/repository/commits/%s/statuses?pipeline_id=%d", url.PathEscape(m.Pipeline.SHA), m.Pipeline.ID))
	if err != nil {
		return nil, err
	}
	var checks []forge.Check
	names := map[string]bool{}
	for _, j := range slices.Backward(jobs) { // the last of a name counts
		name := forge.ClipLine(j.Name)
		if names[name] || name == "" || len(checks) == forge.MaxChecks || j.Status == "manual" && j.AllowFailure {
			continue
		}
		names[name] = true
		checks = append(checks, forge.Check{
			ID: fmt.Sprint(jobID, j.ID), Name: name, Status: j.status(), Required: p.MustPass && !j.AllowFailure,
			URL: forgehttp.PageOf(j.TargetURL), Summary: forge.ClipLine(j.Description),
		})
	}
	slices.SortFunc(checks, func(a, b forge.Check) int { return strings.Compare(a.Name, b.Name) })
	return checks, nil
}

// status returns the status of a job. One that waits for a person has Failed.
func (j job) status() forge.Status {
	switch j.Status {
	case "success", "skipped":
		return forge.Passed
	case "failed", "canceled", "manual":
		return forge.Failed
	}
	return forge.Pending
}

// jobOf returns the ID of a check's job.
func jobOf(check forge.Check) (string, error) {
	id, ok := strings.CutPrefix(check.ID, jobID)
	if _, err := strconv.ParseInt(id, 10, 64); !ok || err != nil {
		return "", fmt.Errorf("%q is not an ID of this plugin: %w", forge.ClipLine(check.ID), pluginerr.ErrInvalid)
	}
	return id, nil
}

const (
	maxLog  = 64 << 20        // bytes that are read of a log
	maxWait = 5 * time.Minute // for a log
)

// sections matches the marks of sections in a log, and the times that newer runners begin each line with.
var sections = lazyregexp.New(`section_(?:start|end):\d+:[^\r\n]*\r(?:\x1b\[0K)?|(?m:^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z \d\d[OE][+ ]?)`)

// Log implements forge.Forge. The log of a job ends with the failed commands.
func (f Forge) Log(ctx context.Context, where forge.Repository, check forge.Check, limit int) (string, error) {
	p, err := f.open(where)
	if err != nil {
		return "", err
	}
	id, err := jobOf(check)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	body, err := p.Text(ctx, forgehttp.Call{Path: p.path + "/jobs/" + id + "/trace"})
	if errors.Is(err, fs.ErrNotExist) { // a status of another CI has no log
		return forgehttp.Tail(check.Summary, limit), nil
	}
	if err != nil {
		return "", err
	}
	defer body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(io.LimitReader(body, maxLog))
	if err != nil {
		return "", fmt.Errorf("%s: the log ended early: %w", p.Base.Host, pluginerr.ErrTransient)
	}
	text = text[max(0, len(text)-4*limit):] // codes need room
	return forgehttp.Tail(strings.TrimSpace(forgehttp.Clean(sections.ReplaceAllString(string(text), ""))), limit), nil
}

// discussion is a thread.
type discussion struct {
	ID    string `json:"id"`
	Notes []note `json:"notes"`
}

// note is a comment.
type note struct {
	ID       int64     `json:"id"`
	Body     string    `json:"body"`
	Author   *user     `json:"author"`
	Created  time.Time `json:"created_at"`
	System   bool      `json:"system"`
	Resolved bool      `json:"resolved"`
	Position *position `json:"position"`
}

// position is the place of a comment.
type position struct {
	Type    string `json:"position_type"` // text, file or image
	HeadSHA string `json:"head_sha"`
	OldPath string `json:"old_path"`
	NewPath string `json:"new_path"`
	OldLine int    `json:"old_line"`
	NewLine int    `json:"new_line"`
	Range   *struct {
		Start struct {
			OldLine int `json:"old_line"`
			NewLine int `json:"new_line"`
		} `json:"start"`
	} `json:"line_range"`
}

// comments returns the comments of people, oldest first. If there are too many, it returns the latest.
func (p *project) comments(ctx context.Context, number int) ([]forge.Comment, error) {
	discussions, err := all[discussion](ctx, p, fmt.Sprintf("/merge_requests/%d/discussions", number))
	if err != nil {
		return nil, err
	}
	var found []forge.Comment
	for _, d := range discussions {
		first := ""
		for _, n := range d.Notes {
			if n.System || strings.TrimSpace(n.Body) == "" {
				continue
			}
			c := forge.Comment{
				ID: forge.ClipLine(fmt.Sprintf("%s:%d", d.ID, n.ID)), By: n.Author.login(), Time: n.Created, Text: forge.ClipText(n.Body), Resolved: n.Resolved, Answers: first,
			}
			if first == "" {
				first = c.ID
			}
			n.Position.place(&c)
			if c.Own, c.Trusted, err = p.relation(ctx, n.Author); err != nil {
				return nil, err
			}
			found = append(found, c)
		}
	}
	slices.SortStableFunc(found, func(a, b forge.Comment) int { return a.Time.Compare(b.Time) })
	return found[max(0, len(found)-forge.MaxComments):], nil
}

// place sets the place of a comment.
func (at *position) place(c *forge.Comment) {
	if at == nil {
		return
	}
	file, line, from := at.NewPath, at.NewLine, 0
	if at.Range != nil {
		from = at.Range.Start.NewLine
	}
	if line == 0 && at.OldLine > 0 {
		file, line, c.Old = at.OldPath, at.OldLine, true
		if at.Range != nil {
			from = at.Range.Start.OldLine
		}
	}
	if !forgehttp.IsFile(file) || line < 0 {
		c.Old = false
		return
	}
	c.Path, c.Line, c.Commit = file, line, at.HeadSHA
	if from > 0 && from < line {
		c.From = from
	}
}

// developer is the lowest level of access with which a member may write.
const developer = 30

// relation tells whether an account is the user's own, and whether it may write to the project. The user is always trusted.
func (p *project) relation(ctx context.Context, author *user) (own, trusted bool, err error) {
	if author == nil || author.ID == 0 {
		return false, false, nil
	}
	if p.me == 0 {
		me := user{}
		if _, err := p.JSON(ctx, forgehttp.Call{Path: "/user"}, &me); err != nil {
			return false, false, err
		}
		p.me = me.ID
	}
	known, ok := p.write[author.ID]
	if !ok {
		var member struct {
			Level int `json:"access_level"`
		}
		err := p.get(ctx, fmt.Sprintf("/members/all/%d", author.ID), &member)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return false, false, err
		}
		known = member.Level >= developer
		p.write[author.ID] = known
	}
	own = author.ID == p.me
	return own, own || known, nil
}
