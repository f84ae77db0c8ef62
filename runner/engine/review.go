package engine

import (
	"context"
	"maps"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/plugins/arbiter"
)

// Judge is a reviewer or arbiter plugin, with its options.
type Judge struct {
	Name    string            `json:"name"` // what the record calls it
	Plugin  string            `json:"plugin"`
	Options map[string]string `json:"options,omitempty"`
}

// ReviewInput is the input of a review leaf.
type ReviewInput struct {
	Reviewers []Judge           `json:"reviewers"`
	Model     string            `json:"model"` // of agents that they ask
	Round     int               `json:"round"`
	Previous  []arbiter.Opinion `json:"previous,omitempty"` // of the round before
}

// reviewStep is a step that has the change reviewed.
type reviewStep struct {
	name string
	spec *grimoires.Review
	plan *grimoires.Plan
}

// Run calls the reviewers. A review with findings that must not land has failed.
func (r reviewStep) Run(ctx context.Context, s *State) (Outcome, error) {
	reviewers, err := renderJudges(r.plan, r.spec.Reviewers, s)
	if err != nil {
		return Outcome{}, err
	}
	review := called{r.name, Call{Review: &ReviewInput{Reviewers: reviewers, Model: r.plan.Model, Round: 1}}}
	return unreserved{review}.Run(ctx, s)
}

// renderJudges returns the plugins of a step with their prompts rendered.
func renderJudges(plan *grimoires.Plan, judges []grimoires.Reviewer, s *State) ([]Judge, error) {
	var all []Judge
	for _, j := range judges {
		given, err := renderJudge(plan, j, s)
		if err != nil {
			return nil, err
		}
		all = append(all, given)
	}
	return all, nil
}

func renderJudge(plan *grimoires.Plan, j grimoires.Reviewer, s *State) (Judge, error) {
	given := Judge{Name: j.Name, Plugin: j.Plugin, Options: maps.Clone(j.With)}
	if j.Prompt == "" {
		return given, nil
	}
	prompt, err := plan.RenderPrompt(j.Prompt, s.Data(nil))
	if err != nil {
		return given, &templateError{err}
	}
	if given.Options == nil {
		given.Options = map[string]string{}
	}
	given.Options["prompt"] = prompt
	return given, nil
}
