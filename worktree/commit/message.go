package commit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/repo"
)

// WithTrailers appends trailers to a message. It appends to the last paragraph if that consists of
// trailers, and does not repeat existing trailers.
func WithTrailers(message string, trailers []string) string {
	message = strings.TrimRight(message, "\n ")
	paragraphs := strings.Split(message, "\n\n")
	last := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	inBlock := len(paragraphs) > 1 && allTrailers(last)
	var missing []string
	for _, trailer := range trailers {
		trailer = strings.Join(strings.Fields(trailer), " ") // one line
		if !inBlock || !slices.Contains(last, trailer) {
			missing = append(missing, trailer)
		}
	}
	if len(missing) == 0 {
		return message + "\n"
	}
	separator := "\n\n"
	if inBlock {
		separator = "\n"
	}
	return message + separator + strings.Join(missing, "\n") + "\n"
}

func allTrailers(lines []string) bool {
	for _, line := range lines {
		key, _, found := strings.Cut(line, ": ")
		if !found || key == "" || strings.ContainsAny(key, " \t") {
			return false
		}
	}
	return true
}

// Person returns the name and address of the person who commits, as git writes them: "Name <address>".
func Person(ctx context.Context, r *repo.Repo) (string, error) {
	ident, err := r.Git().Line(ctx, "var", "GIT_COMMITTER_IDENT")
	if err != nil {
		return "", fmt.Errorf("find the name of the committer: %w", err)
	}
	name, _, _ := strings.Cut(ident, ">")
	return name + ">", nil
}

// Unredacted returns the commits of the task's branch that are not reachable from above and whose messages
// contain text that Redact would remove. Such commits were not created by coven.
func Unredacted(ctx context.Context, w *repo.Worktree, above string) ([]string, error) {
	if w.Repo.Redact == nil {
		return nil, nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	g := w.Repo.Git()
	out, err := g.Output(ctx, "rev-list", "--reverse", tip, "^"+above)
	if err != nil {
		return nil, fmt.Errorf("list the commits of %s: %w", w.TaskID, err)
	}
	commits, err := g.Commits(ctx, strings.Fields(string(out))...)
	if err != nil {
		return nil, fmt.Errorf("read the commits of %s: %w", w.TaskID, err)
	}
	var found []string
	for _, c := range commits {
		if w.Repo.Redact(c.Message) != c.Message {
			found = append(found, c.Oid)
		}
	}
	return found, nil
}
