package grimoires

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/tmpl"
)

// PromptPart is a part of the first message to an agent.
type PromptPart struct {
	Name    string
	Size    int    // bytes
	Setting string // how to make it smaller
}

// LongPrompt is the number of bytes from which the parts of a prompt are measured.
const LongPrompt = 64 << 10

// minPart is the number of bytes from which a value is a part.
const minPart = 1 << 10

// maxNamed limits the parts that LargestParts names.
const maxNamed = 3

// LargestParts describes the largest parts of the first message to an agent. It returns "" if they have less than LongPrompt
// bytes together.
func LargestParts(parts []PromptPart) string {
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b PromptPart) int { return b.Size - a.Size })
	total := 0
	var named []string
	for i, p := range parts {
		total += p.Size
		if i < maxNamed {
			named = append(named, fmt.Sprintf("%s, %d KiB (%s)", p.Name, (p.Size+1023)>>10, p.Setting))
		}
	}
	if total < LongPrompt {
		return ""
	}
	return fmt.Sprintf("the agent is told %d KiB before it begins, most of it: %s", total>>10, strings.Join(named, "; "))
}

// PromptParts returns the parts of a long prompt, as RenderPrompt rendered it: its values of more than 1 KiB, and its own text.
// It returns nil if the prompt has less than LongPrompt bytes.
func (p *Plan) PromptParts(nameOrInline string, data map[string]any, prompt string) (parts []PromptPart) {
	if len(prompt) < LongPrompt {
		return nil
	}
	rest := len(prompt)
	for path, text := range longTexts("", data) {
		without, err := p.RenderPrompt(nameOrInline, withoutText(data, text).(map[string]any))
		if size := len(prompt) - len(without); err == nil && size > 0 {
			parts = append(parts, partAt(path, size))
			rest -= size
		}
	}
	own := PromptPart{"the text of the prompt", rest, "shorten it in the grimoire"}
	if !isInline(nameOrInline) {
		own = PromptPart{"the text of the prompt " + nameOrInline, rest, "shorten .coven/prompts/" + strings.TrimSuffix(nameOrInline, ".md") + ".md"}
	}
	return append(parts, own)
}

// partAt returns the part of a prompt that is the value at a path of the data, such as "task.description".
func partAt(path string, size int) PromptPart {
	top, name, _ := strings.Cut(path, ".")
	switch top {
	case "task":
		return PromptPart{"the " + name + " of the task", size, "shorten it in the tracker"}
	case "input":
		return PromptPart{"the input " + name + " of the step", size, "set input." + name + " in the grimoire"}
	case "attempt":
		return PromptPart{"the result of the previous session", size, "prior_attempt: false"}
	}
	return PromptPart{"the value ." + path, size, "leave it out of the prompt"}
}

// longTexts returns the texts of at least minPart bytes in a value, each once, with the path of one of its places.
func longTexts(path string, value any) func(yield func(string, string) bool) {
	found := map[string]string{} // path by text
	collectTexts(path, value, found)
	return func(yield func(string, string) bool) {
		for _, text := range slices.SortedFunc(maps.Keys(found), func(a, b string) int { return strings.Compare(found[a], found[b]) }) {
			if !yield(found[text], text) {
				return
			}
		}
	}
}

func collectTexts(path string, value any, found map[string]string) {
	switch v := value.(type) {
	case string:
		if known := found[v]; len(v) >= minPart && (known == "" || rank(path) < rank(known) || rank(path) == rank(known) && path > known) {
			found[v] = path // task.description rather than task.body
		}
	case tmpl.Output:
		collectTexts(path, v.Text, found)
	case map[string]any:
		for name, inner := range v {
			collectTexts(strings.TrimPrefix(path+"."+name, "."), inner, found)
		}
	case []string:
		for _, text := range v {
			collectTexts(path, text, found)
		}
	}
}

// rank orders the places of a text by how well they name it.
func rank(path string) int {
	top, _, _ := strings.Cut(path, ".")
	if i := slices.Index([]string{"input", "task", "attempt", "steps"}, top); i >= 0 {
		return i
	}
	return 4
}

// withoutText returns a copy of a value in which a text is empty.
func withoutText(value any, text string) any {
	switch v := value.(type) {
	case string:
		if v == text {
			return ""
		}
	case tmpl.Output:
		v.Text = withoutText(v.Text, text).(string)
		return v
	case map[string]any:
		without := map[string]any{}
		for name, inner := range v {
			without[name] = withoutText(inner, text)
		}
		return without
	case []string:
		return slices.DeleteFunc(slices.Clone(v), func(s string) bool { return s == text })
	}
	return value
}
