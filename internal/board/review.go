package board

import (
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
)

// Review returns the review of a task's change, and the files of a part of it. If last is not empty, it is the tree of the last
// look: a face that is open goes on to compare with the same one.
func (r *Repository) Review(task string, extent review.Extent, last string) (review.Review, []review.File, error) {
	c := &control.Controller{Project: r.Project}
	found, err := review.Of(r.Context, c, task)
	if err != nil {
		return found, nil, err
	}
	if last != "" {
		found.Last = last
	}
	files, err := review.Files(r.Context, c, found, extent)
	return found, files, err
}

// Viewed records whether the person has viewed a file of a change as it is.
func (r *Repository) Viewed(of review.Review, path string, viewed bool) error {
	return review.MarkViewed(of, path, viewed)
}

// Looked records that the person has looked at the present content of a change.
func (r *Repository) Looked(of review.Review) error { return review.Look(of) }
