package review

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins/reviewer"
)

// Extent selects a part of a change.
type Extent string

// The extents.
const (
	Whole     Extent = "whole" // the change against its target
	SinceLook Extent = "look"  // since the person's last look at another content
	SinceTurn Extent = "turn"  // since the person last asked for changes
)

// File is a file of a change, as a face shows it.
type File struct {
	Path      string
	OldPath   string // of a rename or copy
	Status    string // A, C, D, M, R or T
	Added     int
	Deleted   int
	Binary    bool
	Generated bool   // by a program: its lines are of little interest
	Viewed    bool   // by the person, as it is
	FromStart bool   // its removed lines are those of the start of the change, on which a person can comment
	Secret    bool   // it has no lines because they contain a secret over several lines
	TooLarge  bool   // it has no lines because the patch is too large
	Content   string // identifies its content on both sides
	Hunks     []Hunk
	Comments  []Placed  // whose lines are not shown
	Findings  []Finding // about the file, or lines that are not shown
}

// Hunk is a part of a file with changed lines.
type Hunk struct {
	Header string // @@ -1,2 +1,3 @@ and the line that git names
	Lines  []Line
}

// Line is a line of a hunk.
type Line struct {
	Op       gitdiff.LineOp
	Old, New int // its numbers, 0 on a side where it is not
	Text     string
	Comments []Placed
	Findings []Finding
}

// Finding is a finding of a reviewer.
type Finding struct {
	reviewer.Finding
	By   string
	Open bool // it blocks the approval
}

// Diff returns a part of the change. It is the whole change if there is no earlier content to compare with, or if git has collected
// it.
func Diff(ctx context.Context, c *control.Controller, r Review, extent Extent) (control.Diff, error) {
	tree := map[Extent]string{SinceLook: r.Last, SinceTurn: r.Turn}[extent]
	if tree == "" || tree == r.Page.Diff.From {
		return r.Page.Diff, nil
	}
	d, err := c.Between(ctx, tree, r.Page.Diff.To)
	if err != nil && ctx.Err() == nil {
		return r.Page.Diff, nil
	}
	return d, err
}

// Files returns the files of a part of the change, with the comments and findings at their lines. Comments on removed lines are
// only at lines of the whole change: in another extent, their numbers mean other lines.
func Files(ctx context.Context, c *control.Controller, r Review, extent Extent) ([]File, error) {
	d, err := Diff(ctx, c, r, extent)
	if err != nil {
		return nil, err
	}
	of := r.files
	if d.From != r.Page.Diff.From || of == nil {
		of = parse(d.Patch)
	}
	parsed := map[string]*gitdiff.File{}
	for _, f := range of {
		parsed[nameOf(f)] = f
	}
	files := make([]File, 0, len(d.Files))
	for _, change := range d.Files {
		f := File{
			Path: change.Path, OldPath: change.OldPath, Status: change.Status, Added: change.Added, Deleted: change.Deleted,
			Binary: change.Binary, Viewed: slices.Contains(r.Viewed, change.Path), FromStart: d.From == r.Page.Diff.From,
		}
		f.TooLarge = len(d.Patch) > maxPatch
		if of := parsed[change.Path]; of != nil {
			f.fill(of, c.Project.Hidden)
		}
		files = append(files, f)
	}
	place := placing{files: files, old: d.From == r.Page.Diff.From}
	for _, comment := range r.Comments {
		place.comment(comment)
	}
	for _, f := range findingsOf(r.Page.View.Rounds, r.Page.View.Open) {
		place.finding(f)
	}
	return files, nil
}

// fill adds the lines of a parsed file, without secrets.
func (f *File) fill(of *gitdiff.File, hide func(string) string) {
	f.Content = of.OldOIDPrefix + of.OldMode.String() + of.NewOIDPrefix + of.NewMode.String()
	var sides [2]strings.Builder // a secret is on one side
	for _, fragment := range of.TextFragments {
		h := Hunk{Header: hide(strings.TrimSuffix(fragment.Header(), "\n"))}
		old, next := int(fragment.OldPosition), int(fragment.NewPosition)
		for _, line := range fragment.Lines {
			l := Line{Op: line.Op, Text: hide(strings.TrimSuffix(line.Line, "\n"))}
			if line.Op != gitdiff.OpAdd {
				l.Old, old = old, old+1
				sides[0].WriteString(line.Line)
			}
			if line.Op != gitdiff.OpDelete {
				l.New, next = next, next+1
				sides[1].WriteString(line.Line)
			}
			h.Lines = append(h.Lines, l)
		}
		f.Hunks = append(f.Hunks, h)
	}
	for i := range sides {
		text := sides[i].String()
		f.Secret = f.Secret || strings.Count(hide(text), "\n") != strings.Count(text, "\n")
		f.Generated = f.Generated || isGenerated(f.Path, text)
	}
	if f.Secret {
		f.Hunks = nil
	}
}

// isGenerated reports whether a program wrote a file, as far as its name or its first lines say so.
func isGenerated(name, text string) bool {
	head := text[:min(len(text), 2000)]
	if strings.Contains(head, "DO NOT EDIT") || strings.Contains(head, "@generated") {
		return true
	}
	base := path.Base(name)
	return slices.Contains([]string{"go.sum", "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "Cargo.lock", "poetry.lock", "uv.lock", "Gemfile.lock", "composer.lock"}, base) ||
		strings.HasSuffix(base, ".min.js") || strings.HasSuffix(base, ".min.css") || strings.HasSuffix(base, ".pb.go")
}

// placing puts comments and findings at the lines of files.
type placing struct {
	files []File
	old   bool // the old side is the start of the change
}

// line returns the file and the line at a place. The line is nil if it is not shown.
func (p placing) line(name string, side Side, number int) (*File, *Line) {
	i := slices.IndexFunc(p.files, func(f File) bool { return f.Path == name || side == Old && f.OldPath == name })
	if i < 0 {
		return nil, nil
	}
	f := &p.files[i]
	if side == Old && !p.old {
		return f, nil
	}
	for _, h := range f.Hunks {
		for j := range h.Lines {
			if l := &h.Lines[j]; side == New && l.New == number || side == Old && l.Old == number && l.Op == gitdiff.OpDelete {
				return f, l
			}
		}
	}
	return f, nil
}

// comment puts a comment at the last of its lines.
func (p placing) comment(c Placed) {
	at := c.Now
	if at.Path == "" {
		at = Anchor{Path: c.Path} // its lines are gone
	}
	switch f, l := p.line(at.Path, at.Side, at.To); {
	case l != nil:
		l.Comments = append(l.Comments, c)
	case f != nil:
		f.Comments = append(f.Comments, c)
	}
}

func (p placing) finding(found Finding) {
	switch f, l := p.line(found.File, New, found.Line); {
	case l != nil:
		l.Findings = append(l.Findings, found)
	case f != nil:
		f.Findings = append(f.Findings, found)
	}
}

// findingsOf returns the findings of the last round, and the open ones of earlier rounds.
func findingsOf(rounds []session.Round, open []event.Finding) []Finding {
	var all []Finding
	for _, f := range open {
		all = append(all, Finding{Finding: f.Finding, By: f.Reviewer, Open: true})
	}
	if len(rounds) == 0 {
		return all
	}
	for _, o := range rounds[len(rounds)-1].Opinions {
		for _, f := range o.Findings {
			if !slices.ContainsFunc(all, func(other Finding) bool { return other.By == o.Reviewer && other.Finding == f }) {
				all = append(all, Finding{Finding: f, By: o.Reviewer})
			}
		}
	}
	return all
}
