package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/comments"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/lazyregexp"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/reviewer"
	"github.com/coven-run/coven/worktree/diff"
)

// place matches the place of a comment: FILE:LINE, FILE:FROM-TO, or FILE:-LINE for a removed line.
var place = lazyregexp.New(`^(.+):(-?)([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?$`)

// ParsePlace reads the place of a comment: FILE:LINE, FILE:FROM-TO, or with - before the first line, which means lines that the
// change removes, by their numbers in the target.
func ParsePlace(text string) (Anchor, error) {
	m := place.FindStringSubmatch(text)
	if m == nil {
		return Anchor{}, fmt.Errorf("%s is not FILE:LINE, FILE:FROM-TO, or FILE:-LINE for a removed line", text)
	}
	a := Anchor{Path: m[1], Side: New}
	if m[2] != "" {
		a.Side = Old
	}
	a.From, _ = strconv.Atoi(m[3]) // at most nine digits
	if a.To = a.From; m[4] != "" {
		a.To, _ = strconv.Atoi(m[4])
	}
	if a.To < a.From {
		return a, fmt.Errorf("%s: line %d is before line %d", text, a.To, a.From)
	}
	return a, nil
}

// NewComment is a comment to add. The anchor's tree and hash are ignored: the comment is about the present content.
type NewComment struct {
	Anchor
	Text       string
	Suggestion *string // replaces the lines
}

// Add adds a draft to the review of a task.
func Add(ctx context.Context, c *control.Controller, task string, n NewComment) (Comment, error) {
	p, err := c.Page(ctx, task)
	if err != nil {
		return Comment{}, err
	}
	again := "coven diff " + shellword.Word(task)
	if err := check(p, n); err != nil {
		return Comment{}, exit.Usagef(again, "%w", err)
	}
	in := placer{ctx: ctx, repo: c.Project.Repo, page: p}
	n.Tree = in.present(n.Side)
	lines, err := in.lines(n.Anchor)
	if err != nil {
		return Comment{}, exit.Usagef(again, "%w", err)
	}
	n.Hash = comments.HashOf(lines)
	if n.Side == Old && !in.isRemoved(n.Anchor) {
		return Comment{}, exit.Usagef(again, "the change does not remove %s", n.Place())
	}
	added := Comment{By: c.Project.Env.User(), At: c.Project.Env.Now(), Anchor: n.Anchor, Text: c.Project.Hidden(strings.TrimSpace(n.Text))}
	if n.Suggestion != nil {
		text := c.Project.Hidden(*n.Suggestion)
		added.Suggestion = &text
	}
	err = comments.Change(p.View.Dir, func(s *comments.File) error {
		if !s.Add(&added) {
			return exit.Failedf("coven review "+shellword.Word(task)+" --drafts", "the review of %s has %d comments, which is the maximum", task, comments.Max)
		}
		return nil
	})
	return added, err
}

// check returns why a comment cannot be added to a page.
func check(p control.Page, n NewComment) error {
	switch {
	case !p.View.Live():
		return fmt.Errorf("task %s is over: its review takes no more comments", p.View.Task)
	case strings.TrimSpace(n.Text) == "" && n.Suggestion == nil:
		return errors.New("the comment is empty")
	case len(n.Text) > comments.MaxText, n.Suggestion != nil && len(*n.Suggestion) > comments.MaxText:
		return fmt.Errorf("the comment has more than %d bytes", comments.MaxText)
	case n.Suggestion != nil && n.Side == Old:
		return errors.New("a suggestion cannot replace removed lines: comment on them, or suggest other lines")
	}
	return nil
}

// lines returns the lines of an anchor.
func (p *placer) lines(a Anchor) ([]string, error) {
	lines, err := p.file(a.Tree, a.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s", terminal.Printable(a.Path))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", terminal.Printable(a.Path), err)
	}
	if a.To > len(lines) {
		return nil, fmt.Errorf("%s has %d lines", terminal.Printable(a.Path), len(lines))
	}
	return lines[a.From-1 : a.To], nil
}

// file returns the lines of a file in a tree.
func (p *placer) file(tree, path string) ([]string, error) {
	if !comments.IsPath(path) {
		return nil, fs.ErrNotExist
	}
	key := [2]string{tree, path}
	if lines, ok := p.contents[key]; ok {
		return lines, nil
	}
	content, err := diff.FileIn(p.ctx, p.repo, tree, path, comments.MaxFile)
	if err != nil {
		return nil, err
	}
	lines := comments.LinesOf(content)
	if p.contents == nil {
		p.contents = map[[2]string][]string{}
	}
	p.contents[key] = lines
	return lines, nil
}

// Discard removes a draft, and returns it.
func Discard(ctx context.Context, c *control.Controller, task, id string) (Comment, error) {
	v, err := c.Project.Find(ctx, task)
	if err != nil {
		return Comment{}, err
	}
	list := "coven review " + shellword.Word(task) + " --drafts"
	var old Comment
	err = comments.Change(v.Dir, func(s *comments.File) error {
		i := slices.IndexFunc(s.Comments, func(c Comment) bool { return c.ID == id })
		if i < 0 {
			return exit.Usagef(list, "the review of %s has no comment %s", task, id)
		}
		t, err := turnsOf(v)
		if err != nil {
			return err
		}
		if _, sent := t.after(id); sent {
			return exit.Usagef(list, "comment %s was sent to the agent", id)
		}
		old = s.Comments[i]
		s.Comments = slices.Delete(s.Comments, i, i+1)
		return nil
	})
	return old, err
}

// Look records that a person looks at the present content of a change.
func Look(r Review) error {
	return comments.Change(r.Page.View.Dir, func(s *comments.File) error { s.Look(r.Page.Diff.To); return nil })
}

// MarkViewed records whether a person has viewed a file of a change. The mark is removed when the file changes.
func MarkViewed(r Review, path string, viewed bool) error {
	mark, ok := marks(r.files)[path]
	if !ok {
		return exit.Usagef("", "the change does not contain %s", path)
	}
	return comments.Change(r.Page.View.Dir, func(s *comments.File) error {
		if s.Viewed == nil {
			s.Viewed = map[string]string{}
		}
		if s.Viewed[path] = mark; !viewed {
			delete(s.Viewed, path)
		}
		return nil
	})
}

// maxSent limits the size of all comments that are sent together, in bytes: the agent's prompt must have room for them.
const maxSent = 48 << 10

// Request returns the request for changes with all drafts of a task, and other texts.
func Request(ctx context.Context, c *control.Controller, task string, others []string) (control.ReviseRequest, error) {
	r, err := Of(ctx, c, task)
	if err != nil {
		return control.ReviseRequest{}, err
	}
	request := control.ReviseRequest{Task: task, Seen: r.Page.View, Tree: r.Page.Diff.To, Comments: others}
	in := placer{ctx: ctx, repo: c.Project.Repo, page: r.Page}
	size := 0
	for _, p := range r.Drafts() {
		request.Drafts = append(request.Drafts, control.Draft{ID: p.ID, Remote: p.Remote, Finding: in.finding(p)})
		size += len(p.Text) + len(request.Drafts[len(request.Drafts)-1].Suggestion)
	}
	again := "coven review " + shellword.Word(task)
	switch {
	case len(request.Drafts) == 0:
		return request, exit.Usagef(again+" --comment FILE:LINE TEXT", "there are no comments to send")
	case size > maxSent:
		return request, exit.Usagef(again+" --drafts", "the comments have %d bytes together, at most %d can be sent at once", size, maxSent)
	}
	return request, nil
}

// finding returns a comment as it is shown to the agent. It begins with the comment's ID, with which the agent answers.
func (p *placer) finding(c Placed) reviewer.Finding {
	a := c.Now
	if a.Path == "" {
		a = c.Anchor
	}
	f := reviewer.Finding{Severity: reviewer.Error, File: a.Path, Line: a.From, Message: "[" + c.ID + "] " + c.Text}
	code := ""
	if lines, err := p.lines(a); err == nil {
		code = " (" + oneline.Clip(terminal.Printable(strings.Join(lines, " ⏎ ")), maxQuote) + ")"
	}
	switch {
	case a.Side == Old:
		f.Line = 0
		f.Message = fmt.Sprintf("[%s] about %s that the change removes%s: %s", c.ID, numbered(a), code, c.Text)
	case c.State == Outdated:
		f.Line = 0
		f.Message = fmt.Sprintf("[%s] about %s of an earlier version%s: %s", c.ID, numbered(a), code, c.Text)
	case a.To > a.From:
		f.Message = fmt.Sprintf("[%s] about %s: %s", c.ID, numbered(a), c.Text)
	}
	if c.Suggestion != nil {
		f.Suggestion = fmt.Sprintf("replace %s by:\n%s", numbered(a), *c.Suggestion)
		if *c.Suggestion == "" {
			f.Suggestion = "delete " + numbered(a)
		}
	}
	return f
}

// maxQuote limits the code that is quoted in a finding, in characters.
const maxQuote = 300

func numbered(a Anchor) string {
	if a.To == a.From {
		return fmt.Sprintf("line %d", a.From)
	}
	return fmt.Sprintf("lines %d to %d", a.From, a.To)
}
