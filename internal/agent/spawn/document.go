package spawn

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/gosimple/slug"
	"gopkg.in/yaml.v3"
)

// Contract tells a subagent how to report. It is part of the subagent's system prompt.
const Contract = "# How to report\n\nYour last message is your report to the agent that started you; it sees nothing else of your work. Begin it with a section \"## Summary\" of one or two sentences, and put the details below \"# Findings\". You cannot ask questions, and you cannot start agents. Do not commit: coven commits your work."

// Front is the frontmatter of a subagent's record.
type Front struct {
	SubagentOf   string     `yaml:"subagent_of"` // ID of the session
	AgentName    string     `yaml:"agent_name"`
	Status       string     `yaml:"status"` // running, completed, partial, failed, cancelled, interrupted
	SpawnedAt    string     `yaml:"spawned_at"`
	CompletedAt  string     `yaml:"completed_at,omitempty"`
	DurationMS   int64      `yaml:"duration_ms"`
	QueuedMS     int64      `yaml:"queued_ms"`
	Model        string     `yaml:"model"`
	ModelSource  string     `yaml:"model_source"`
	Tokens       int64      `yaml:"tokens"`
	TokensInput  int64      `yaml:"tokens_input"`
	TokensOutput int64      `yaml:"tokens_output"`
	CostUSD      float64    `yaml:"cost_usd"`
	Turns        int        `yaml:"turns,omitempty"` // turns of the model
	Depth        int        `yaml:"depth"`
	Permissions  []string   `yaml:"permissions,flow"`
	Inherited    bool       `yaml:"inherited"`
	TraceID      string     `yaml:"trace_id"`
	ParentChain  []string   `yaml:"parent_chain,flow"`
	Error        *FrontFail `yaml:"error,omitempty"`

	Attempt          int            `yaml:"attempt,omitempty"` // attempt of the report; 0 if the work was not evaluated
	ReflectionFailed bool           `yaml:"reflection_failed,omitempty"`
	Reflection       []FrontAttempt `yaml:"reflection,omitempty"`
}

// FrontAttempt is an attempt with its evaluation.
type FrontAttempt struct {
	Attempt  int     `yaml:"attempt"`
	Passed   bool    `yaml:"passed"`
	Score    float64 `yaml:"score"`
	Critique string  `yaml:"critique"`
	Error    string  `yaml:"error,omitempty"` // why it was not evaluated
}

// FrontFail is the error of a failed subagent.
type FrontFail struct {
	Type    string `yaml:"type"`
	Message string `yaml:"message"`
	Stack   string `yaml:"stack,omitempty"`
}

// Stamp formats a time for records: RFC 3339 with milliseconds, in UTC.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// Document returns a subagent's record as Markdown: the frontmatter, its task, the verdict if no
// attempt passed, and its report.
func Document(front Front, task, verdict, report string) (string, error) {
	head, err := yaml.Marshal(front)
	if err != nil {
		return "", fmt.Errorf("encode the record of %s: %w", front.AgentName, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\n%s---\n\nParent: [[session]]\n\n# Task\n\n%s\n", head, unlinked(strings.TrimSpace(task)))
	if front.Error != nil {
		fmt.Fprintf(&b, "\n# Error\n\n%s: %s\n\n%s\n", front.Error.Type, unlinked(front.Error.Message), unlinked(Attribution(front.TraceID, front.ParentChain, task)))
	}
	if verdict != "" {
		fmt.Fprintf(&b, "\n# Evaluation\n\n%s\n", unlinked(verdict))
	}
	if report = strings.TrimSpace(report); report != "" {
		b.WriteString("\n" + unlinked(Report(report)) + "\n")
	}
	return b.String(), nil
}

// Attribution identifies a failed agent: its trace, its ancestors, and the first line of its task.
func Attribution(trace string, chain []string, task string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	agent := ""
	if len(chain) > 0 {
		agent = chain[len(chain)-1]
	}
	return fmt.Sprintf("trace_id=%s chain=%s agent=%s while: %s", trace, strings.Join(chain, ">"), agent, first)
}

// Past is an attempt that does not count.
type Past struct {
	Attempt int
	Report  string
}

// Attempts returns the section of a record with the reports of attempts that do not count, as quotations.
func Attempts(all []Past) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# Other attempts\n")
	for _, p := range all {
		report := cmp.Or(strings.TrimSpace(p.Report), "(no report)")
		fmt.Fprintf(&b, "\n## Attempt %d\n\n> %s\n", p.Attempt, strings.ReplaceAll(unlinked(report), "\n", "\n> "))
	}
	return b.String()
}

// unlinked escapes links in the text of agents, because only coven may link to records.
func unlinked(text string) string { return strings.ReplaceAll(text, "[[", `\[\[`) }

// Report adds the missing standard sections to a subagent's final message.
func Report(text string) string {
	summary, hasSummary := section(text, "summary")
	_, hasFindings := section(text, "findings")
	switch {
	case hasSummary && summary != "" && hasFindings:
		return text
	case hasSummary && summary != "":
		return "# Findings\n\n" + text
	case hasFindings:
		return "## Summary\n\n" + firstParagraph(text) + "\n\n" + text
	}
	return "## Summary\n\n" + firstParagraph(text) + "\n\n# Findings\n\n" + text
}

// Summary returns the section "Summary" of a report, or else its first paragraph.
func Summary(text string) string {
	if summary, ok := section(text, "summary"); ok && summary != "" {
		return summary
	}
	return firstParagraph(text)
}

// section returns the text below a heading, up to the next heading of the same or a higher
// level. It ignores headings in fenced code.
func section(text, title string) (content string, found bool) {
	level, lines := 0, []string(nil)
	for _, l := range outline(text) {
		switch {
		case found && l.level > 0 && l.level <= level:
			return strings.TrimSpace(strings.Join(lines, "\n")), true
		case found:
			lines = append(lines, l.text)
		case l.level > 0 && strings.EqualFold(l.title, title):
			level, found = l.level, true
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n")), found
}

// outlined is a line of Markdown.
type outlined struct {
	text  string
	level int // level of a heading, 1 to 6; 0 for other lines
	title string
	code  bool // fenced
}

// outline splits a text into lines and finds its headings.
func outline(text string) []outlined {
	var all []outlined
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r")
		l := outlined{text: line, code: fence != ""}
		mark := fenceOf(line)
		switch {
		case fence == "" && mark != "":
			fence, l.code = mark, true
		case fence != "":
			if mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && strings.Trim(strings.TrimSpace(line), mark[:1]) == "" {
				fence = ""
			}
		default:
			l.level, l.title = heading(line)
		}
		all = append(all, l)
	}
	return all
}

// fenceOf returns the marks of a line that opens or closes fenced code, or "".
func fenceOf(line string) string {
	rest, ok := unindented(line)
	if !ok {
		return ""
	}
	for _, mark := range []string{"`", "~"} {
		if marks := rest[:len(rest)-len(strings.TrimLeft(rest, mark))]; len(marks) >= 3 {
			if mark == "`" && strings.Contains(rest[len(marks):], "`") {
				return "" // inline code
			}
			return marks
		}
	}
	return ""
}

// heading returns the level and title of a heading such as "## Title ##". The level is 0 for other lines.
func heading(line string) (level int, title string) {
	rest, ok := unindented(line)
	if !ok {
		return 0, ""
	}
	title = strings.TrimLeft(rest, "#")
	level = len(rest) - len(title)
	if level == 0 || level > 6 || title != "" && title[0] != ' ' && title[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(title)
	if bare := strings.TrimRight(title, "#"); bare == "" || strings.HasSuffix(bare, " ") {
		title = strings.TrimSpace(bare)
	}
	return level, strings.Trim(title, "*_: ")
}

// unindented removes up to three spaces of indentation. With more, the line is code, and ok is false.
func unindented(line string) (string, bool) {
	rest := strings.TrimLeft(line, " ")
	return rest, len(line)-len(rest) <= 3
}

// firstParagraph returns the first lines of a text that are not headings, up to an empty line.
func firstParagraph(text string) string {
	var lines []string
	for _, l := range outline(text) {
		blank := strings.TrimSpace(l.text) == "" || l.level > 0
		if blank && len(lines) > 0 {
			break
		}
		if !blank {
			lines = append(lines, l.text)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// slugWords limits the words of a task in the name of its record.
const slugWords = 4

// maxSlug limits the task's part in the name of a record, in bytes.
const maxSlug = 50

// ID returns a unique name for a subagent's record: agent-task, agent-task-2.
func ID(r Request, taken func(id string) bool) string {
	words := r.TaskID
	if words == "" {
		fields := strings.FieldsFunc(slug.Make(r.Task), func(c rune) bool { return c == '-' || c == '_' })
		words = strings.Join(fields[:min(slugWords, len(fields))], "-")
	}
	name := slug.Make(words)
	if len(name) > maxSlug {
		name = name[:maxSlug]
	}
	if name = strings.Trim(name, "-_"); name == "" {
		name = "task"
	}
	name = r.Agent + "-" + name
	id := name
	for n := 2; taken(id); n++ {
		id = fmt.Sprintf("%s-%d", name, n)
	}
	return id
}
