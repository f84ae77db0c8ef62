// Package review keeps a person's review of the change of a task: comments on its lines, the files they have viewed, and the
// content they last looked at. The comments are drafts until all of them are sent to the agent, in one request for changes.
//
// A comment is anchored to lines of a tree. As the change goes on, Of finds these lines in the present content, and says whether
// the agent has changed them since.
package review

import (
	"context"
	"slices"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// These are the types of package comments.
type (
	// Side is the side of a change on which a commented line is.
	Side = comments.Side
	// Anchor names lines of a file in a tree.
	Anchor = comments.Anchor
	// Comment is a comment on lines of a change.
	Comment = comments.Comment
	// A DamagedError means that the file with the comments of a session cannot be read.
	DamagedError = comments.DamagedError
)

// The sides of a change.
const (
	New = comments.New // the content of the worktree
	Old = comments.Old // the start of the change: the line is removed
)

// State is the state of a comment.
type State string

// The states of comments. Lines that cannot be found any more count as changed.
const (
	Draft      State = "draft"      // not sent
	Outdated   State = "outdated"   // not sent, and its lines have changed
	Untouched  State = "untouched"  // sent, and its lines are the same
	Moved      State = "moved"      // as Untouched, at another place
	Addressed  State = "addressed"  // sent, and its lines have changed since
	Superseded State = "superseded" // sent, and its lines had changed before
)

// Placed is a comment with its place in the present content.
type Placed struct {
	Comment
	State  State  `json:"state"`
	Now    Anchor `json:"now,omitzero"`     // its present lines; zero if they have changed
	Commit string `json:"commit,omitempty"` // the commit that addressed it
	Answer string `json:"answer,omitempty"` // of the agent
}

// IsSent reports whether the agent has the comment.
func (p Placed) IsSent() bool { return p.State != Draft && p.State != Outdated }

// Review is a person's review of the change of a task.
type Review struct {
	Page     control.Page `json:"page"`
	Comments []Placed     `json:"comments"`
	Viewed   []string     `json:"viewed"`         // paths of files that were viewed as they are
	Last     string       `json:"last,omitempty"` // tree at the last look; empty at the first
	Turn     string       `json:"turn,omitempty"` // tree before the agent's last turn; empty in the first

	files []*gitdiff.File // of the page's patch
}

// Drafts returns the comments that were not sent.
func (r Review) Drafts() []Placed {
	return slices.DeleteFunc(slices.Clone(r.Comments), Placed.IsSent)
}

// Describe returns the state of a comment as text. It names the commit that addressed the comment, and the checks that ran on
// exactly the present content.
func (r Review) Describe(p Placed) string {
	switch {
	case p.State == Outdated:
		return "draft, its lines have changed"
	case p.State == Draft && p.Now.Place() != p.Place():
		return "draft, moved from " + p.Place()
	case p.State == Moved:
		return "untouched, moved from " + p.Place()
	case p.State == Superseded:
		return "sent after its lines had changed"
	case p.State != Addressed:
		return string(p.State)
	}
	text := string(p.State)
	if p.Commit != "" {
		text += " by " + p.Commit[:min(len(p.Commit), 10)]
	}
	for _, c := range r.Page.Checks {
		if c.Current && c.Check {
			text += "; " + c.Command + " " + terminal.Receipt(c.Receipt)
		}
	}
	return text
}

// Of returns the review of a task's newest session.
func Of(ctx context.Context, c *control.Controller, task string) (Review, error) {
	p, err := c.Page(ctx, task)
	if err != nil {
		return Review{}, err
	}
	s, err := comments.Load(p.View.Dir)
	if err != nil {
		return Review{}, err
	}
	t, err := turnsOf(p.View)
	if err != nil {
		return Review{}, err
	}
	r := Review{Page: p, Comments: []Placed{}, Last: s.Last(p.Diff.To), Turn: t.before, files: parse(p.Diff.Patch)}
	r.Viewed = viewed(s, r.files)
	place := placer{ctx: ctx, repo: c.Project.Repo, page: p, turns: t, diffs: map[[2]string]patches{}, files: r.files}
	for _, comment := range s.Comments {
		r.Comments = append(r.Comments, place.comment(comment))
	}
	return r, nil
}

// turns is the history of a session's comments.
type turns struct {
	sent    map[string]sending // by ID
	results []event.Result     // of steps
	before  string             // tree before the last turn that a person asked for
}

// sending is the moment at which a comment was sent.
type sending struct {
	results int    // number of results before
	tree    string // content that the person saw; empty if unknown
}

func turnsOf(v session.View) (turns, error) {
	events, err := session.Events(v.Dir, event.ReviewAnswered, event.StepCompleted)
	return turnsIn(events), err
}

func turnsIn(events []event.Event) turns {
	t := turns{sent: map[string]sending{}}
	for _, e := range events {
		var result event.Result
		var answer event.MergeDecision
		switch {
		case e.Type == event.StepCompleted && e.Decode(&result) == nil:
			t.results = append(t.results, result)
		case e.Type == event.ReviewAnswered && e.Decode(&answer) == nil && len(answer.Changes) > 0:
			t.before = answer.Tree
			for _, id := range answer.Comments {
				t.sent[id] = sending{len(t.results), answer.Tree}
			}
		}
	}
	return t
}

// after returns the results of steps since a comment was sent, and whether it was.
func (t turns) after(id string) ([]event.Result, bool) {
	s, ok := t.sent[id]
	if !ok {
		return nil, false
	}
	return t.results[s.results:], true
}
