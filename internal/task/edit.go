package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/text/jsonline"
)

// Edit changes the texts, the priority and the labels of a task. Fields that are nil do not change.
type Edit struct {
	Title       *string
	Description *string
	Acceptance  *[]string // replaces all criteria
	Design      *string
	Priority    *int
	Labels      *[]string // replaces all labels
}

// apply returns the edited task.
func (e Edit) apply(t Task) (Task, error) {
	if err := t.Usable(); err != nil {
		return Task{}, err
	}
	for from, to := range map[*string]*string{e.Title: &t.Title, e.Description: &t.Description, e.Design: &t.Design} {
		if from != nil {
			*to = *from
		}
	}
	if e.Acceptance != nil {
		t.Acceptance = checklist(*e.Acceptance)
	}
	if e.Priority != nil {
		t.Priority = *e.Priority
	}
	if e.Labels != nil {
		t.Labels = unique(*e.Labels)
	}
	return t, checkFields(t.Title, t.Priority, t.Labels, t.textSize())
}

// textField is a text of a task that can be edited.
type textField struct {
	member string // of a JSON line
	flag   string // of a program
	text   string
}

func (t Task) textFields() []textField {
	return []textField{
		{"title", "--title", t.Title},
		{"description", "--description", t.Description},
		{"acceptance_criteria", "--acceptance", t.Acceptance},
		{"design", "--design", t.Design},
	}
}

// editedTexts returns the texts of a task that differ from those that it had before.
func editedTexts(before, t Task) (edited []textField) {
	old := before.textFields()
	for i, field := range t.textFields() {
		if field != old[i] {
			edited = append(edited, field)
		}
	}
	return edited
}

// Edit changes the texts, the priority and the labels of a task.
func (f *File) Edit(ctx context.Context, id string, change Edit) (Task, error) {
	return f.change(ctx, id, func(d *document, before Task) ([]jsonline.Edit, error) {
		t, err := change.apply(before)
		if err != nil {
			return nil, err
		}
		e := f.edits()
		for _, field := range editedTexts(before, t) {
			e.setOrRemove(field.member, field.text, field.text == "")
		}
		if t.Priority != before.Priority {
			e.set("priority", t.Priority)
		}
		if !slices.Equal(t.Labels, before.Labels) {
			e.setOrRemove("labels", t.Labels, len(t.Labels) == 0)
		}
		if len(e.list) == 0 {
			return nil, nil
		}
		list, err := e.done()
		return list, errors.Join(err, d.checkSize(id, list))
	})
}

func (e *edits) setOrRemove(name string, value any, remove bool) {
	if remove {
		e.remove(name)
	} else {
		e.set(name, value)
	}
}

// checkSize returns an error if a line would become too long to be read.
func (d *document) checkSize(id string, edits []jsonline.Edit) error {
	_, body, _ := d.parts(d.line[id])
	line, err := jsonline.Patch(body, edits)
	if err == nil {
		err = checkLine(line)
	}
	return err
}

// Edit changes the texts, the priority and the labels of a task, in one command.
func (c *CLI) Edit(ctx context.Context, id string, change Edit) (Task, error) {
	before, err := c.Get(ctx, id)
	if err != nil {
		return Task{}, err
	}
	t, err := change.apply(before)
	if err != nil {
		return Task{}, err
	}
	flags, err := c.editFlags(before, t)
	if err != nil || len(flags) == 0 {
		return before, err
	}
	_, err = forced(func(force ...string) (*output, error) {
		return c.change(ctx, slices.Concat([]string{"update", "--json"}, flags, force, []string{"--", id})...)
	})
	if err != nil {
		return Task{}, c.notFound(id, err)
	}
	return c.Get(ctx, id)
}

// editFlags returns the flags of the program's update that turn one version of a task into another.
func (c *CLI) editFlags(before, t Task) (flags []string, err error) {
	for _, field := range editedTexts(before, t) {
		if err := c.checkArgument(field.text); err != nil {
			return nil, err
		}
		flags = append(flags, field.flag+"="+inputSafe(field.text))
	}
	if t.Priority != before.Priority {
		flags = append(flags, "--priority="+strconv.Itoa(t.Priority))
	}
	// Programs ignore an empty list for --set-labels.
	for _, part := range []struct {
		flag       string
		from, less []string
	}{{"--add-label=", t.Labels, before.Labels}, {"--remove-label=", before.Labels, t.Labels}} {
		for _, label := range part.from {
			if slices.Contains(part.less, label) {
				continue
			}
			one, err := commas([]string{label})
			if err != nil {
				return nil, err
			}
			if err := c.checkArgument(one); err != nil {
				return nil, err
			}
			flags = append(flags, part.flag+one)
		}
	}
	return flags, nil
}

// checkArgument returns an error if the program does not accept a text.
func (c *CLI) checkArgument(text string) error {
	if argument(text) == text {
		return nil
	}
	head := strings.ToValidUTF8(text[:min(40, len(text))], "")
	return fmt.Errorf("%w: %q... has more than %d bytes, a NUL or invalid UTF-8, which %s does not accept", ErrInvalid, head, maxText, c.kind)
}

// inputSafe returns a text that is no single -, which means standard input to a program.
func inputSafe(text string) string {
	if text == "-" {
		return "-\n"
	}
	return text
}
