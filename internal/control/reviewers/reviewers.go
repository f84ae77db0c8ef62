// Package reviewers adapts reviewer and arbiter plugins to the runner, and serves their
// calls of host services.
package reviewers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/workspace"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner"
)

// Reviewers asks plugins to review the change in a workspace. It implements the
// reviewers of package runner.
type Reviewers struct {
	Host      *plugins.Host
	Workspace *workspace.Workspace
	Task      grimoires.Task
}

// maxDiff is the maximum size in bytes of the diff that reviewers get. They can request the rest.
const maxDiff = 400 << 10

// Change implements the reviewers of package runner.
func (j Reviewers) Change(ctx context.Context) (reviewer.Change, string, error) {
	diff, err := j.Workspace.Diff(ctx)
	if err != nil {
		return reviewer.Change{}, "", err
	}
	change := reviewer.Change{Task: j.task(), Dir: j.Workspace.Worktree.Path, Base: diff.From, Tree: diff.To}
	for _, f := range diff.Files {
		change.Files = append(change.Files, reviewer.File{
			Path: f.Path, From: f.OldPath, Status: f.Status, Binary: f.Binary, Added: f.Added, Deleted: f.Deleted,
		})
	}
	change.Diff, change.Truncated = shortened(diff, maxDiff)
	return change, diff.PatchID, nil
}

// task returns the task in the form for reviewers.
func (j Reviewers) task() reviewer.Task {
	data := grimoires.TaskData(j.Task)
	criteria, _ := data["acceptance_criteria"].([]string)
	return reviewer.Task{ID: j.Task.ID, Title: j.Task.Title, Description: j.Task.Description, Acceptance: criteria}
}

// Review implements the reviewers of package runner.
func (j Reviewers) Review(ctx context.Context, plugin string, change reviewer.Change, services *runner.HostServices) (reviewer.Review, error) {
	r, err := j.Host.Reviewer(ctx, plugin)
	if err != nil {
		return reviewer.Review{}, err
	}
	return r.Review(ctx, change, &hostServices{reviewers: j, services: services})
}

// Decide implements the reviewers of package runner.
func (j Reviewers) Decide(ctx context.Context, plugin string, question arbiter.Question, services *runner.HostServices) (arbiter.Decision, error) {
	a, err := j.Host.Arbiter(ctx, plugin)
	if err != nil {
		return arbiter.Decision{}, err
	}
	question.Task = j.task()
	return a.Decide(ctx, question, &hostServices{reviewers: j, services: services})
}

// hostServices serves one call of a plugin.
type hostServices struct {
	reviewers Reviewers
	services  *runner.HostServices
}

// RunAgent implements hostservice.Services.
func (e *hostServices) RunAgent(ctx context.Context, ask hostservice.Ask) (hostservice.Answer, error) {
	return e.services.Ask(ctx, ask)
}

// Diff implements hostservice.Services.
func (e *hostServices) Diff(ctx context.Context, paths ...string) (string, error) {
	diff, err := e.reviewers.Workspace.Diff(ctx)
	if err != nil {
		return "", err
	}
	patch := diff.Patch
	if len(paths) > 0 {
		patch = diff.Of(paths...)
	}
	if len(patch) > hostservice.MaxBytes {
		return "", fmt.Errorf("the diff has %d bytes: %w", len(patch), pluginerr.ErrTooLarge)
	}
	return patch, nil
}

// ReadFile implements hostservice.Services. It follows no link out of the worktree.
func (e *hostServices) ReadFile(_ context.Context, path string) ([]byte, error) {
	file, err := regularfile.OpenIn(e.reviewers.Workspace.Worktree.Path, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, os.ErrNotExist)
	case errors.Is(err, regularfile.ErrNotFile):
		return nil, fmt.Errorf("%s is not a file: %w", path, os.ErrPermission)
	case err != nil:
		return nil, fmt.Errorf("%s is not in the worktree: %w", path, os.ErrPermission)
	}
	defer file.Close() //nolint:errcheck // read only
	if info, err := file.Stat(); err == nil && info.Size() > hostservice.MaxBytes {
		return nil, fmt.Errorf("%s has %d bytes: %w", path, info.Size(), pluginerr.ErrTooLarge)
	}
	content, err := io.ReadAll(io.LimitReader(file, hostservice.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(content) > hostservice.MaxBytes {
		return nil, fmt.Errorf("%s: %w", path, pluginerr.ErrTooLarge)
	}
	return content, nil
}

// Log implements hostservice.Services.
func (e *hostServices) Log(_ context.Context, text string) error { return e.services.Log(text) }
