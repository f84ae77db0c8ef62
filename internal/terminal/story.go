package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/runner/agentresult"
)

// JSONLine formats an event for --json.
func JSONLine(e event.Event) string {
	line, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	return string(SafeJSON(line)) + "\n"
}

// Lines formats an event for people. It returns "" for events that are not shown.
func Lines(e event.Event) string { return lines(e, "") }

// TaskLines is like Lines but begins each line with the task's ID.
func TaskLines(e event.Event) string { return lines(e, Printable(e.Task)+"  ") }

func lines(e event.Event, prefix string) string {
	text := story(e)
	if text == "" {
		return ""
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString(prefix + Printable(line) + "\n")
	}
	if e.Type == event.SpawnEnded && prefix == "" {
		b.WriteString("\n") // between agents
	}
	return b.String()
}

// story describes an event for people, or returns "".
func story(e event.Event) string {
	switch e.Type {
	case event.StepStarted:
		return StepName(e.Path) + ": started"
	case event.StepSkipped:
		return StepName(e.Path) + ": skipped"
	case event.GateDecided:
		if d := event.As[event.Decision](e); !d.Allowed {
			return "  ✗ refused " + d.Tool + ": " + d.Reason
		}
	case event.PermissionRequested:
		q := event.As[event.Approval](e)
		return fmt.Sprintf("  ? %s asks for approval %d: %s %s (coven approvals list)", q.Agent, q.N, q.Tool, q.Subject)
	case event.PermissionAnswered:
		a := event.As[event.ApprovalAnswer](e)
		return strings.TrimRight(fmt.Sprintf("  ? approval %d: %s %s", a.N, a.Answer, by(a.By)), " ")
	case event.CheckWaiting, event.CheckStarted, event.CheckRepeated, event.CheckOnBase, event.CheckEnded:
		return checkStory(e)
	case event.StepCompleted:
		return stepEnd(e)
	case event.ReviewGiven:
		return opinion(event.As[event.Opinion](e))
	case event.LandDone:
		l := event.As[event.Landing](e)
		return fmt.Sprintf("landed %.10s on %s", l.New, event.BranchName(l.Target)) + l.Together()
	case event.PullPublished, event.PullSeen, event.PullRerun, event.PullAnswered:
		return pullStory(e)
	case event.BatchStarted, event.BatchEnded:
		return batchStory(e)
	case event.RepositoryChanged:
		return repositoryChange(event.As[event.RepositoryChange](e))
	case event.Warning:
		return "warning: " + event.As[event.Text](e).Text
	case event.SpawnQueued, event.SpawnStarted, event.SpawnEnded, event.SpawnRejected:
		return spawnStory(e)
	}
	return agentStory(e)
}

// pullStory describes an event of a pull request.
func pullStory(e event.Event) string {
	switch e.Type {
	case event.PullPublished:
		pr := event.As[event.PullRequest](e)
		return fmt.Sprintf("  pushed %.10s to %s of %s: %s", pr.Tip, pr.Branch, pr.Remote, pr.URL)
	case event.PullSeen:
		return "  " + event.As[event.PullState](e).Detail
	case event.PullRerun:
		return "  runs the check " + event.As[event.PullCheck](e).Name + " again"
	}
	answer := event.As[event.PullAnswer](e)
	if answer.Refused != "" {
		return "  a comment is not answered: " + oneline.Of(answer.Refused)
	}
	return "  answered a comment: " + oneline.Of(answer.Text)
}

// checkStory describes an event of a check.
func checkStory(e event.Event) string {
	switch e.Type {
	case event.CheckWaiting:
		return "  " + event.As[event.Text](e).Text
	case event.CheckStarted:
		check := event.As[event.Check](e)
		if check.Base {
			return "  $ " + check.Text + "  (without the change)"
		}
		return "  $ " + check.Text
	case event.CheckOnBase:
		return "    " + onBase(event.As[event.BaseCheck](e))
	case event.CheckRepeated:
		return "    failed beside " + event.As[event.CheckRepeat](e).Beside + "; runs again, alone"
	}
	return "    " + Receipt(event.As[event.Receipt](e))
}

// onBase describes the result of a check without the change.
func onBase(c event.BaseCheck) string {
	switch {
	case c.Same:
		return "fails in the same way"
	case c.ExitCode == 0:
		return "passes"
	}
	return "fails in another way"
}

func by(person string) string {
	if person == "" {
		return ""
	}
	return "by " + person
}

// batchStory describes events of batches, in which changes of several tasks are checked together.
func batchStory(e event.Event) string {
	if e.Type == event.BatchStarted {
		return "  " + Together(event.As[event.Batch](e), e.Task)
	}
	end := event.As[event.BatchEnd](e)
	if end.Passed {
		return ""
	}
	return "  not together: " + end.Reason
}

// Together describes a batch from the perspective of one of its tasks.
func Together(b event.Batch, task string) string {
	others := slices.DeleteFunc(slices.Clone(b.Tasks), func(t string) bool { return t == task })
	return "checked together with " + strings.Join(others, ", ")
}

// repositoryChange describes an unexpected change of the repository.
func repositoryChange(c event.RepositoryChange) string {
	if c.Severity == event.SeverityNoted {
		return "  note: " + c.Summary()
	}
	return "warning: " + c.Summary() + c.Undo()
}

// agentStory describes an event of an agent.
func agentStory(e event.Event) string {
	if event.IsSpawned(e.Path) {
		return spawnedStory(e)
	}
	if leaf := event.LeafOf(e.Path); leaf != e.Path {
		return askedStory(e, e.Path[len(leaf)+1:])
	}
	switch e.Type {
	case event.AgentStarted:
		if agent := cmp.Or(event.As[event.AgentStart](e).Agent, "build"); agent != spawn.User {
			return running(agent, 0)
		}
	case event.AgentText:
		if text := agentresult.Without(event.As[event.Text](e).Text); text != "" {
			return indent(text, "  │ ")
		}
	case event.AgentTool:
		return "  → " + event.As[event.Tool](e).Summary
	case event.AgentToolFailed:
		return "  ✗ " + event.As[event.ToolFailure](e).Error
	case event.AgentMessage:
		m := event.As[event.Message](e)
		return indent(m.By+": "+m.Text, "  » ")
	case event.AgentRetry:
		return "  … " + event.As[event.Text](e).Text
	case event.SessionCompacted:
		return fmt.Sprintf("  … summarized %s: the context window is full", oneline.Count(event.As[event.Compacted](e).Messages, "older message"))
	case event.AgentStuck:
		return "  ✗ the agent repeats itself: stopped"
	case event.LimitMet:
		return "  … waiting (limit): " + Limit(event.As[event.Limit](e), e.Time)
	case event.LimitOver:
		return "  … the limit has ended: the agent continues"
	}
	return ""
}

// spawnedStory describes an event within a subagent. The session's files have more details.
func spawnedStory(e event.Event) string {
	if e.Type == event.LimitMet || e.Type == event.LimitOver {
		e.Path = event.LeafOf(e.Path)
		return agentStory(e)
	}
	return ""
}

// running announces an agent, with the number of waiting subagents.
func running(agent string, waiting int) string {
	text := "→ Running " + agent + " agent..."
	if waiting > 0 {
		text += fmt.Sprintf(" (%d queued)", waiting)
	}
	return text
}

// spawnStory describes an event about a subagent.
func spawnStory(e event.Event) string {
	switch e.Type {
	case event.SpawnQueued:
		if q := event.As[event.Spawn](e).Queue; q.Depth > 0 {
			return running(q.Current, q.Depth)
		}
	case event.SpawnStarted:
		s := event.As[event.SpawnStart](e)
		return running(s.Agent, s.Queue.Depth)
	case event.SpawnEnded:
		return spawnEnd(event.As[event.SpawnEnd](e))
	case event.SpawnRejected:
		r := event.As[event.SpawnRefusal](e)
		return "  ✗ refused to start " + r.Agent + ": " + oneline.Of(r.Reason)
	}
	return ""
}

// spawnEnd describes the end of a subagent.
func spawnEnd(s event.SpawnEnd) string {
	if s.Error != nil {
		severity := "error"
		if s.Status != event.StatusFailed {
			severity = "warning"
		}
		return fmt.Sprintf("  ✗ %s failed: %s: %s (%s)", s.Agent, s.Error.Type, oneline.Of(s.Error.Message), severity)
	}
	text := "  " + firstRunes(s.Summary)
	if s.ReflectionFailed {
		text = fmt.Sprintf("  ✗ %s did its work in part: no attempt passed its evaluation, attempt %d counts (warning)\n", s.Agent, s.Attempt) + text
	}
	return text
}

// askedStory describes an event of an agent that a reviewer or an arbiter uses.
// Its text is not shown.
func askedStory(e event.Event, judge string) string {
	switch e.Type {
	case event.AgentStarted:
		return "  → " + judge + ": started"
	case event.AgentTool:
		return "  → " + judge + ": " + event.As[event.Tool](e).Summary
	case event.AgentRetry:
		return "  … " + judge + ": " + event.As[event.Text](e).Text
	case event.LimitMet:
		return "  … waiting (limit): " + Limit(event.As[event.Limit](e), e.Time)
	case event.LimitOver:
		return "  … the limit has ended: the agent continues"
	}
	return ""
}

// opinion formats a reviewer's opinion without its findings.
func opinion(o event.Opinion) string {
	sign := "✓"
	if o.Verdict != reviewer.Pass {
		sign = "✗"
	}
	text := fmt.Sprintf("  %s %s: %s, %s", sign, o.Reviewer, o.Verdict, findings.Counts([]arbiter.Opinion{o.Opinion}))
	if o.Flagged {
		text += ` (verdict "pass" contradicts an error finding)`
	}
	if o.Summary != "" {
		text += ": " + firstRunes(o.Summary)
	}
	return text
}

// Limit describes the limit that a task waits for. now is the current time.
func Limit(l event.Limit, now time.Time) string {
	text := fmt.Sprintf("the account %s is limited (%s)", l.Account, l.Reason)
	if l.Until.IsZero() {
		text += ", the API did not report until when"
	} else {
		text += " until " + Clock(l.Until, now)
	}
	return text + "; continues automatically at " + Clock(l.At, now)
}

// Clock formats a time in the user's time zone. It includes the date unless that is today.
func Clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Age returns a duration in its largest unit: 45s, 3m, 2h, 5d.
func Age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// Receipt describes the result and the duration of a command, and how far it proves something about its tree.
func Receipt(r event.Receipt) string {
	text := outcome(r)
	if r.NotIsolated {
		text += ", not isolated: it could read the main checkout"
	}
	if r.Read != "" {
		text += ", files read outside the worktree: " + r.Read
	}
	return text
}

func outcome(r event.Receipt) string {
	took := r.Duration.Round(time.Millisecond)
	switch {
	case r.Reused != "":
		return "ok, not run: nothing that it read has changed since session " + r.Reused
	case r.ExitCode == 0 && r.FailedBeside != "":
		return fmt.Sprintf("ok (%s), passed alone, failed beside %s", took, r.FailedBeside)
	case r.ExitCode == 0:
		return fmt.Sprintf("ok (%s)", took)
	case r.FailedBeside != "":
		return fmt.Sprintf("failed with exit code %d (%s), alone and beside %s", r.ExitCode, took, r.FailedBeside)
	}
	return fmt.Sprintf("failed with exit code %d (%s)", r.ExitCode, took)
}

func stepEnd(e event.Event) string {
	r := event.As[event.Result](e)
	switch {
	case len(r.Opinions) > 0 && (r.OK || r.ErrorType == event.ErrorFindings):
		return reviewEnd(StepName(e.Path), r)
	case r.ErrorType == event.ErrorRevise:
		return StepName(e.Path) + ": " + r.Error
	case r.Decided:
		return StepName(e.Path) + ": " + Decision(r.Continue, r.LastRound, r.Output)
	case r.Agent == spawn.User && !r.OK: // the failure of the subagent was reported
		return StepName(e.Path) + ": failed"
	case r.Agent != "" && r.OK:
		return StepName(e.Path) + ": done\n  " + firstRunes(r.Summary)
	case r.Agent != "":
		severity := "error"
		if r.Tolerated {
			severity = "warning"
		}
		reason := strings.TrimPrefix(oneline.Of(r.Error), string(r.ErrorType)+": ") // some texts begin with their type
		return fmt.Sprintf("  ✗ %s failed: %s: %s (%s)", r.Agent, r.ErrorType, reason, severity)
	case r.OK:
		return StepName(e.Path) + ": done"
	}
	return stepFailure(e, r)
}

// stepFailure describes the failure of a step without an agent.
func stepFailure(e event.Event, r event.Result) string {
	if r.ErrorType == event.ErrorConflict && len(r.Files) > 0 {
		// The outcome of the task explains how to resolve it.
		return StepName(e.Path) + ": failed: conflict in " + strings.Join(r.Files, ", ")
	}
	text := StepName(e.Path) + ": failed: " + r.Error
	switch {
	case e.Path == "" || r.Output == "" || r.Output == r.Error:
	case r.ErrorType == event.ErrorPlugin:
		text = indent(firstLines(r.Output), "    | ") + "\n" + text
	case len(r.Receipts) > 0, event.IsSetup(e.Path):
		text = indent(LastLines(r.Output), "    | ") + "\n" + text
	}
	return text
}

// reviewEnd describes the result of a review.
func reviewEnd(step string, r event.Result) string {
	text := step + ": done"
	if !r.OK {
		text = step + ": " + r.Error
	}
	if r.Output != "" {
		text = indent(r.Output, "    ") + "\n" + text
	}
	return text
}

// Decision describes an arbiter's decision. last means that no further round is allowed.
func Decision(again, last bool, reason string) string {
	text := "no further round"
	switch {
	case again && last:
		text = "no round left"
	case again:
		text = "another round"
	}
	if reason != "" {
		text += ": " + oneline.Of(reason)
	}
	return text
}

// summaryRunes limits the displayed part of an agent's summary.
const summaryRunes = 100

// firstRunes returns the beginning of a text in one line.
func firstRunes(text string) string {
	runes := []rune(oneline.Of(text))
	return string(runes[:min(summaryRunes, len(runes))])
}

// fewLines limits the displayed lines of a failed check's output.
const fewLines = 10

// LastLines returns the last few lines of a text.
func LastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-fewLines):], "\n")
}

// firstLines returns the first few lines of a text, such as the stack of a plugin that
// crashed.
func firstLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:min(fewLines, len(lines))], "\n")
}

// StepName returns a step's path without the number of a first attempt.
func StepName(path string) string { return strings.TrimSuffix(path, "#1") }

func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+prefix)
}

// Printable makes one line of text safe for a terminal, so that the output of an agent cannot move the
// cursor or set titles or colors.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || isControl(r):
			return '�'
		}
		return r
	}, text)
}

// PrintableLines applies Printable to each line of a text.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
