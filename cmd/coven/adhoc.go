package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// adHoc makes a task of a prompt. Its id is new to the repository.
func (h *house) adHoc(ctx context.Context, prompt string) (job, error) {
	if strings.TrimSpace(prompt) == "" {
		return job{}, exit.Usagef("", "the prompt is empty")
	}
	if len(prompt) > task.MaxText {
		return job{}, exit.Usagef("put the text into a file, and name that in the prompt", "the prompt has %d bytes, at most %d are taken", len(prompt), task.MaxText)
	}
	title, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	slug := "p-" + session.Slug(title)
	id := slug
	for n := 2; ; n++ {
		_, err := session.OfTask(h.repo.Root, id)
		_, claimed := h.repo.ClaimOf(ctx, id)
		if errors.Is(err, session.ErrNone) && errors.Is(claimed, worktree.ErrNoClaim) {
			break
		}
		if err != nil && !errors.Is(err, session.ErrNone) && !errors.As(err, new(*session.DamagedError)) {
			return job{}, err
		}
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	t := task.Task{ID: id, Title: title, Description: prompt}
	if t.Description == title {
		t.Description = ""
	}
	return job{task: t}, nil
}
