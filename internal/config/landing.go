package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/text/tmpl"
)

// MessageFields returns the fields of the task that templates of landing.message and landing.trailers may use. The type is
// the one of conventional commits.
func MessageFields() []string {
	return []string{"id", "title", "type", "issue_type", "labels", "parent", "external_ref"}
}

// landingTexts checks the templates of the messages.
func (r reader) landingTexts(l Landing) {
	if at := r.at("landing.message"); at.Set() && l.Message != "" {
		if err := checkMessage(l.Message); err != nil {
			r.doc.Fail(at, err.Error(), "")
		}
	}
	r.each("landing.trailers", l.Trailers, "a trailer (Name: value) that is a template of "+strings.Join(MessageFields(), ", "), func(s string) bool {
		name, _, found := strings.Cut(s, ": ")
		return found && name != "" && !strings.ContainsAny(name, " \t{}") && checkMessage(s) == nil
	})
}

// checkMessage returns an error if a template of a message is invalid or uses an unknown field.
func checkMessage(text string) error {
	if strings.Contains(text, "\n") {
		return errors.New("it has more than one line")
	}
	uses, err := tmpl.CheckText("landing.message", text)
	if err != nil {
		return err
	}
	for _, use := range uses.Data {
		if len(use.Path) != 1 || !slices.Contains(MessageFields(), use.Path[0]) {
			return errors.New("{{." + strings.Join(use.Path, ".") + "}} is not a field of the task; the fields are " + strings.Join(MessageFields(), ", "))
		}
	}
	return nil
}
