package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/terminal"
)

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
		text, _ := board.Result(output, nil)
		refuse(w, http.StatusUnprocessableEntity, printable(text))
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
