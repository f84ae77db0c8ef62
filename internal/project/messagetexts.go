package project

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/tmpl"
)

// SubjectOf returns the subject of the commits of a task: its title, unless a template is configured.
func SubjectOf(l config.Landing, t grimoires.Task) (string, error) {
	if l.Message == "" {
		return t.Title, nil
	}
	return rendered("landing.message", l.Message, t)
}

// TrailersOf returns the configured trailers of the commits of a task. It omits those without a value.
func TrailersOf(l config.Landing, t grimoires.Task) (trailers []string, err error) {
	for _, text := range l.Trailers {
		trailer, err := rendered("landing.trailers", text, t)
		if err != nil {
			return nil, err
		}
		if _, value, _ := strings.Cut(trailer, ":"); strings.TrimSpace(value) != "" {
			trailers = append(trailers, trailer)
		}
	}
	return trailers, nil
}

// rendered renders a template with the fields config.MessageFields.
func rendered(name, text string, t grimoires.Task) (string, error) {
	out, err := tmpl.Text(name, text, map[string]any{
		"id": t.ID, "title": oneline.Of(t.Title), "type": conventionalType(t), "issue_type": t.Type,
		"labels": strings.Join(t.Labels, ", "), "parent": t.Parent, "external_ref": t.ExternalRef,
	})
	if err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return oneline.Of(out), nil
}

// conventionalTypes returns the usual types of conventional commits.
func conventionalTypes() []string {
	return []string{"feat", "fix", "docs", "chore", "refactor", "test", "perf", "build", "ci", "style", "revert"}
}

// conventionalType returns the type of a task's change for conventional commits: a label such as docs or type:docs, or the
// type that belongs to the type of the task.
func conventionalType(t grimoires.Task) string {
	for _, label := range t.Labels {
		if label = strings.TrimPrefix(label, "type:"); slices.Contains(conventionalTypes(), label) {
			return label
		}
	}
	switch t.Type {
	case "bug":
		return "fix"
	case "chore":
		return "chore"
	}
	if slices.Contains(conventionalTypes(), t.Type) {
		return t.Type
	}
	return "feat"
}
