package continuation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/text/oneline"
)

const (
	// replacedText follows the task in the first message of a conversation that replaces another one.
	replacedText  = "# What happened before\n\nAn earlier agent worked on this task. Its conversation cannot be continued. Nothing it did was undone: look at what is done, with git log and git diff, before you continue."
	requestedText = "# What to do now\n\n"
	unchangedText = "# What happened before\n\nAn earlier agent worked on this task. It reported success, but it had changed no file, so its work was not accepted:\n\n%s\n\nDo the task. If there is nothing to change, report failure and say why."
	failedText    = "# What happened before\n\nAn earlier agent worked on this task and reported failure: %s. Nothing it did was undone."
)

// maxFiles limits the files that a message names.
const maxFiles = 50

// Leaf is an agent leaf whose conversation is replaced.
type Leaf struct {
	Work
	Prompt    string // of the leaf
	Continues string // path of the leaf whose conversation the leaf continues; may be empty
	Continued bool   // the leaf continues another conversation
	Open      []event.Finding
}

// IsReplacement reports whether a message began a conversation that replaced another one.
func IsReplacement(message string) bool { return strings.Contains(message, replacedText) }

// Replaced returns the first message of a conversation that replaces the one of a leaf: the task, the last calls, the end of
// the last attempt, the changed files, the open findings, the comments of people, and the request of the leaf if it continued
// an earlier conversation.
func (l Leaf) Replaced() string {
	parts := []string{strings.TrimRight(l.firstPrompt(), "\n"), l.describe(replacedText, "Its", nil)}
	if why := oneline.Of(l.lastResult().Error); why != "" {
		parts = append(parts, "The last attempt ended with: "+why)
	}
	if files := l.changedFiles(); len(files) > 0 {
		parts = append(parts, "It has changed these files: "+strings.Join(files, ", "))
	}
	if len(l.Open) > 0 {
		text := "These findings of reviewers are open:\n"
		for _, f := range l.Open {
			text += "\n- " + strings.TrimSpace(f.Where()+" "+oneline.Of(f.Message))
		}
		parts = append(parts, text)
	}
	if comments := l.comments(); len(comments) > 0 {
		parts = append(parts, "People have asked for these changes:\n\n- "+strings.Join(comments, "\n- "))
	}
	parts = append(parts, Work{Journal: l.Journal, Path: l.Continues}.Undelivered(nil)...)
	if l.Continued {
		parts = append(parts, requestedText+l.Prompt)
	}
	return strings.Join(append(parts, l.Undelivered(nil)...), "\n\n")
}

// Repeated returns the prompt of a leaf that runs again in a new conversation. It tells the agent if an earlier one changed
// nothing, or reported failure.
func (l Leaf) Repeated() string {
	last := l.lastResult()
	switch last.ErrorType {
	case event.ErrorNoChanges:
		return strings.TrimRight(l.Prompt, "\n") + "\n\n" + fmt.Sprintf(unchangedText, quoted(last.Output))
	case event.ErrorAgent:
		return strings.TrimRight(l.Prompt, "\n") + "\n\n" + fmt.Sprintf(failedText, oneline.Of(strings.TrimPrefix(last.Error, "the agent reported failure: ")))
	}
	return l.Prompt
}

// quoted returns a text as a quotation, at most maxReport bytes of it.
func quoted(text string) string {
	if len(text) > maxReport {
		text = strings.ToValidUTF8(text[:maxReport], "") + "…"
	}
	return "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
}

// lastResult returns the result of the last attempt of the leaf, or the zero value.
func (l Leaf) lastResult() event.Result {
	step, _, _ := strings.Cut(l.Path, "#")
	for _, e := range slices.Backward(l.Journal.All(event.StepCompleted)) {
		if other, _, _ := strings.Cut(e.Path, "#"); other == step {
			return event.As[event.Result](e)
		}
	}
	return event.Result{}
}

// firstPrompt returns the prompt that began the conversation of the leaf: its own, or that of the leaf that it continues.
func (l Leaf) firstPrompt() string {
	if !l.Continued {
		return l.Prompt
	}
	starts := l.Journal.All(event.AgentStarted) // a fork continues the conversation of another session
	if l.Continues != "" {
		starts = append(l.Journal.At(l.Continues, event.AgentStarted), starts...)
	}
	for _, e := range starts {
		if start := event.As[event.AgentStart](e); !start.Resumed {
			return start.Prompt
		}
	}
	return l.Prompt
}

// changedFiles returns the files that the steps of the session have changed, at most maxFiles.
func (l Leaf) changedFiles() []string {
	var files []string
	for _, e := range l.Journal.All(event.StepCompleted) {
		files = append(files, event.As[event.Result](e).Files...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if more := len(files) - maxFiles; more > 0 {
		files = append(files[:maxFiles], fmt.Sprintf("and %d more", more))
	}
	return files
}

// comments returns the changes that people have asked for, without those in the prompt of the leaf.
func (l Leaf) comments() (lines []string) {
	for _, e := range l.Journal.All(event.ReviewAnswered) {
		for _, f := range event.As[event.MergeDecision](e).Changes {
			if !strings.Contains(l.Prompt, f.Message) {
				lines = append(lines, strings.TrimSpace(f.Where()+" "+oneline.Of(f.Message)))
			}
		}
	}
	return lines
}

// Superseded describes why the conversation of a leaf is not continued: a person has asked for a new one, or for another
// provider, since it began. Otherwise it returns "".
func (l Leaf) Superseded() string {
	var asked event.Event
	for _, e := range l.Journal.All(event.SessionResumed) {
		if r := event.As[event.Resumed](e); r.Fresh || r.Provider != "" {
			asked = e
		}
	}
	if asked.Seq == 0 {
		return ""
	}
	began := false
	for _, e := range l.Journal.All(event.AgentStarted) {
		if e.Path != l.Path && e.Path != l.Continues {
			continue
		}
		if e.Seq > asked.Seq {
			return "" // it has been replaced
		}
		began = true
	}
	if !began {
		return ""
	}
	if name := event.As[event.Resumed](asked).Provider; name != "" {
		return "a new conversation with " + name + " takes over in the same worktree"
	}
	return "a new conversation takes over in the same worktree, as you asked"
}
