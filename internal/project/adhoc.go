package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree/claim"
)

// maxDamaged limits the numbers of IDs whose claims cannot be read.
const maxDamaged = 100

// AdHoc returns a new task for a prompt. Its ID belongs to no session of the repository and to no claim;
// the first process that claims the task owns it.
func (p *Project) AdHoc(ctx context.Context, prompt string) (Item, error) {
	if strings.TrimSpace(prompt) == "" {
		return Item{}, exit.Usagef("", "the prompt is empty")
	}
	if len(prompt) > task.MaxText {
		return Item{}, exit.Usagef("put the text into a file and name the file in the prompt", "the prompt has %d bytes, the maximum is %d", len(prompt), task.MaxText)
	}
	title, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	slug := "p-" + session.Slug(title)
	id, earlier := slug, ""
	known, err := p.Finder.Tasks()
	if err != nil {
		return Item{}, err
	}
	for n := 2; ; n++ {
		_, claimed := claim.Of(ctx, p.Repo, id)
		_, taken := slices.BinarySearch(known, id)
		if !taken && errors.Is(claimed, claim.ErrNoClaim) {
			break
		}
		if taken {
			earlier = id
		} else if claimed != nil && n > maxDamaged {
			return Item{}, claimed
		}
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	t := task.Task{ID: id, Title: title, Description: prompt}
	if t.Description == title {
		t.Description = ""
	}
	if v, err := p.Finder.OfTask(earlier); earlier == "" || err != nil || v.Info.Query != title {
		earlier = ""
	}
	return Item{Task: t, Prompt: prompt, Earlier: earlier}, nil
}
