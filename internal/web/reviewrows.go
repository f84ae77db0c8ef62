package web

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/control/review"
)

// reviewRow is a row of a file: the beginning of a hunk, or a line. A unified row has one cell, a split one has two.
type reviewRow struct {
	Header  string
	Cells   []reviewCell
	Remarks remarks
	Form    *commentForm
}

// HasRemarks reports whether something is shown below the row.
func (r reviewRow) HasRemarks() bool {
	return len(r.Remarks.Comments)+len(r.Remarks.Findings) > 0 || r.Form != nil
}

// reviewCell is a line on one side.
type reviewCell struct {
	Kind                  string // added, removed, same, or none
	Number                int
	Before, Change, After string // the text, cut at the part that differs from the other side
	Place                 string // to show
	Link                  string // to comment on it; empty if that is not possible
}

// Sign returns the character before the line in a patch.
func (c reviewCell) Sign() string {
	return map[string]string{"added": "+", "removed": "-"}[c.Kind]
}

// addRows adds the rows of a file, or a part of them. The part begins after the lines to skip, and has the place to comment on.
func (s *Server) addRows(r *http.Request, q reviewRequest, f *reviewFile) {
	skip, left := q.skip, partLines
	for _, h := range f.Hunks {
		if skip >= len(h.Lines) {
			skip -= len(h.Lines)
			continue
		}
		if left <= 0 {
			break
		}
		lines := h.Lines[skip:]
		lines = lines[:min(len(lines), left)]
		if skip == 0 {
			f.Rows = append(f.Rows, reviewRow{Header: printable(clipped(h.Header))})
		}
		f.Rows = append(f.Rows, s.rows(r, q, f.File, lines)...)
		skip, left = 0, left-len(lines)
	}
	all := 0
	for _, h := range f.Hunks {
		all += len(h.Lines)
	}
	if next := q.skip + partLines; next < all {
		f.MorePath = q.rowsPath(f.File, next)
	}
}

// rows returns the rows of lines of a hunk.
func (s *Server) rows(r *http.Request, q reviewRequest, f review.File, lines []review.Line) (rows []reviewRow) {
	all := pairs(lines)
	if q.split {
		for _, p := range all {
			rows = append(rows, s.split(r, q, f, p))
		}
		return rows
	}
	other := map[*review.Line]*review.Line{}
	for _, p := range all {
		if p.old != nil && p.new != nil {
			other[p.old], other[p.new] = p.new, p.old
		}
	}
	for i := range lines {
		rows = append(rows, s.row(r, q, f, &lines[i], other[&lines[i]]))
	}
	return rows
}

// split returns the row with both lines of a pair.
func (s *Server) split(r *http.Request, q reviewRequest, f review.File, p pair) reviewRow {
	var row reviewRow
	for _, l := range []*review.Line{p.old, p.new} {
		if l == nil {
			row.Cells = append(row.Cells, reviewCell{Kind: "none"})
			continue
		}
		other := p.new
		if l == p.new {
			other = p.old
		}
		of := s.row(r, q, f, l, other)
		row.Cells = append(row.Cells, of.Cells[0])
		if l == p.old && p.old == p.new {
			continue // the other cell has its remarks
		}
		row.Remarks.Comments = append(row.Remarks.Comments, of.Remarks.Comments...)
		row.Remarks.Findings = append(row.Remarks.Findings, of.Remarks.Findings...)
		row.Form = cmp.Or(row.Form, of.Form)
	}
	return row
}

// pair is an old line and the new one that replaces it. Either may be nil.
type pair struct{ old, new *review.Line }

// pairs returns the lines of a hunk: each removed one beside the added one at the same place of the change.
func pairs(lines []review.Line) (all []pair) {
	var old, added []*review.Line
	flush := func() {
		for i := range max(len(old), len(added)) {
			var p pair
			if i < len(old) {
				p.old = old[i]
			}
			if i < len(added) {
				p.new = added[i]
			}
			all = append(all, p)
		}
		old, added = nil, nil
	}
	for i := range lines {
		switch l := &lines[i]; l.Op {
		case gitdiff.OpDelete:
			if len(added) > 0 {
				flush()
			}
			old = append(old, l)
		case gitdiff.OpAdd:
			added = append(added, l)
		default:
			flush()
			all = append(all, pair{l, l})
		}
	}
	flush()
	return all
}

// row returns the row of a line, which replaces the other one, or is replaced by it.
func (s *Server) row(r *http.Request, q reviewRequest, f review.File, l, other *review.Line) reviewRow {
	cell := s.cell(q, f, l, other)
	row := reviewRow{Cells: []reviewCell{cell}, Remarks: remarks{Findings: l.Findings, Comments: s.comments(r, q, l.Comments)}}
	if q.place != "" && !s.options.ReadOnly && endsAt(printable(q.place), cell.Place) {
		path := taskPath(q.task) + "/comments"
		row.Form = &commentForm{
			Place: q.place, Path: path, Nonce: s.guard.nonce(r, path), Line: lineOf([]string{"review", q.task, "--comment", q.place, "TEXT"}), Content: f.Content,
			CanSuggest: cell.Kind != "removed", Here: q.here(), Back: q.with(q.extent, q.split, ""),
		}
	}
	return row
}

// endsAt reports whether the last line of a place is at another place of one line.
func endsAt(place, line string) bool {
	if place == line {
		return true
	}
	_, a, ok := cutPlace(place)
	a.From = a.To
	return ok && a.Place() == line
}

// cell returns the cell of a line, which replaces the other one, or is replaced by it. other is nil if there is none.
func (s *Server) cell(q reviewRequest, f review.File, l, other *review.Line) reviewCell {
	cell := reviewCell{Kind: "same", Number: l.New, Before: shownLine(clipped(l.Text))}
	place := review.Anchor{Path: f.Path, Side: review.New, From: l.New, To: l.New}
	switch l.Op {
	case gitdiff.OpAdd:
		cell.Kind = "added"
	case gitdiff.OpDelete:
		cell.Kind, cell.Number = "removed", l.Old
		place = review.Anchor{Path: cmp.Or(f.OldPath, f.Path), Side: review.Old, From: l.Old, To: l.Old}
	}
	cell.Place = printable(place.Place())
	if !s.options.ReadOnly && (place.Side == review.New || f.FromStart) {
		cell.Link = q.with(q.extent, q.split, place.Place()) + "#comment-text"
	}
	if other != nil && other != l {
		before, change, after := changedPart(clipped(l.Text), clipped(other.Text))
		cell.Before, cell.Change, cell.After = shownLine(before), shownLine(change), shownLine(after)
	}
	return cell
}

func shownLine(text string) string {
	return printable(strings.ReplaceAll(text, "\t", "    "))
}

// clipped returns the beginning of a line that is too long to be shown.
func clipped(text string) string {
	if len(text) <= maxLine {
		return text
	}
	return strings.ToValidUTF8(text[:maxLine], "") + " … (" + strconv.Itoa(len(text)) + " bytes)"
}

// changedPart cuts a line at the part that differs from another one. If all of it differs, the part is empty.
func changedPart(text, other string) (before, change, after string) {
	a, b := []rune(text), []rune(other)
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	if start+end == 0 {
		return text, "", ""
	}
	return string(a[:start]), string(a[start : len(a)-end]), string(a[len(a)-end:])
}
