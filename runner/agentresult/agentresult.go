// Package agentresult reads how an agent reports its work: the last fenced JSON block of its final message.
package agentresult

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result is the report.
type Result struct {
	Success bool           `json:"success"`
	Summary string         `json:"summary"`
	Outputs map[string]any `json:"outputs"`
	Error   string         `json:"error"`
}

// Contract is the instruction to report a result. It is part of every agent's system text.
const Contract = "End your final message with one fenced JSON block that reports the result:\n\n" +
	"```json\n{\"success\": true, \"summary\": \"what you did, in one or two sentences\", \"outputs\": {}, \"error\": \"\"}\n```\n\n" +
	"If the task is not done, set success to false and give the reason in error. Do not commit: coven commits your work."

// Reason returns the reason for a failure as one line.
func (c Result) Reason() string {
	for _, text := range []string{c.Error, c.Summary, "no reason given"} {
		if text != "" {
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return ""
}

// Parse parses the result in an agent's final message. found is false if the message does not
// end with a result block. A malformed block is an error, unless it contains "success": false.
func Parse(text string) (c Result, found bool, err error) {
	block, ok := lastFence(text)
	if !ok {
		return Result{}, false, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(block), &keys); err != nil {
		return Result{}, false, fmt.Errorf("%w", err)
	}
	if _, ok := keys["success"]; !ok {
		return Result{}, false, nil // JSON for another purpose
	}
	if err := json.Unmarshal([]byte(block), &c); err != nil {
		if string(keys["success"]) == "false" { // the other fields may be malformed
			return c, true, nil
		}
		return Result{}, false, fmt.Errorf("%w", err)
	}
	return c, true, nil
}

// Without removes the result block from an agent's message, for display.
func Without(text string) string {
	if _, found, err := Parse(text); err != nil || !found {
		return text
	}
	start := strings.LastIndex(strings.TrimRight(text[:strings.LastIndex(text, "```")], "\n"), "```")
	return strings.TrimSpace(text[:start])
}

// lastFence returns the content of the last fenced block. ok is false unless the block is marked as JSON,
// or is unmarked and looks like a JSON object.
func lastFence(text string) (string, bool) {
	lines := strings.Split(text, "\n")
	end := -1
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if !strings.HasPrefix(line, "```") {
			continue
		}
		if end < 0 {
			if line != "```" {
				return "", false // an unclosed block
			}
			end = i
			continue
		}
		inside := strings.TrimSpace(strings.Join(lines[i+1:end], "\n"))
		language := strings.TrimPrefix(line, "```")
		return inside, language == "json" || language == "" && strings.HasPrefix(inside, "{")
	}
	return "", false
}

// SummaryOf returns the text below a heading "Summary", or the first paragraph.
func SummaryOf(text string) string {
	section, in := []string{}, false
	for line := range strings.Lines(text) {
		heading, isHeading := strings.CutPrefix(strings.TrimSpace(line), "## ")
		if in && isHeading {
			break
		}
		if in {
			section = append(section, line)
		}
		in = in || isHeading && strings.EqualFold(strings.TrimSpace(heading), "summary")
	}
	if summary := strings.Join(strings.Fields(strings.Join(section, " ")), " "); summary != "" {
		return summary
	}
	return firstParagraph(text)
}

// firstParagraph returns the first paragraph of a text as one line.
func firstParagraph(text string) string {
	for p := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if p = strings.Join(strings.Fields(p), " "); p != "" {
			return p
		}
	}
	return ""
}
