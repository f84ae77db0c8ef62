package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/control/review"
)

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

type shownComment struct {
	review.Placed
	Place     string
	StateText string
	Discard   form // of a draft
	Here      here
}

// Limits of a review page. Other files are loaded when they are opened, and long ones in parts.
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
		File: f, ID: "file-" + digest(f.Path), Shown: digest(f.Content, strconv.FormatBool(f.Viewed), f.OldPath, remarksText(q, f)), Dir: f.Path[:slash], Base: f.Path[slash:], Split: q.split, Here: q.here(),
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

// digest returns a short text that stands for texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// remarksText returns all comments and findings of a file as a text.
func remarksText(q reviewRequest, f review.File) string {
	all := []any{q.states(f.Comments), f.Comments, f.Findings}
	for _, h := range f.Hunks {
		for _, l := range h.Lines {
			if len(l.Comments)+len(l.Findings) > 0 {
				all = append(all, l.Old, l.New, q.states(l.Comments), l.Comments, l.Findings)
			}
		}
	}
	text, _ := json.Marshal(all) // it has no other types
	return string(text)
}

// states describes the states of comments.
func (q reviewRequest) states(all []review.Placed) (texts []string) {
	for _, c := range all {
		texts = append(texts, q.found.Describe(c))
	}
	return texts
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

func (s *Server) comments(r *http.Request, q reviewRequest, all []review.Placed) (shown []shownComment) {
	for _, c := range all {
		of := shownComment{Placed: c, Place: printable(c.Place()), StateText: printable(q.found.Describe(c)), Here: q.here()}
		if c.Now.Path != "" {
			of.Place = printable(c.Now.Place())
		}
		if !c.IsSent() && !s.options.ReadOnly {
			of.Discard = s.form(r, form{Name: "discard", Path: taskPath(q.task) + "/comments/" + c.ID + "/discard"})
		}
		shown = append(shown, of)
	}
	return shown
}
