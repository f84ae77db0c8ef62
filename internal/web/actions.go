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
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// form is an action with the command line that does the same.
type form struct {
	Name    string
	Line    string // command line
	Path    string // where it is sent
	Nonce   string
	Confirm string // a question before it
	Ask     string // a question for a text
	Text    string // to begin with
	Must    bool   // the text must not be empty
}

// forms returns the actions for a card that need no terminal: those of the repository if task is empty.
func (s *Server) forms(r *http.Request, c board.Card, task string) (all []form) {
	if s.options.ReadOnly {
		return nil
	}
	for _, a := range board.Actions() {
		if a.Inside || (a.When == nil) != (task == "") || task != "" && !a.When(c) {
			continue
		}
		args := a.Args(c)
		if a.Ask != "" {
			args = append(args, "TEXT")
		}
		path := "/do/" + a.Key
		if task != "" {
			path = taskPath(task) + path
		}
		all = append(all, s.form(r, form{Name: a.Name, Line: lineOf(args), Path: path, Confirm: a.Confirm, Ask: a.Ask, Must: a.Ask != ""}))
	}
	return all
}

func (s *Server) form(r *http.Request, f form) form {
	path, _ := url.PathUnescape(f.Path) // it was escaped here
	f.Nonce = s.guard.nonce(r, path)
	return f
}

func (s *Server) budgetForm(r *http.Request, c board.Card) form {
	more := c.View.More
	if more == "" {
		more = "usd=+5"
	}
	return s.form(r, form{Name: "resume", Line: lineOf([]string{"resume", c.Task, "--budget", more}), Path: taskPath(c.Task) + "/budget", Ask: "add to the budget", Text: more, Must: true})
}

func (s *Server) answerForm(r *http.Request, c board.Card, n int, answer string) form {
	f := form{Name: answer, Line: lineOf(answerArgs(c.Task, n, answer, "")), Path: taskPath(c.Task) + "/approvals/" + strconv.Itoa(n) + "/" + answer}
	if answer == "deny" {
		f.Ask = "reason for the agent"
	}
	return s.form(r, f)
}

func answerArgs(task string, n int, answer, reason string) []string {
	args := []string{"approvals", answer, task, strconv.Itoa(n)}
	if reason != "" {
		args = append(args, "--reason", reason)
	}
	return args
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
		if i = slices.IndexFunc(all, func(a board.Action) bool { return a.When(c) }); i < 0 {
			refuse(w, http.StatusConflict, all[len(all)-1].Name+" is not possible for this task now: it is "+c.State)
			return
		}
	}
	args := all[i].Args(c)
	if all[i].Ask != "" {
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

func (s *Server) addBudget(w http.ResponseWriter, r *http.Request) {
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	if !waitsForBudget(c) {
		refuse(w, http.StatusConflict, "this task does not wait for a budget: it is "+c.State)
		return
	}
	s.run(w, r, c.Task, []string{"resume", c.Task, "--budget", textOf(r, "text")})
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("n"))
	answer := r.PathValue("answer")
	if err != nil || answer != "approve" && answer != "deny" {
		refuse(w, http.StatusNotFound, "there is no such answer")
		return
	}
	c, err := s.options.Source.Find(r.PathValue("task"))
	if err != nil {
		s.fail(w, err)
		return
	}
	for _, q := range c.View.Approvals {
		if q.N == n && !q.Open() {
			refuse(w, http.StatusConflict, "this question has an answer: "+answered(*q.Answer))
			return
		}
	}
	reason := ""
	if answer == "deny" {
		reason = textOf(r, "text")
	}
	s.run(w, r, c.Task, answerArgs(c.Task, n, answer, reason))
}

func answered(a event.ApprovalAnswer) string {
	if a.By == "" {
		return string(a.Answer)
	}
	return visible(terminal.Printable(string(a.Answer) + " by " + a.By))
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

func lineOf(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shellword.Word(arg)
	}
	return visible(terminal.Printable("coven " + strings.Join(words, " ")))
}

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
		c.result, c.failed = resultOf(output, err), err != nil
		s.mu.Unlock()
		s.hub.tell()
	}()
	to := "/"
	if task != "" {
		to = taskPath(task)
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// resultOf returns the last line of an output, without its next command.
func resultOf(output string, err error) string {
	lines := slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool { return line == "" || line[0] == ' ' })
	result := "done"
	if len(lines) > 0 {
		result = lines[len(lines)-1]
	}
	if err != nil {
		result += " (" + err.Error() + ")"
	}
	return visible(terminal.Printable(result))
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
