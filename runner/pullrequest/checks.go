package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// isFlaky reports whether a check has passed on a commit on which it was seen to fail. Another check can have the same name.
func (l *Landing) isFlaky(p published, check forge.Check) bool {
	failed := func(c event.PullCheck) bool {
		another := c.ID != "" && c.ID != check.ID && slices.ContainsFunc(p.Checks, func(now forge.Check) bool { return now.ID == c.ID })
		return c.Name == check.Name && c.Head == p.Head && c.Status == string(forge.Failed) && !another
	}
	return check.Status == forge.Passed && slices.ContainsFunc(l.Journal.All(event.PullSeen), func(e event.Event) bool {
		return slices.ContainsFunc(event.As[event.PullState](e).Checks, failed)
	})
}

// failedCheck returns the result for a check that has failed. Its first failure on a commit runs it again, because coven's own checks
// have passed there.
func (l *Landing) failedCheck(ctx context.Context, p published) (event.Result, error) {
	failed := p.failed()
	if len(failed) == 0 {
		return event.Result{}, nil
	}
	if again, err := l.rerun(ctx, p, failed); err != nil {
		return event.Result{}, err
	} else if len(again) > 0 {
		text := " failed and runs again, to see whether it is flaky"
		if len(again) > 1 {
			text = " failed and run again, to see whether they are flaky"
		}
		return event.Result{}, &Wait{Reason: event.WaitCI, Next: "resume", Detail: pullName(p.pr) + ": " + strings.Join(again, ", ") + text}
	}
	if p.pending() > 0 {
		return event.Result{}, nil // others may fail, too, and are fixed together
	}
	result := event.Result{ErrorType: event.ErrorCI}
	for _, check := range failed {
		log, err := l.Host.Log(ctx, check)
		if err != nil {
			log = "Its log could not be read: " + oneline.Of(err.Error())
		}
		result.Output += fmt.Sprintf("%s failed on the host of the pull request. %s\n%s\n", check.Name, check.Summary, strings.TrimSpace(log))
	}
	since, err := l.sinceGreen(ctx, p)
	result.Output += since
	result.Error = fmt.Sprintf("%s: %s failed on %s", pullName(p.pr), names(failed), short(p.Head))
	return result, err
}

// ranAgain reports whether a check has run again on this commit. The second run may have another ID, and another check the same name.
func (l *Landing) ranAgain(p published, check forge.Check) bool {
	runs, checks := 0, 0
	for _, e := range l.Journal.All(event.PullRerun) {
		switch run := event.As[event.PullCheck](e); {
		case run.Head != p.Head:
		case run.ID != "" && run.ID == check.ID: // also if its name has changed, because another check got the same one
			return true
		case run.Name == check.Name:
			runs++
		}
	}
	for _, other := range p.Checks {
		if other.Name == check.Name {
			checks++
		}
	}
	return runs >= checks
}

// rerun runs failed checks again that have not run again on this commit, and returns their names.
func (l *Landing) rerun(ctx context.Context, p published, failed []forge.Check) (again []string, err error) {
	for _, check := range failed {
		if l.ranAgain(p, check) {
			continue
		}
		rerun := event.PullCheck{ID: check.ID, Name: check.Name, Head: p.Head, Status: string(forge.Failed)}
		if err := l.emit(event.PullRerun, rerun); err != nil { // first: it must not run again and again
			return again, err
		}
		switch err := l.Host.Rerun(ctx, check); {
		case err == nil:
			again = append(again, oneline.Of(check.Name))
		case !errors.Is(err, pluginerr.ErrUnsupported):
			if err := l.warn(check.Name + " does not run again: " + oneline.Of(err.Error())); err != nil {
				return again, err
			}
		}
	}
	return again, nil
}

// sinceGreen names the files that have changed since the last commit on which all checks passed on the host.
func (l *Landing) sinceGreen(ctx context.Context, p published) (string, error) {
	green := ""
	for _, e := range l.Journal.All(event.PullSeen) {
		seen := event.As[event.PullState](e)
		if len(seen.Checks) > 0 && !slices.ContainsFunc(seen.Checks, func(c event.PullCheck) bool { return c.Status != string(forge.Passed) }) {
			green = seen.Head
		}
	}
	if green == "" || green == p.Head {
		return "", nil
	}
	files, err := l.Work.Changed(ctx, green, p.Head)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("All checks passed on %s. Changed since then: %s\n", short(green), oneline.List(files)), nil
}
