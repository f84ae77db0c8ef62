package reviewpage

import (
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// Place returns the place of a comment as text for a terminal.
func Place(a review.Anchor) string { return terminal.Printable(a.Place()) }

// commentsText returns the comments of a person, with their states and answers.
func commentsText(r review.Review) string {
	var b strings.Builder
	for _, p := range r.Comments {
		fmt.Fprintf(&b, "%s %s (%s): %s", p.ID, placeOf(p), terminal.Printable(r.Describe(p)), strings.TrimPrefix(indent(p.Text+"\n", "    "), "    "))
		switch {
		case p.Suggestion == nil:
		case *p.Suggestion == "":
			b.WriteString("  suggestion: delete it\n")
		default:
			b.WriteString("  suggestion:\n" + indent(*p.Suggestion, "    "))
		}
		if p.Answer != "" {
			b.WriteString("  the agent: " + strings.TrimPrefix(indent(p.Answer, "    "), "    "))
		}
	}
	return section(b.String())
}

func indent(text, margin string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		b.WriteString(margin + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// placeOf returns the present place of a comment, or its former one if its lines have changed.
func placeOf(p review.Placed) string {
	if p.Now.Path == "" {
		return Place(p.Anchor)
	}
	return Place(p.Now)
}

// CommentsText returns the list of the comments of a review.
func CommentsText(r review.Review) string {
	task := shellword.Word(r.Page.View.Task)
	switch {
	case len(r.Comments) == 0:
		return "no comments\n  next: coven review " + task + " --comment FILE:LINE TEXT\n"
	case len(r.Drafts()) > 0:
		return commentsText(r) + "  next: coven review " + task + " --send\n"
	}
	return commentsText(r)
}

// DiscardedText says that a draft was removed, and repeats its text.
func DiscardedText(c review.Comment) string {
	text := c.Text
	if c.Suggestion != nil {
		text = *c.Suggestion
	}
	return fmt.Sprintf("removed the draft %s on %s:\n%s", c.ID, Place(c.Anchor), section(text))
}
