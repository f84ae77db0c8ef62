package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// ownWords makes a task of the user's own words.
func (o *runOptions) ownWords(ctx context.Context, h *house) ([]job, error) {
	if strings.TrimSpace(o.prompt) == "" {
		return nil, usage("", "the prompt is empty")
	}
	if len(o.prompt) > task.MaxText {
		return nil, usage("put the text into a file, and name that in the prompt", "the prompt has %d bytes, at most %d are taken", len(o.prompt), task.MaxText)
	}
	title, _, _ := strings.Cut(strings.TrimSpace(o.prompt), "\n")
	slug := "p-" + session.Slug(title)
	id := slug
	for n := 2; ; n++ {
		_, err := session.OfTask(h.repo.Root, id)
		_, claimed := h.repo.ClaimOf(ctx, id)
		if errors.Is(err, session.ErrNone) && errors.Is(claimed, worktree.ErrNoClaim) {
			break
		}
		if err != nil && !errors.Is(err, session.ErrNone) && !errors.As(err, new(*session.DamagedError)) {
			return nil, err
		}
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	t := task.Task{ID: id, Title: title, Description: o.prompt}
	if t.Description == title {
		t.Description = ""
	}
	return []job{{task: t}}, nil
}
