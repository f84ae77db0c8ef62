package pullrequest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/forge"
)

// published is the state of a published pull request, in words.
type published struct {
	pr event.PullRequest
	State
	queued int64 // see Landing.queued
}

// pullName returns the name of a pull request for people.
func pullName(pr event.PullRequest) string { return fmt.Sprintf("pull request #%d", pr.Number) }

// short returns the beginning of an object ID.
func short(id string) string { return id[:min(len(id), 10)] }

// branchDeleted describes a pull request whose branch was deleted.
func branchDeleted(pr event.PullRequest) string {
	return fmt.Sprintf("branch %s of %s was deleted on %s", pr.Branch, pullName(pr), pr.Remote)
}

// relevant reports whether a check matters for the merge: if the host requires none, all do.
func (p published) relevant(check forge.Check) bool {
	for _, other := range p.Checks {
		if other.Required {
			return check.Required
		}
	}
	return true
}

// failed returns the checks that have failed and matter.
func (p published) failed() (failed []forge.Check) {
	for _, check := range p.Checks {
		if check.Status == forge.Failed && p.relevant(check) {
			failed = append(failed, check)
		}
	}
	return failed
}

// pending returns the number of the checks that have not ended and matter.
func (p published) pending() (n int) {
	for _, check := range p.Checks {
		if check.Status == forge.Pending && p.relevant(check) {
			n++
		}
	}
	return n
}

// detail describes the state in one line.
func (p published) detail() string {
	name := pullName(p.pr)
	by := ""
	if p.By != "" {
		by = " by " + oneline.Of(p.By)
	}
	switch {
	case p.isMergedBelow() && p.Orphaned != "":
		return fmt.Sprintf("%s was merged%s into %s, the branch of %s, whose session is %s", name, by, p.pr.Base, p.Stacked, p.Orphaned)
	case p.isMergedBelow():
		return fmt.Sprintf("%s was merged%s into %s, the branch of %s, which must land first", name, by, p.pr.Base, p.Stacked)
	case p.State.State == forge.Merged:
		return name + " was merged" + by + " as " + short(p.Commit)
	case p.State.State == forge.Gone:
		return name + " no longer exists"
	case p.HeadGone:
		return branchDeleted(p.pr)
	case p.State.State == forge.Closed:
		return name + " was closed" + by + " without a merge"
	case p.Orphaned != "":
		return fmt.Sprintf("%s is stacked on %s, whose session is %s", name, p.Stacked, p.Orphaned)
	}
	return p.wait().Detail
}

// isOver reports whether the change cannot land any more with this pull request. It is not for one that was merged into the target.
func (p published) isOver() bool {
	return p.State.State == forge.Closed || p.State.State == forge.Gone || p.HeadGone || p.Orphaned != ""
}

// isMergedBelow reports whether it was merged into the branch of the task on which it is stacked, and not into the target yet.
func (p published) isMergedBelow() bool {
	return p.State.State == forge.Merged && p.Stacked != "" && (p.Target == "" || p.Target == p.pr.Target)
}

// afterClosing returns the command after the pull request was closed.
func (p published) afterClosing() string {
	switch {
	case p.HeadGone && p.State.State != forge.Merged:
		return "resume" // publishes it again
	case p.Orphaned != "":
		return "reject --reason 'stacked on a change that did not land'"
	}
	return "reject --reason 'closed on the host'"
}

// wait returns the wait for the next change of the state of an open pull request.
func (p published) wait() *Wait {
	w := &Wait{Reason: event.WaitMerge, Next: "resume"}
	text := pullName(p.pr)
	switch running := p.pending(); {
	case p.State.State == forge.Queued && p.Queue > 0:
		text += fmt.Sprintf(" is in the merge queue, position %d", p.Queue)
	case p.State.State == forge.Queued:
		text += " is in the merge queue"
	case running > 0:
		w.Reason = event.WaitCI
		text += fmt.Sprintf(": %d of %d checks have not ended: %s", running, len(p.Checks), p.pendingNames())
	case len(p.failed()) > 0:
		text += ": " + names(p.failed()) + " failed"
	case p.Mergeable == forge.Conflict:
		text += " conflicts with " + p.pr.Base + ", according to the host"
	case p.Changes:
		text += ": a reviewer requests changes"
	case p.Draft:
		text += " is a draft"
	case p.Stacked != "":
		text += fmt.Sprintf(" is stacked on %s, which must land first", p.Stacked)
	case p.Mergeable == forge.Clean && p.queued > 0:
		text, w.Next = text+" was removed from the merge queue", "approve"
	case p.Mergeable == forge.Clean:
		text, w.Next = text+" can be merged", "approve"
	case p.Needs != "":
		text += " needs " + oneline.Of(p.Needs)
	default:
		text += " is open"
	}
	if n := len(p.Others); n > 0 {
		text += "; " + oneline.Count(n, "comment") + " by people who may not write to the repository: coven review --drafts"
	}
	w.Detail = text + " (" + p.pr.URL + ")"
	return w
}

func (p published) pendingNames() string {
	return names(slices.DeleteFunc(slices.Clone(p.Checks), func(c forge.Check) bool { return c.Status != forge.Pending || !p.relevant(c) }))
}

// names lists the names of checks.
func names(checks []forge.Check) string {
	var all []string
	for _, check := range checks {
		all = append(all, oneline.Of(check.Name))
	}
	const most = 3
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}
