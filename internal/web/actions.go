package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/board"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
)

// form is an action with the command line that does the same.
type form struct {
	Name    string
	Line    string // command line
	Path    string // where it is sent
	Nonce   string
	Confirm string // a question before it
	Ask     string // a question for a text, which must not be empty
	Text    string // to begin with
}

// forms returns the actions for a card that need no terminal and are not about a question: those of the repository if task is empty.
func (s *Server) forms(r *http.Request, c board.Card, task string) (all []form) {
	if s.options.ReadOnly {
		return nil
	}
	c = about(c, 0)
	for _, a := range board.Actions() {
		if a.Inside || (a.When == nil) != (task == "") || task != "" && !a.When(c) {
			continue
		}
		path := "/do/" + a.Key
		if task != "" {
			path = taskPath(task) + path
		}
		all = append(all, s.actionForm(r, a, c, path))
	}
	return all
}

// answerForms returns the actions that answer a question. They ask for no confirmation: the question is beside them.
func (s *Server) answerForms(r *http.Request, c board.Card, n int) (all []form) {
	if s.options.ReadOnly {
		return nil
	}
	c = about(c, n)
	for _, a := range board.Actions() {
		if answers(a, c) {
			a.Confirm = ""
			all = append(all, s.actionForm(r, a, c, taskPath(c.Task)+"/questions/"+strconv.Itoa(n)+"/"+a.Key))
		}
	}
	return all
}

// about returns a card whose only question is the one with a number.
func about(c board.Card, n int) board.Card {
	c.View.Approvals = slices.DeleteFunc(slices.Clone(c.View.Approvals), func(q session.Approval) bool { return q.N != n })
	return c
}

// answers reports whether an action answers the question of a card.
func answers(a board.Action, c board.Card) bool {
	return !a.Inside && a.When != nil && a.When(c) && !a.When(about(c, 0))
}

func (s *Server) actionForm(r *http.Request, a board.Action, c board.Card, path string) form {
	args, text := a.Args(c), ""
	if a.Ask != "" {
		args = append(args, "TEXT")
	}
	if a.Suggest != nil {
		text = a.Suggest(c)
	}
	return s.form(r, form{Name: a.Name, Line: lineOf(args), Path: path, Confirm: a.Confirm, Ask: a.Ask, Text: text})
}

func (s *Server) form(r *http.Request, f form) form {
	path, _ := url.PathUnescape(f.Path) // it was escaped here
	f.Nonce = s.guard.nonce(r, path)
	return f
}

// act does the action of a key, for a task or the repository.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	task, key, c := r.PathValue("task"), r.PathValue("key"), board.Card{}
	all := board.Actions()
	all = slices.DeleteFunc(all, func(a board.Action) bool { return a.Key != key || a.Inside || (a.When == nil) != (task == "") })
	if len(all) == 0 {
		refuse(w, http.StatusNotFound, "there is no such action")
		return
	}
	i := 0
	if task != "" {
		var err error
		if c, err = s.options.Source.Find(task); err != nil {
			s.fail(w, err)
			return
		}
		c = about(c, 0)
		if i = slices.IndexFunc(all, func(a board.Action) bool { return a.When(c) }); i < 0 {
			refuse(w, http.StatusConflict, all[len(all)-1].Name+" is not possible for this task now: it is "+c.State)
			return
		}
	}
	s.runAction(w, r, all[i], c)
}

// runAction runs the command line of an action, with the text of the form if it asks for one.
func (s *Server) runAction(w http.ResponseWriter, r *http.Request, a board.Action, c board.Card) {
	args := a.Args(c)
	if a.Ask != "" {
		text := textOf(r, "text")
		if text == "" {
			refuse(w, http.StatusUnprocessableEntity, "nothing was done: the text is empty")
			return
		}
		args = append(args, text)
	}
	s.run(w, r, c.Task, args)
}

// textOf returns a value of a form, with the line ends of Unix.
func textOf(r *http.Request, name string) string {
	return strings.TrimSpace(strings.ReplaceAll(r.PostForm.Get(name), "\r\n", "\n"))
}

func (s *Server) addTask(w http.ResponseWriter, r *http.Request) {
	args := []string{"task", "add"}
	if text := textOf(r, "description"); text != "" {
		args = append(args, "--description", text)
	}
	for line := range strings.SplitSeq(textOf(r, "accept"), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			args = append(args, "--accept", line)
		}
	}
	title := textOf(r, "title")
	if title == "" || title == "-" {
		refuse(w, http.StatusUnprocessableEntity, "nothing was done: the title is empty")
		return
	}
	s.run(w, r, "", append(args, "--", title))
}

// answer does the action of a key for a question.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	n, _ := strconv.Atoi(r.PathValue("n")) // there is no question 0
	c = about(c, n)
	for _, q := range c.View.Approvals {
		if !q.Open() {
			refuse(w, http.StatusConflict, "this question has an answer: "+answered(*q.Answer))
			return
		}
	}
	for _, a := range board.Actions() {
		if a.Key == r.PathValue("key") && answers(a, c) {
			s.runAction(w, r, a, c)
			return
		}
	}
	refuse(w, http.StatusNotFound, "there is no such question or answer")
}

func answered(a event.ApprovalAnswer) string {
	if a.By == "" {
		return string(a.Answer)
	}
	return printable(string(a.Answer) + " by " + a.By)
}

// command is a command line that the page has started.
type command struct {
	line   string
	task   string // empty if it concerns none
	at     time.Time
	result string // empty while it runs
	failed bool
}

type shownCommand struct {
	Line, Result string
	At           time.Time
	Failed       bool
}

// maxCommands is the number of command lines that the page lists.
const maxCommands = 20

func lineOf(args []string) string { return printable(board.CommandLine(args)) }

// run starts a command line, and sends the browser back to the page of the task or the board.
func (s *Server) run(w http.ResponseWriter, r *http.Request, task string, args []string) {
	c := &command{line: lineOf(args), task: task, at: s.options.Source.Now()}
	wait, err := s.options.Source.Start(args)
	if err != nil {
		s.fail(w, err)
		return
	}
	s.mu.Lock()
	s.commands = append(s.commands, c)
	s.commands = s.commands[max(len(s.commands)-maxCommands, 0):]
	s.mu.Unlock()
	go func() {
		output, err := wait()
		s.mu.Lock()
		text, failed := board.Result(output, err)
		c.result, c.failed = printable(text), failed
		s.mu.Unlock()
		s.hub.tell()
	}()
	to := "/"
	if task != "" {
		to = taskPath(task)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// commandsOf returns the last command lines of a task, or of all if task is empty, the newest first.
func (s *Server) commandsOf(task string) (shown []shownCommand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Backward(s.commands) {
		if task == "" || c.task == task {
			shown = append(shown, shownCommand{c.line, c.result, c.at, c.failed})
		}
	}
	return shown
}

func streamOf(c board.Card) string {
	return url.Values{"task": {c.Task}, "session": {c.View.ID}}.Encode()
}
