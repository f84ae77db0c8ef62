package pullrequest

import (
	"context"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
)

// maxComments limits the comments that an agent gets at once.
const maxComments = 50

// comments returns the result that asks the agent for the changes that comments on the pull request request. ok is false if there are none.
func (l *Landing) comments(state State) (result event.Result, ok bool, err error) {
	answer := event.MergeDecision{}
	var authors []string
	known := l.sentComments()
	for _, comment := range state.Comments {
		if known[comment.Remote] {
			continue
		}
		if len(answer.Changes) == maxComments {
			break // the others follow when these are answered
		}
		answer.Changes = append(answer.Changes, comment.Finding)
		answer.Remote = append(answer.Remote, comment.Remote)
		answer.Comments = append(answer.Comments, comment.ID)
		if !slices.Contains(authors, comment.By) {
			authors = append(authors, comment.By)
		}
	}
	if len(answer.Changes) == 0 {
		return result, false, nil
	}
	answer.By = strings.Join(authors, ", ")
	if err := l.emit(event.ReviewAnswered, answer); err != nil {
		return result, false, err
	}
	return l.Work.Revision()
}

// sentComments returns the IDs of the comments on the host that the agent has got.
func (l *Landing) sentComments() map[string]bool {
	known := map[string]bool{}
	for _, e := range l.Journal.All(event.ReviewAnswered) {
		for _, id := range event.As[event.MergeDecision](e).Remote {
			known[id] = true
		}
	}
	return known
}

// answerComments answers the comments that the agent has got, once each. When a merge step runs, it has worked on them.
func (l *Landing) answerComments(ctx context.Context, pr event.PullRequest) error {
	answered := map[string]bool{"": true}
	for _, e := range l.Journal.All(event.PullAnswered) {
		answered[event.As[event.PullAnswer](e).Comment] = true
	}
	var replied []string
	for _, e := range l.Journal.All(event.ReviewAnswered) {
		decision := event.As[event.MergeDecision](e)
		for i, id := range decision.Remote {
			if answered[id] {
				continue
			}
			if replied == nil { // coven may have been killed before it recorded a reply
				state, err := l.Host.State(ctx, pr)
				if err != nil {
					return err
				}
				replied = append([]string{""}, state.Replied...)
			}
			answer := event.PullAnswer{Comment: id, Text: l.answerTo(e, decision, i, pr)}
			if done, err := l.reply(ctx, pr, &answer, slices.Contains(replied, id)); err != nil || !done {
				return err // the others would wait for the same host
			}
		}
	}
	return nil
}

// reply answers a comment, unless that is done, and records it. It returns false if the host fails for now.
func (l *Landing) reply(ctx context.Context, pr event.PullRequest, answer *event.PullAnswer, done bool) (bool, error) {
	if !done {
		var err error
		if answer.Refused, err = l.Host.Reply(ctx, pr, answer.Comment, answer.Text); err != nil {
			if text := "a comment on " + pullName(pr) + " is not answered: " + oneline.Of(err.Error()); !l.warned(text) {
				return false, l.warn(text)
			}
			return false, nil
		}
	}
	return true, l.emit(event.PullAnswered, answer)
}

// answerTo returns the answer to the i-th comment of a decision: the agent's own, or the summary of its work.
func (l *Landing) answerTo(asked event.Event, decision event.MergeDecision, i int, pr event.PullRequest) string {
	text := ""
	for _, e := range l.Journal.All(event.StepCompleted) {
		result := event.As[event.Result](e)
		if e.Seq < asked.Seq || !event.IsRevise(e.Path) {
			continue
		}
		answers, _ := result.Outputs["answers"].(map[string]any)
		if own, ok := answers[decision.Comments[i]].(string); ok {
			text = own
		} else if text == "" {
			text = result.Summary
		}
	}
	return strings.TrimSpace(text + "\n\nThe branch is now at " + short(pr.Tip) + ".")
}
