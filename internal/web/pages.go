package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/event/findings"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/session/spending"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// templates returns the templates of all pages. Other commands do not need them.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"line":    func(text any) string { return printable(oneline.Of(fmt.Sprint(text))) },
		"text":    func(text string) string { return visible(terminal.PrintableLines(text)) },
		"cost":    board.Cost,
		"bars":    board.Bars,
		"percent": func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) },
		"path":    taskPath,
		"step":    terminal.StepName,
		"receipt": terminal.Receipt,
		"finding": findings.Line,
		"tokens":  terminal.Tokens,
		"time":    func(t time.Time) string { return t.Local().Format(time.DateTime) },
		"exact":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	}).ParseFS(assets, "assets/*.html"))
})

// printable returns a line of text without characters that a page does not show.
func printable(line string) string { return visible(terminal.Printable(line)) }

// visible replaces characters that a browser does not show, such as those of zero width.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// frame is the part of a page around its content.
type frame struct {
	Title    string
	Name     string // of the repository
	At       string // version
	ReadOnly bool
	Stream   string // task and session whose events the page follows; empty if none
	Commands []shownCommand
	Now      time.Time
}

// Age returns the time since a moment in its largest unit, or "" for the zero time.
func (f frame) Age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return terminal.Age(f.Now.Sub(since))
}

// frame must be called before the content of the page is read: later changes make a new version.
func (s *Server) frame(title, task string) frame {
	at, _ := s.hub.version()
	return frame{Title: title, Name: s.options.Name, At: at, ReadOnly: s.options.ReadOnly, Commands: s.commandsOf(task), Now: s.options.Source.Now()}
}

// render sends a page.
func (s *Server) render(w http.ResponseWriter, name string, data any) {
	s.renderAfter(w, name, data, func() {})
}

// renderAfter sends a page after it called ready, when the data is no longer in use.
func (s *Server) renderAfter(w http.ResponseWriter, name string, data any, ready func()) {
	var page bytes.Buffer
	err := templates().ExecuteTemplate(&page, name, data)
	ready()
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = page.WriteTo(w) // the browser has gone
}

// fail reports why a page cannot be shown.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, board.ErrNoTask) {
		status = http.StatusNotFound
	}
	refuse(w, status, visible(terminal.PrintableLines(err.Error())))
}

// section is a part of the board.
type section struct {
	Name  string
	Cards []board.Card
}

func (s *Server) showBoard(w http.ResponseWriter, r *http.Request) {
	f := s.frame("Board", "")
	cards, err := s.options.Source.Cards()
	if err != nil {
		s.fail(w, err)
		return
	}
	sections := []section{}
	for at := board.NeedsYou; at <= board.Landed; at++ {
		of := slices.DeleteFunc(slices.Clone(cards), func(c board.Card) bool { return c.Section != at })
		sections = append(sections, section{at.String(), of})
	}
	page := struct {
		frame
		Sections []section
		Forms    []form
		Add      string // nonce
	}{f, sections, s.forms(r, board.Card{}, ""), s.guard.nonce(r, "/tasks")}
	s.render(w, "board", page)
}

// spent is a row of the costs.
type spent struct {
	board.Card
	Day    string
	Tokens int64
}

func (s *Server) showCosts(w http.ResponseWriter, _ *http.Request) {
	f := s.frame("Costs", "")
	cards, err := s.options.Source.All()
	if err != nil {
		s.fail(w, err)
		return
	}
	charges, err := s.options.Source.Charges(f.Now.Add(-7 * 24 * time.Hour))
	if err != nil {
		s.fail(w, err)
		return
	}
	day, err := s.options.Source.Today()
	if err != nil {
		s.fail(w, err)
		return
	}
	page := struct {
		frame
		Day         budget.Day
		Today, Week spending.Sum
		Total       float64
		Rows        []spent
	}{frame: f, Day: day, Today: spending.Of(spending.On(f.Now, charges)), Week: spending.Of(charges)}
	for _, c := range cards {
		usd := c.Cost
		page.Total += usd
		if c.View.Used.Tokens > 0 || usd > 0 {
			page.Rows = append(page.Rows, spent{c, c.View.Updated.Local().Format(time.DateOnly), c.View.Used.Tokens})
		}
	}
	slices.SortStableFunc(page.Rows, func(a, b spent) int { return cmp.Compare(b.Day, a.Day) })
	s.render(w, "costs", page)
}

// question is a tool call that waits for an answer.
type question struct {
	session.Approval
	Text  string
	Forms []form // that answer it
}

func (s *Server) showTask(w http.ResponseWriter, r *http.Request) {
	f := s.frame("", r.PathValue("task"))
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	if f.Title = c.Title; c.Begun() {
		f.Stream = streamOf(c)
	}
	page := struct {
		frame
		Card      board.Card
		Forms     []form
		Questions []question
		Findings  []event.Finding
	}{frame: f, Card: c, Forms: s.forms(r, c, c.Task), Findings: c.View.Open}
	for _, q := range c.View.OpenApprovals() {
		page.Questions = append(page.Questions, question{Approval: q, Text: terminal.Approval(q.Approval), Forms: s.answerForms(r, c, q.N)})
	}
	s.render(w, "task", page)
}

// showLog sends the story of a session as text, for browsers without scripts.
func (s *Server) showLog(w http.ResponseWriter, r *http.Request) {
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	events, err := session.Events(c.View.Dir)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, e := range events {
		if _, err := w.Write([]byte(visible(terminal.Lines(e)))); err != nil {
			return
		}
	}
}
