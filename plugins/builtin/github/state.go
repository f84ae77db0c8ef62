package github

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
)

// convert returns the state of a pull request. r are the rules of its base branch.
func (p *pull) convert(r rules) forge.PullRequest {
	state := forge.PullRequest{
		Version: versionOf(p.light, r), Number: p.Number, URL: p.URL, State: forge.Open, Draft: p.IsDraft, Head: p.HeadRefOid,
		HeadGone: p.HeadRef == nil, Base: p.BaseRefName, Mergeable: p.mergeable(), Changes: p.ReviewDecision == "CHANGES_REQUESTED",
	}
	if p.BaseRef != nil && p.BaseRef.RefUpdateRule != nil { // of the older protection of branches
		old := p.BaseRef.RefUpdateRule
		r.Checks = append(slices.Clone(r.Checks), old.RequiredStatusCheckContexts...)
		r.Reviews, r.Threads = max(r.Reviews, old.RequiredApprovingReviewCount), r.Threads || old.RequiresConversationResolution
	}
	switch {
	case p.State == "MERGED":
		state.State, state.By, state.Mergeable = forge.Merged, forge.ClipLine(p.MergedBy.login()), forge.Unknown
		if p.MergeCommit != nil {
			state.Commit = p.MergeCommit.Oid
		}
	case p.State == "CLOSED":
		state.State, state.Mergeable = forge.Closed, forge.Unknown
		if nodes := p.TimelineItems.Nodes; len(nodes) > 0 {
			state.By = forge.ClipLine(nodes[0].Actor.login())
		}
	case p.MergeQueueEntry != nil:
		state.State, state.Queue = forge.Queued, max(p.MergeQueueEntry.Position, 0)
	}
	if state.State == forge.Open {
		state.Needs = p.needs(r)
	}
	state.Checks, state.Comments = p.checks(r.Checks), p.comments()
	return state
}

// mergeable returns the reason for which the pull request can or cannot be merged.
func (p *pull) mergeable() forge.Mergeable {
	if p.Mergeable == "CONFLICTING" {
		return forge.Conflict
	}
	switch p.MergeStateStatus {
	case "CLEAN", "HAS_HOOKS", "UNSTABLE":
		return forge.Clean
	case "BEHIND":
		return forge.Behind
	case "DIRTY":
		return forge.Conflict
	case "BLOCKED", "DRAFT":
		return forge.Blocked
	}
	return forge.Unknown
}

// needs names the missing requirements of the merge, besides checks.
func (p *pull) needs(r rules) string {
	var all []string
	approvals, open := 0, 0
	for _, review := range p.LatestOpinionatedReviews.Nodes {
		if review.State == "APPROVED" {
			approvals++
		}
	}
	for _, t := range p.Threads.Nodes {
		if !t.IsResolved {
			open++
		}
	}
	switch missing := r.Reviews - approvals; {
	case missing == 1:
		all = append(all, "1 more approval")
	case missing > 1:
		all = append(all, fmt.Sprintf("%d more approvals", missing))
	case p.ReviewDecision == "REVIEW_REQUIRED":
		all = append(all, "a review by a code owner")
	}
	switch {
	case !r.Threads || open == 0:
	case open == 1:
		all = append(all, "1 open conversation to resolve")
	default:
		all = append(all, fmt.Sprintf("%d open conversations to resolve", open))
	}
	return strings.Join(all, ", ")
}

// named is a check, and the names that make it unique.
type named struct {
	forge.Check
	plain    string // name in the rules of the base branch
	workflow string
	event    string // that started the workflow
	order    int64  // when it began
}

// checks returns the checks of the head, and the required ones that have not reported.
func (p *pull) checks(required []string) []forge.Check {
	var all []named
	if p.Checks != nil {
		for _, c := range p.Checks.Contexts.Nodes {
			all = append(all, c.convert())
		}
	}
	all = latest(all)
	reported, count := map[string]bool{}, map[string]int{}
	for _, c := range all {
		reported[c.plain] = true
		count[c.Name]++
	}
	for _, distinguish := range []func(c named) string{
		func(c named) string { return prefixed(c.workflow, c.plain) },
		func(c named) string {
			return prefixed(c.workflow, c.plain) + " (" + cmp.Or(c.event, "another app") + ")"
		},
		func(c named) string { return c.Name + " " + c.ID },
	} {
		again := map[string]int{}
		for i, c := range all {
			if count[c.Name] > 1 {
				all[i].Name = forge.ClipLine(distinguish(c))
			}
			again[all[i].Name]++
		}
		count = again
	}
	var checks []forge.Check
	for _, c := range all {
		c.Required = c.Required || slices.Contains(required, c.plain)
		checks = append(checks, c.Check)
	}
	for _, name := range required {
		if name = forge.ClipLine(name); !reported[name] && name != "" {
			reported[name] = true
			checks = append(checks, forge.Check{Name: name, Status: forge.Pending, Required: true})
		}
	}
	slices.SortStableFunc(checks, func(a, b forge.Check) int { return strings.Compare(a.Name, b.Name) })
	if len(checks) > forge.MaxChecks {
		slices.SortStableFunc(checks, func(a, b forge.Check) int { return importance(b) - importance(a) })
		checks = checks[:forge.MaxChecks]
	}
	return checks
}

// importance orders checks if there are too many.
func importance(c forge.Check) int {
	n := map[forge.Status]int{forge.Failed: 2, forge.Pending: 1}[c.Status]
	if c.Required {
		n += 3
	}
	return n
}

// latest removes runs of a check that a later run of the same workflow and event replaces.
func latest(all []named) []named {
	type key struct{ plain, workflow, event string }
	last := map[key]named{}
	for _, c := range all {
		k := key{c.plain, c.workflow, c.event}
		if before, ok := last[k]; !ok || c.order >= before.order {
			last[k] = c
		}
	}
	return slices.DeleteFunc(all, func(c named) bool { return last[key{c.plain, c.workflow, c.event}].ID != c.ID })
}

func prefixed(workflow, name string) string {
	if workflow == "" {
		return name
	}
	return workflow + " / " + name
}

// The kinds of checks, which begin their IDs.
const (
	actionsJob = "job"    // a job of GitHub Actions
	checkRun   = "run"    // a check run of another app
	oldStatus  = "status" // a commit status
)

// convert returns a check. The ID of a commit status is that of the status.
func (c checkContext) convert() named {
	if c.Typename == "StatusContext" {
		name := forge.ClipLine(c.Context)
		return named{plain: name, order: c.CreatedAt.Unix(), Check: forge.Check{
			ID: oldStatus + ":" + forge.ClipLine(c.ID), Name: cmp.Or(name, "status"), Status: statusOf(c.State), Required: c.IsRequired,
			URL: forgehttp.PageOf(c.TargetURL), Summary: forge.ClipLine(c.Description),
		}}
	}
	name, kind := forge.ClipLine(c.Name), checkRun
	n := named{plain: name, order: c.StartedAt.Unix()}
	if c.CheckSuite.App != nil && c.CheckSuite.App.Slug == "github-actions" {
		kind = actionsJob
	}
	if run := c.CheckSuite.WorkflowRun; run != nil {
		n.workflow, n.event = forge.ClipLine(run.Workflow.Name), forge.ClipLine(run.Event)
	}
	n.Check = forge.Check{
		ID: kind + ":" + strconv.FormatInt(c.number(), 10), Name: cmp.Or(name, "check"), Status: runStatus(c.Status, c.Conclusion), Required: c.IsRequired,
		URL: cmp.Or(forgehttp.PageOf(c.DetailsURL), forgehttp.PageOf(c.URL)), Summary: forge.ClipLine(cmp.Or(c.Title, c.Summary)),
	}
	if n.Summary == "" && n.Status == forge.Failed && c.Conclusion != "FAILURE" {
		n.Summary = strings.ToLower(strings.ReplaceAll(cmp.Or(c.Conclusion, c.Status), "_", " "))
	}
	return n
}

// number returns the number of a check run. Its address ends with the number, too.
func (c checkContext) number() int64 {
	if c.DatabaseID > 0 {
		return c.DatabaseID
	}
	for _, at := range []string{c.DetailsURL, c.URL} {
		if n, err := strconv.ParseInt(path.Base(at), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

func statusOf(state string) forge.Status {
	switch state {
	case "SUCCESS":
		return forge.Passed
	case "ERROR", "FAILURE":
		return forge.Failed
	}
	return forge.Pending
}

// runStatus returns the status of a check run. One that waits for a person's permission has Failed.
func runStatus(status, conclusion string) forge.Status {
	switch {
	case status == "WAITING":
		return forge.Failed
	case status != "COMPLETED":
		return forge.Pending
	}
	switch conclusion {
	case "SUCCESS", "NEUTRAL", "SKIPPED":
		return forge.Passed
	case "":
		return forge.Pending
	}
	return forge.Failed
}

// comments returns the comments, oldest first. If there are too many, it returns the latest.
func (p *pull) comments() []forge.Comment {
	var all []forge.Comment
	for _, c := range p.Comments.Nodes {
		all = c.add(all, "issue:"+c.ID)
	}
	for _, c := range p.Reviews.Nodes {
		c.CreatedAt = c.SubmittedAt
		all = c.add(all, "review:"+c.ID)
	}
	for _, t := range p.Threads.Nodes {
		all = t.add(all)
	}
	slices.SortStableFunc(all, func(a, b forge.Comment) int { return a.Time.Compare(b.Time) })
	return all[max(0, len(all)-forge.MaxComments):]
}

// add appends the comment, unless it is empty, hidden, or of a review that is not submitted yet.
func (c comment) add(all []forge.Comment, id string) []forge.Comment {
	if strings.TrimSpace(c.Body) == "" || c.IsMinimized || c.State == "PENDING" {
		return all
	}
	return append(all, forge.Comment{
		ID: forge.ClipLine(id), By: forge.ClipLine(c.Author.login()), Trusted: c.trusted(), Own: c.ViewerDidAuthor, Time: c.CreatedAt, Text: forge.ClipText(c.Body),
	})
}

// trusted reports whether the author may write to the repository, or is the person whose token coven uses. A bot is trusted only as a collaborator: that an
// organization has installed it does not mean that it speaks for a person.
func (c comment) trusted() bool {
	person := c.Author != nil && c.Author.Typename != "Bot"
	switch c.AuthorAssociation {
	case "COLLABORATOR":
		return true
	case "OWNER", "MEMBER":
		return person
	}
	return person && c.ViewerDidAuthor
}

// add appends the comments of a thread. Their place is the original one, in the commit that the author saw.
func (t thread) add(all []forge.Comment) []forge.Comment {
	first := ""
	for _, c := range t.Comments.Nodes {
		before := len(all)
		if all = c.add(all, "thread:"+t.ID+":"+c.ID); len(all) == before {
			continue
		}
		added := &all[before]
		added.Resolved, added.Answers = t.IsResolved, first
		if first == "" {
			first = added.ID
		}
		t.place(c, added)
	}
	return all
}

// place sets the place of a comment.
func (t thread) place(c comment, added *forge.Comment) {
	if !forgehttp.IsFile(t.Path) {
		return
	}
	added.Path, added.Old = t.Path, t.DiffSide == "LEFT"
	switch {
	case c.OriginalCommit != nil && c.OriginalLine > 0:
		added.Commit, added.Line, added.From = c.OriginalCommit.Oid, c.OriginalLine, c.OriginalStartLine
	case c.Commit != nil && c.Line > 0:
		added.Commit, added.Line, added.From = c.Commit.Oid, c.Line, c.StartLine
	case c.OriginalCommit != nil:
		added.Commit = c.OriginalCommit.Oid
	}
	if added.From >= added.Line || added.From < 0 {
		added.From = 0
	}
}
