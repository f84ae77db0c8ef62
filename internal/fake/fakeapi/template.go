package fakeapi

import (
	"slices"
	"strings"
)

// expand replaces the variables in the texts and tool inputs of the turn. It keeps every
// other ${...}, which may be shell syntax.
func (t Turn) expand(request Request) Turn {
	replacer := strings.NewReplacer(
		"${CWD}", workingDirectory(request),
		"${LAST_TOOL_RESULT}", lastToolResult(request.Messages),
		"${LAST_PROMPT}", lastPrompt(request.Messages),
	)
	t.Text = replacer.Replace(t.Text)
	chunks := make([]Chunk, len(t.Chunks))
	for i, chunk := range t.Chunks {
		chunk.Text = replacer.Replace(chunk.Text)
		chunks[i] = chunk
	}
	tools := make([]Tool, len(t.Tools))
	for i, tool := range t.Tools {
		input, _ := expandValue(tool.Input, replacer).(map[string]any)
		tools[i] = Tool{Name: tool.Name, Input: input}
	}
	t.Chunks, t.Tools = chunks, tools
	return t
}

func expandValue(value any, replacer *strings.Replacer) any {
	switch value := value.(type) {
	case string:
		return replacer.Replace(value)
	case []any:
		items := make([]any, len(value))
		for i, item := range value {
			items[i] = expandValue(item, replacer)
		}
		return items
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, field := range value {
			fields[name] = expandValue(field, replacer)
		}
		return fields
	default:
		return value
	}
}

// workingDirectory returns the working directory that the CLI reports. It is in the
// system prompt or in a text next to the first prompt.
func workingDirectory(request Request) string {
	texts := []string{request.System}
	for _, message := range request.Messages {
		texts = append(texts, textOf(message.Content))
	}
	for _, text := range texts {
		for _, form := range [][2]string{
			{"Primary working directory: ", "\n"}, {"currently working in the directory: ", "\n"}, {"<cwd>", "</cwd>"},
		} {
			if _, rest, found := strings.Cut(text, form[0]); found {
				line, _, _ := strings.Cut(rest, form[1])
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

func lastToolResult(messages []Message) string {
	result := ""
	for _, message := range messages {
		for _, block := range message.Content {
			if block.Type == "tool_result" {
				result = block.Result
			}
		}
	}
	return result
}

// lastPrompt returns the user's last text. The CLI may add reminders before it, and
// coven adds a sentence after it, in which the CLI looks for files.
func lastPrompt(messages []Message) string {
	for _, message := range slices.Backward(messages) {
		if message.Role != "user" {
			continue
		}
		for _, block := range slices.Backward(message.Content) {
			text := strings.TrimSpace(block.Text)
			if block.Type == "text" && !strings.HasPrefix(text, "<system-reminder>") && text != "Do what is described above." {
				return text
			}
		}
	}
	return ""
}
