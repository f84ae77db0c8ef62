package runner

import (
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
)

// revision returns the result of a leaf at which a person asked for changes, or at the beginning of whose loop's iteration. ok
// reports whether the last answer asked for changes. The result contains the requested changes and the open error findings of
// reviewers.
func (x *Executor) revision(path string) (result event.Result, ok bool, err error) {
	by, asked, err := x.evidence().Requested(path)
	if err != nil || len(asked) == 0 {
		return result, false, err
	}
	open, err := x.Journal.openFindings()
	if err != nil {
		return result, false, err
	}
	return event.Result{
		Error: by + " asked for changes", ErrorType: event.ErrorRevise,
		Opinions: append([]event.Opinion{opinionOf(by, asked)}, opinionsOf(open)...),
	}, true, nil
}

// opinionsOf groups open findings by reviewer, in the order of first appearance.
func opinionsOf(open []event.Finding) []event.Opinion {
	var names []string
	found := map[string][]reviewer.Finding{}
	for _, f := range open {
		if found[f.Reviewer] == nil {
			names = append(names, f.Reviewer)
		}
		found[f.Reviewer] = append(found[f.Reviewer], f.Finding)
	}
	var all []event.Opinion
	for _, name := range names {
		all = append(all, opinionOf(name, found[name]))
	}
	return all
}

func opinionOf(name string, found []reviewer.Finding) event.Opinion {
	return event.Opinion{Opinion: arbiter.Opinion{Reviewer: name, Verdict: reviewer.Fail, Findings: found}}
}
