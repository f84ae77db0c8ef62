package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/lazyregexp"
)

// reviewRequest selects a part of the review of a task.
type reviewRequest struct {
	task   string
	extent review.Extent // empty in an address that a person has typed
	last   string        // tree of the last look, with which the page goes on to compare
	split  bool
	place  string // that is commented on
	skip   int    // lines of a file, which the browser has
	found  review.Review
}

// treeName matches the object ID of a tree.
var treeName = lazyregexp.New(`^[0-9a-f]{40,64}$`)

func reviewRequestOf(task string, values url.Values) reviewRequest {
	q := reviewRequest{task: task, extent: review.Extent(values.Get("part")), last: values.Get("last"), split: values.Get("view") == "split", place: values.Get("at")}
	if !slices.Contains([]review.Extent{review.Whole, review.SinceTurn, review.SinceLook}, q.extent) {
		q.extent = ""
	}
	if treeName.FindString(q.last) == "" {
		q.last = ""
	}
	q.skip, _ = strconv.Atoi(values.Get("skip"))
	return q
}

// path returns the address of this part.
func (q reviewRequest) path() string {
	query := url.Values{"part": {string(q.extent)}}
	for name, value := range map[string]string{"last": q.last, "at": q.place, "view": q.view()} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return taskPath(q.task) + "/review?" + query.Encode()
}

func (q reviewRequest) view() string {
	if q.split {
		return "split"
	}
	return ""
}

// with returns the address of the review with another part, view or place.
func (q reviewRequest) with(extent review.Extent, split bool, place string) string {
	q.extent, q.split, q.place = extent, split, place
	return q.path()
}

// choice is a link to another part or view.
type choice struct {
	Name, Path string
	Chosen     bool
}

// here is the part of the review that a form returns to.
type here struct{ Part, Last, View string }

// remarks are comments and findings.
type remarks struct {
	Comments []shownComment
	Findings []review.Finding
}

// reviewFile is a file of the review. Its rows are empty if it is folded: then the browser asks for them.
type reviewFile struct {
	review.File
	ID        string
	Dir, Base string
	RowsPath  string
	Rows      []reviewRow
	MorePath  string // the address of the next rows; empty if there are none
	Split     bool
	Folded    bool
	Shown     string // identifies all that is shown of it
	Mark      form   // marks it as viewed, or not
	Here      here
	Own       remarks // about the whole file
	Remarks   int     // their number
}

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

type shownComment struct {
	review.Placed
	Place     string
	StateText string
	Discard   form // of a draft
	Here      here
}

// commentForm asks for a comment.
type commentForm struct {
	Place      string
	Path       string
	Nonce      string
	Line       string // command line
	Content    string // of the file
	CanSuggest bool
	Here       here
	Back       string
}

// Limits of what a review page shows at once. Other files are loaded when they are opened, and long ones in parts.
const (
	shownLines = 2000 // of all files
	foldedFrom = 1000 // lines of one
	partLines  = 2000 // of a long one
	maxLine    = 2000 // bytes of a line

	largePatch = 1 << 20 // bytes of a patch whose memory is returned at once
)

// openReview returns a review. Only one is in memory at a time, until done is called.
func (s *Server) openReview(q reviewRequest) (found review.Review, files []review.File, done func(), err error) {
	s.reviewing.Lock()
	found, files, err = s.options.Source.Review(q.task, q.extent, q.last)
	large := len(found.Page.Diff.Patch) > largePatch
	done = sync.OnceFunc(func() {
		s.reviewing.Unlock()
		if large {
			go debug.FreeOSMemory() // the next garbage collection of an idle page is far away
		}
	})
	return found, files, done, err
}

func (s *Server) showReview(w http.ResponseWriter, r *http.Request) {
	q := reviewRequestOf(r.PathValue("task"), r.URL.Query())
	f := s.frame("", q.task)
	c, err := s.options.Source.Find(q.task)
	if err != nil {
		s.fail(w, err)
		return
	}
	found, files, done, err := s.openReview(q)
	defer done()
	if err != nil {
		s.fail(w, err)
		return
	}
	q.found = found
	if q.extent == "" { // the address keeps the part and the last look when the page is loaded again
		if q.extent, q.last = review.Whole, found.Last; q.last != "" {
			q.extent = review.SinceLook
		}
		http.Redirect(w, r, q.path(), http.StatusSeeOther)
		return
	}
	f.Title = "Review: " + c.Title
	page := struct {
		frame
		Card    board.Card
		Review  review.Review
		Parts   []choice
		Views   []choice
		Files   []reviewFile
		Drafts  int
		Viewed  int
		Send    form
		Forms   []form
		Summary string
	}{frame: f, Card: c, Review: found, Parts: q.parts(found), Views: q.views(), Drafts: len(found.Drafts()), Summary: c.View.Summary}
	left := shownLines
	for _, file := range files {
		shown := s.reviewFile(r, q, file)
		if n := linesOf(file); q.isIn(file) {
			of := q
			of.skip = q.partOf(file)
			s.addRows(r, of, &shown)
		} else if shown.Folded = shown.Folded || n > left; !shown.Folded {
			left -= n
			s.addRows(r, q, &shown)
		}
		if file.Viewed {
			page.Viewed++
		}
		page.Files = append(page.Files, shown)
	}
	if !s.options.ReadOnly {
		page.Send = s.form(r, form{Name: "send", Line: lineOf([]string{"review", q.task, "--send"}), Path: taskPath(q.task) + "/send"})
		page.Forms = slices.DeleteFunc(s.forms(r, c, c.Task), func(f form) bool { return !strings.ContainsAny(f.Path[len(f.Path)-1:], "arx") })
		if r.Header.Get("Sec-Fetch-Mode") != "cors" && r.Header.Get("Sec-Purpose") == "" && found.Page.View.Live() { // not by a script, nor in advance
			if err := s.options.Source.Looked(found); err != nil {
				s.fail(w, err)
				return
			}
		}
	}
	s.renderAfter(w, "review", page, done)
}

// showFile sends the rows of one file, for one that was folded.
func (s *Server) showFile(w http.ResponseWriter, r *http.Request) {
	q := reviewRequestOf(r.PathValue("task"), r.URL.Query())
	found, files, done, err := s.openReview(q)
	defer done()
	if err != nil {
		s.fail(w, err)
		return
	}
	q.found = found
	i := slices.IndexFunc(files, func(f review.File) bool { return f.Path == r.URL.Query().Get("file") })
	if i < 0 {
		refuse(w, http.StatusNotFound, "the change does not contain this file")
		return
	}
	shown := s.reviewFile(r, q, files[i])
	s.addRows(r, q, &shown)
	page := struct {
		frame
		File reviewFile
	}{s.frame(files[i].Path, q.task), shown}
	s.renderAfter(w, "review-file", page, done)
}

// parts returns the links to the parts of the change.
func (q reviewRequest) parts(found review.Review) []choice {
	all := []choice{{Name: "the whole change", Path: q.with(review.Whole, q.split, ""), Chosen: q.extent == review.Whole}}
	if found.Turn != "" {
		all = append(all, choice{Name: "the last turn", Path: q.with(review.SinceTurn, q.split, ""), Chosen: q.extent == review.SinceTurn})
	}
	if found.Last != "" {
		all = append(all, choice{Name: "since you last looked", Path: q.with(review.SinceLook, q.split, ""), Chosen: q.extent == review.SinceLook})
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.Chosen }) {
		all[0].Chosen = true // there is nothing to compare with
	}
	return all
}

func (q reviewRequest) views() []choice {
	return []choice{
		{Name: "unified", Path: q.with(q.extent, false, ""), Chosen: !q.split},
		{Name: "side by side", Path: q.with(q.extent, true, ""), Chosen: q.split},
	}
}

// linesOf returns the number of lines that are shown of a file. A long one counts for several.
func linesOf(f review.File) (n int) {
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			n += 1 + min(len(l.Text), maxLine)/200
		}
	}
	return n
}

// reviewFile returns a file without its rows.
func (s *Server) reviewFile(r *http.Request, q reviewRequest, f review.File) reviewFile {
	slash := strings.LastIndexByte(f.Path, '/') + 1
	shown := reviewFile{
		File: f, ID: "file-" + digest(f.Path), Shown: digest(f.Content, strconv.FormatBool(f.Viewed), f.OldPath, remarksText(f)), Dir: f.Path[:slash], Base: f.Path[slash:], Split: q.split, Here: q.here(),
		RowsPath: q.rowsPath(f, 0), Folded: f.Viewed || f.Generated || linesOf(f) >= foldedFrom,
		Own: remarks{Findings: f.Findings, Comments: s.comments(r, q, f.Comments)}, Remarks: remarksOf(f),
	}
	if q.isIn(f) {
		shown.Folded = false
	}
	if !s.options.ReadOnly {
		name := "viewed"
		if f.Viewed {
			name = "not viewed"
		}
		shown.Mark = s.form(r, form{Name: name, Path: taskPath(q.task) + "/viewed", Text: url.PathEscape(f.Path)})
	}
	return shown
}

// isIn reports whether the place that is commented on is in a file.
func (q reviewRequest) isIn(f review.File) bool {
	path, a, ok := cutPlace(q.place)
	return ok && (path == f.Path || a.Side == review.Old && path == f.OldPath)
}

// partOf returns the number of lines before the part of a file that has the place that is commented on.
func (q reviewRequest) partOf(f review.File) int {
	_, a, _ := cutPlace(q.place)
	n := 0
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if a.Side == review.New && l.New == a.To || a.Side == review.Old && l.Old == a.To && l.Op == gitdiff.OpDelete {
				return n / partLines * partLines
			}
			n++
		}
	}
	return 0
}

// rowsPath returns the address of the rows of a file, without the first ones.
func (q reviewRequest) rowsPath(f review.File, skip int) string {
	query := url.Values{"part": {string(q.extent)}, "last": {q.last}, "view": {q.view()}, "at": {q.place}, "file": {f.Path}, "skip": {strconv.Itoa(skip)}}
	return taskPath(q.task) + "/review/file?" + query.Encode()
}

// digest returns a short text that stands for texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// remarksText returns all comments and findings of a file as a text.
func remarksText(f review.File) string {
	all := []any{f.Comments, f.Findings}
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if len(l.Comments)+len(l.Findings) > 0 {
				all = append(all, l.Old, l.New, l.Comments, l.Findings)
			}
		}
	}
	text, _ := json.Marshal(all) // it has no other types
	return string(text)
}

// remarksOf returns the number of comments and findings of a file.
func remarksOf(f review.File) int {
	n := len(f.Comments) + len(f.Findings)
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			n += len(l.Comments) + len(l.Findings)
		}
	}
	return n
}

func (q reviewRequest) here() here { return here{string(q.extent), q.last, q.view()} }

// cutPlace returns the file of a place.
func cutPlace(text string) (path string, a review.Anchor, ok bool) {
	a, err := review.ParsePlace(text)
	return a.Path, a, err == nil
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
			f.Rows = append(f.Rows, reviewRow{Header: visible(terminal.Printable(clipped(h.Header)))})
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
	if q.place != "" && !s.options.ReadOnly && endsAt(visible(terminal.Printable(q.place)), cell.Place) {
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

func (s *Server) comments(r *http.Request, q reviewRequest, all []review.Placed) (shown []shownComment) {
	for _, c := range all {
		of := shownComment{Placed: c, Place: visible(terminal.Printable(c.Place())), StateText: visible(terminal.Printable(q.found.Describe(c))), Here: q.here()}
		if c.Now.Path != "" {
			of.Place = visible(terminal.Printable(c.Now.Place()))
		}
		if !c.IsSent() && !s.options.ReadOnly {
			of.Discard = s.form(r, form{Name: "discard", Path: taskPath(q.task) + "/comments/" + c.ID + "/discard"})
		}
		shown = append(shown, of)
	}
	return shown
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
	cell.Place = visible(terminal.Printable(place.Place()))
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
	return visible(terminal.Printable(strings.ReplaceAll(text, "\t", "    ")))
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

// addComment adds a comment or a suggestion to the review.
func (s *Server) addComment(w http.ResponseWriter, r *http.Request) {
	flag, place, text := "--comment", textOf(r, "place"), textOf(r, "text")
	if r.PostForm.Get("kind") == "suggestion" {
		flag, text = "--suggest", strings.TrimRight(strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n"), "\n")
	}
	if _, _, ok := cutPlace(place); !ok || text == "" || text == "-" {
		refuse(w, http.StatusUnprocessableEntity, "nothing was added: a comment needs a place such as a.go:12 and a text")
		return
	}
	if ok, err := s.isPresent(r, place); err != nil || !ok {
		if err != nil {
			s.fail(w, err)
			return
		}
		refuse(w, http.StatusConflict, "nothing was added: the file has changed since this page was loaded. Go back, and load the page again: your text stays.\n\n"+visible(terminal.PrintableLines(text)))
		return
	}
	s.runInReview(w, r, []string{"review", flag, place, "--", r.PathValue("task"), text})
}

// isPresent reports whether the file of a place is as it was on the page with the form.
func (s *Server) isPresent(r *http.Request, place string) (bool, error) {
	q := reviewRequestOf(r.PathValue("task"), r.PostForm)
	_, files, done, err := s.openReview(q)
	defer done()
	path, _, _ := cutPlace(place)
	i := slices.IndexFunc(files, func(f review.File) bool { return f.Path == path || f.OldPath == path })
	return i >= 0 && files[i].Content == r.PostForm.Get("content"), err
}

func (s *Server) discardComment(w http.ResponseWriter, r *http.Request) {
	s.runInReview(w, r, []string{"review", r.PathValue("task"), "--discard", r.PathValue("id")})
}

// runInReview runs a command line that ends soon, and sends the browser back to the review.
func (s *Server) runInReview(w http.ResponseWriter, r *http.Request, args []string) {
	if _, err := s.options.Source.Find(r.PathValue("task")); err != nil {
		s.fail(w, err)
		return
	}
	wait, err := s.options.Source.Start(args)
	if err != nil {
		s.fail(w, err)
		return
	}
	output, err := wait()
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, resultOf(output, nil))
		return
	}
	s.hub.tell()
	s.backToReview(w, r)
}

// backToReview sends the browser back to the part of the review from which a form was sent.
func (s *Server) backToReview(w http.ResponseWriter, r *http.Request) {
	q := reviewRequestOf(r.PathValue("task"), r.PostForm)
	q.place = ""
	http.Redirect(w, r, q.path(), http.StatusSeeOther)
}

// sendComments sends the drafts to the agent.
func (s *Server) sendComments(w http.ResponseWriter, r *http.Request) {
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	s.run(w, r, c.Task, []string{"review", c.Task, "--send"})
}

// markViewed records whether a file was viewed.
func (s *Server) markViewed(w http.ResponseWriter, r *http.Request) {
	found, _, done, err := s.openReview(reviewRequest{task: r.PathValue("task"), extent: review.Whole})
	defer done()
	path, invalid := url.PathUnescape(r.PostForm.Get("text"))
	if err = errors.Join(err, invalid); err == nil {
		err = s.options.Source.Viewed(found, path, !slices.Contains(found.Viewed, path))
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	s.hub.tell()
	s.backToReview(w, r)
}
