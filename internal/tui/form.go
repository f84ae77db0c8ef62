package tui

import (
	"strings"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
)

// A form asks for the texts of a new task.
type form struct {
	fields []field
	at     int // index of the field with the cursor
}

// A field of a form is a text. Each line of a list is a value of the flag.
type field struct {
	name, flag string // the title is an argument, without a flag
	list       bool
	input      textarea.Model
}

// newForm returns an empty form.
func newForm() *form {
	f := &form{fields: []field{
		{name: "Title"},
		{name: "Description", flag: "--description"},
		{name: "Accept if (one on each line)", flag: "--accept", list: true},
	}}
	for i := range f.fields {
		input := textarea.New()
		input.Prompt, input.ShowLineNumbers, input.CharLimit = "", false, 0
		input.SetHeight(1)
		f.fields[i].input = input
	}
	f.focus(0)
	return f
}

// focus moves the cursor to another field.
func (f *form) focus(by int) {
	f.fields[f.at].input.Blur()
	f.at = (f.at + by + len(f.fields)) % len(f.fields)
	f.fields[f.at].input.Focus()
}

// args returns the command line that adds the task.
func (f *form) args() []string {
	args := []string{"task", "add"}
	for _, field := range f.fields[1:] {
		lines := []string{strings.TrimSpace(field.input.Value())}
		if field.list {
			lines = strings.Split(lines[0], "\n")
		}
		for _, line := range lines {
			if line = strings.TrimSpace(line); line != "" {
				args = append(args, field.flag, line)
			}
		}
	}
	title := f.title()
	if strings.HasPrefix(title, "-") {
		args = append(args, "--")
	}
	return append(args, title)
}

// title returns the title, which a task needs.
func (f *form) title() string { return strings.TrimSpace(f.fields[0].input.Value()) }

// key handles a key that neither closes nor completes the form.
func (f *form) key(msg tea.KeyPressMsg) tea.Cmd {
	switch key := msg.String(); {
	case key == "tab", key == "enter" && f.at == 0:
		f.focus(1)
	case key == "shift+tab":
		f.focus(-1)
	default:
		return f.update(msg)
	}
	return nil
}

func (f *form) update(msg tea.Msg) (cmd tea.Cmd) {
	if paste, ok := msg.(tea.PasteMsg); ok && f.at == 0 {
		msg = tea.PasteMsg{Content: strings.Join(strings.Fields(paste.Content), " ")}
	}
	f.fields[f.at].input, cmd = f.fields[f.at].input.Update(msg)
	return cmd
}

// rows returns the rows of the screen.
func (f *form) rows(width, height int) []string {
	rows := []string{""}
	const least = 7 // of the title and the names
	lines := max((height-least)/2, 1)
	for i := range f.fields {
		field := &f.fields[i]
		style := dim
		if i == f.at {
			style = bold
		}
		rows = append(rows, styled(style, field.name))
		field.input.SetWidth(max(width-2, 1))
		if i > 0 {
			field.input.SetHeight(min(lines, 6))
		}
		for row := range strings.SplitSeq(field.input.View(), "\n") {
			rows = append(rows, "  "+row)
		}
	}
	return rows
}
