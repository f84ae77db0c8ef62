// Package remote finds the remotes of a repository and fetches the upstream of a branch.
package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/worktree/internal/git"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// defaultRemote is the name of a clone's remote.
const defaultRemote = "origin"

// Of returns the name of a branch's remote: the one of its upstream, or origin, or the only one. It is
// empty if there is none, or if there are several and none of these rules applies.
func Of(ctx context.Context, r *repo.Repo, branch string) (string, error) {
	settings, err := r.Git().Configured(ctx, `^(remote\..*\.url|branch\..*\.remote)$`, false)
	if err != nil {
		return "", fmt.Errorf("read the remotes: %w", err)
	}
	return remoteOf(settings, branch), nil
}

// URLs returns the URLs of all remotes as git uses them.
func URLs(ctx context.Context, r *repo.Repo) ([]string, error) {
	settings, err := r.Git().Configured(ctx, `^(remote\..*\.(url|pushurl)|url\..*)$`, false)
	if err != nil {
		return nil, fmt.Errorf("read the remotes: %w", err)
	}
	var urls []string
	for _, s := range settings {
		if strings.HasPrefix(s.Key, "url.") {
			return rewrittenURLs(ctx, r)
		}
		if !slices.Contains(urls, s.Value) {
			urls = append(urls, s.Value)
		}
	}
	return urls, nil
}

// rewrittenURLs runs git, which applies url.*.insteadOf.
func rewrittenURLs(ctx context.Context, r *repo.Repo) ([]string, error) {
	lines, err := r.Git().Output(ctx, "remote", "-v")
	if err != nil {
		return nil, fmt.Errorf("read the remotes: %w", err)
	}
	var urls []string
	for line := range strings.Lines(string(lines)) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		url, _ := cutLast(rest, " (")
		if url != "" && !slices.Contains(urls, url) {
			urls = append(urls, url)
		}
	}
	return urls, nil
}

// cutLast returns the text before and after the last separator.
func cutLast(text, sep string) (before, after string) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):]
	}
	return text, ""
}

// remoteOf chooses the remote of a branch according to the settings.
func remoteOf(settings []git.Setting, branch string) string {
	upstream, only, remotes := "", "", map[string]bool{}
	for _, s := range settings {
		if s.Key == "branch."+branch+".remote" {
			upstream = s.Value // the last setting takes effect
			continue
		}
		name, ok := strings.CutPrefix(s.Key, "remote.")
		if name, of := strings.CutSuffix(name, ".url"); ok && of {
			only, remotes[name] = name, true
		}
	}
	switch {
	case remotes[upstream]:
		return upstream
	case remotes[defaultRemote]:
		return defaultRemote
	case len(remotes) == 1:
		return only
	}
	return ""
}
