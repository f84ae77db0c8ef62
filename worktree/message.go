package worktree

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The committer if no user is configured.
const (
	fallbackName  = "coven"
	fallbackEmail = "coven@localhost"
)

// identity returns environment variables that complete the user's identity. Otherwise
// git would guess it from the machine, or refuse.
func (r *Repo) identity(ctx context.Context) ([]string, error) {
	settings, err := r.git().Configured(ctx, `^(user|author|committer)\.(name|email)$`, false)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, s := range settings {
		has[s.Key] = s.Value != ""
	}
	var env []string
	for _, who := range []string{"author", "committer"} {
		variable := "GIT_" + strings.ToUpper(who) + "_"
		if os.Getenv(variable+"NAME") == "" && !has[who+".name"] && !has["user.name"] {
			env = append(env, variable+"NAME="+fallbackName)
		}
		known := os.Getenv(variable+"EMAIL") != "" || os.Getenv("EMAIL") != ""
		if !known && !has[who+".email"] && !has["user.email"] {
			env = append(env, variable+"EMAIL="+fallbackEmail)
		}
	}
	return env, nil
}

// withTrailers appends trailers to a message, to its last paragraph if that already
// consists of trailers. Existing trailers are not repeated.
func withTrailers(message string, trailers []string) string {
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

// Unredacted returns the commits of the task's branch above a commit whose messages
// contain text that Redact would remove. coven did not create these commits.
func (w *Worktree) Unredacted(ctx context.Context, above string) ([]string, error) {
	if w.repo.Redact == nil {
		return nil, nil
	}
	tip, err := w.Tip(ctx)
	if err != nil {
		return nil, err
	}
	g := w.repo.git()
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
		if w.repo.Redact(c.Message) != c.Message {
			found = append(found, c.Oid)
		}
	}
	return found, nil
}
