package github

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	"github.com/coven-run/coven/plugins/builtin/forgehttp"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// Rerun implements forge.Forge. It runs only this job of a workflow, and the jobs that depend on it.
func (f Forge) Rerun(ctx context.Context, where forge.Repository, check forge.Check) error {
	r, err := f.open(where)
	if err != nil {
		return err
	}
	kind, id, _ := strings.Cut(check.ID, ":")
	var path string
	switch kind {
	case actionsJob:
		path = r.path("actions", "jobs", id, "rerun")
	case checkRun:
		path = r.path("check-runs", id, "rerequest")
	case oldStatus:
		return fmt.Errorf("a commit status cannot be run again: %w", pluginerr.ErrUnsupported)
	default:
		return unknownID(check.ID)
	}
	_, err = r.JSON(ctx, forgehttp.Call{Method: http.MethodPost, Path: path}, nil)
	refusal := (*forgehttp.Refusal)(nil)
	if errors.As(err, &refusal) && refusal.Status == http.StatusForbidden && strings.Contains(refusal.Message, "already running") {
		return fmt.Errorf("%s: %w", refusal.Message, pluginerr.ErrTransient)
	}
	return err
}

func unknownID(id string) error {
	return fmt.Errorf("%q is not an ID of this plugin: %w", forge.ClipLine(id), pluginerr.ErrInvalid)
}

const replyMutation = `
mutation($thread: ID!, $text: String!) {
  addPullRequestReviewThreadReply(input: {pullRequestReviewThreadId: $thread, body: $text}) { comment { id } }
}`

// Reply implements forge.Forge. The answer to a comment on a line is in its thread. Other comments have none: the answer is
// a new comment.
func (f Forge) Reply(ctx context.Context, where forge.Repository, reply forge.Reply) error {
	r, err := f.open(where)
	if err != nil {
		return err
	}
	kind, id, _ := strings.Cut(reply.Comment, ":")
	switch kind {
	case "thread":
		thread, _, _ := strings.Cut(id, ":")
		return r.mutate(ctx, replyMutation, map[string]any{"thread": thread, "text": reply.Text}, nil)
	case "issue", "review":
		body := map[string]any{"body": reply.Text}
		_, err := r.JSON(ctx, forgehttp.Call{Method: http.MethodPost, Path: r.path("issues", reply.Number, "comments"), Body: body}, nil)
		return err
	}
	return unknownID(reply.Comment)
}

// mutate sends a GraphQL mutation.
func (r *repository) mutate(ctx context.Context, text string, variables map[string]any, into any) error {
	if into == nil {
		into = &struct{}{}
	}
	problems, err := r.query(ctx, text, variables, into)
	if err == nil && len(problems) > 0 {
		return fmt.Errorf("%s: %s: %w", r.Base.Host, forge.ClipLine(problems[0].Message), fs.ErrNotExist)
	}
	return err
}

const mergeQuery = `
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    viewerDefaultMergeMethod
    pullRequest(number: $number) { id state headRefOid isInMergeQueue isMergeQueueEnabled mergeCommit { oid } }
  }` + rateLimit + `}`

const enqueueMutation = `
mutation($pull: ID!, $head: GitObjectID!) {
  enqueuePullRequest(input: {pullRequestId: $pull, expectedHeadOid: $head}) { mergeQueueEntry { position } }
}`

// Merge implements forge.Forge. It returns the commit of a merge that has already happened, too.
func (f Forge) Merge(ctx context.Context, where forge.Repository, merge forge.Merge) (commit string, err error) {
	r, err := f.open(where)
	if err != nil {
		return "", err
	}
	var answer struct {
		Repository struct {
			ViewerDefaultMergeMethod string
			PullRequest              *struct {
				ID, State, HeadRefOid               string
				IsInMergeQueue, IsMergeQueueEnabled bool
				MergeCommit                         *struct{ Oid string }
			}
		}
	}
	if _, err := r.query(ctx, mergeQuery, r.variables(map[string]any{"number": merge.Number}), &answer); err != nil {
		return "", err
	}
	p := answer.Repository.PullRequest
	switch {
	case p == nil:
		return "", fmt.Errorf("pull request %d: %w", merge.Number, fs.ErrNotExist)
	case p.HeadRefOid != merge.Head:
		return "", fmt.Errorf("the head of pull request %d is %.12s, and not the checked commit %.12s", merge.Number, p.HeadRefOid, merge.Head)
	case p.State == "MERGED" && p.MergeCommit != nil:
		return p.MergeCommit.Oid, nil
	case p.IsInMergeQueue:
		return "", nil
	case p.IsMergeQueueEnabled:
		return "", r.mutate(ctx, enqueueMutation, map[string]any{"pull": p.ID, "head": merge.Head}, nil)
	}
	method := merge.Method
	if method == "" {
		method = strings.ToLower(answer.Repository.ViewerDefaultMergeMethod)
	}
	return r.merge(ctx, merge, method)
}

// merge merges a pull request without a queue.
func (r *repository) merge(ctx context.Context, merge forge.Merge, method string) (commit string, err error) {
	body := map[string]any{"sha": merge.Head}
	if method != "" {
		body["merge_method"] = method
	}
	var merged struct {
		SHA    string `json:"sha"`
		Merged bool   `json:"merged"`
	}
	_, err = r.JSON(ctx, forgehttp.Call{Method: http.MethodPut, Path: r.path("pulls", merge.Number, "merge"), Body: body}, &merged)
	refusal := (*forgehttp.Refusal)(nil)
	switch {
	case errors.As(err, &refusal) && refusal.Status == http.StatusMethodNotAllowed && strings.Contains(refusal.Message, "try the merge again"):
		return "", fmt.Errorf("%s: %w", refusal.Message, pluginerr.ErrTransient)
	case err != nil:
		return "", err
	case !merged.Merged || merged.SHA == "":
		return "", fmt.Errorf("%s answered without a commit: %w", r.Base.Host, pluginerr.ErrTransient)
	}
	return merged.SHA, nil
}
