package engine

import (
	"context"
	"maps"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/plugins/arbiter"
)

// Reviewer is a reviewer or arbiter plugin with its options.
type Reviewer struct {
	Name    string            `json:"name"` // name in the record
	Plugin  string            `json:"plugin"`
	Options map[string]string `json:"options,omitempty"`
}

// ReviewInput is the input of a review leaf.
type ReviewInput struct {
	Reviewers []Reviewer        `json:"reviewers"`
	Model     string            `json:"model"` // of agents that the plugins ask for
	Round     int               `json:"round"`
	Previous  []arbiter.Opinion `json:"previous,omitempty"` // of the previous round
}

// reviewStep is a step that reviews the change.
type reviewStep struct {
	name string
	spec *grimoires.Review
	plan *grimoires.Plan
}

// Run calls the reviewers. The step fails if one of them does not pass the change.
func (r reviewStep) Run(ctx context.Context, s *State) (Outcome, error) {
	reviewers, err := renderReviewers(r.plan, r.spec.Reviewers, s)
	if err != nil {
		return Outcome{}, err
	}
	review := callStep{r.name, Call{Review: &ReviewInput{Reviewers: reviewers, Model: r.plan.Model, Round: 1}}}
	return unreserved{review}.Run(ctx, s)
}

// renderReviewers returns the plugins of a step with rendered prompts.
func renderReviewers(plan *grimoires.Plan, judges []grimoires.Reviewer, s *State) ([]Reviewer, error) {
	var all []Reviewer
	for _, j := range judges {
		given, err := renderReviewer(plan, j, s)
		if err != nil {
			return nil, err
		}
		all = append(all, given)
	}
	return all, nil
}

func renderReviewer(plan *grimoires.Plan, j grimoires.Reviewer, s *State) (Reviewer, error) {
	given := Reviewer{Name: j.Name, Plugin: j.Plugin, Options: maps.Clone(j.With)}
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
