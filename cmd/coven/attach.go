package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
)

func newAttach(a *app) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "attach TASK",
		Short: "Watch the agent at work on a task, and tell it something",
		Long: `Watch what the agent at work says and does. Each line that you type is told to
it: it hears it after its present step, and its work is not over before it has
answered. A line that is typed while no agent works waits for the next one.
Ctrl-C ends the watching, not the work.`,
		Example: `  coven attach bd-12
  coven attach bd-12 -m "use the existing parser"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeTasks(underWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			v, err := h.find(args[0])
			if err != nil {
				return err
			}
			if v.Status != session.Running {
				return exit.Personf("coven why "+shellword.Word(v.Task), "task %s: no agent is at work: it is %s", v.Task, stateText(v))
			}
			w := &visitor{app: a, house: h, view: v, sent: map[string]string{}}
			if cmd.Flags().Changed("message") {
				return w.tell(cmd.Context(), message)
			}
			return w.stay(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "tell the agent this `TEXT`, and return when it was told")
	return cmd
}

// visitor watches a session that another process runs, and talks to its agent.
type visitor struct {
	app   *app
	house *house
	view  session.View
	sent  map[string]string // file of a message that was not taken yet -> its text
}

// tell sends one message and returns when the agent was told.
func (w *visitor) tell(ctx context.Context, text string) error {
	if err := w.send(text); err != nil {
		return err
	}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		now, err := session.Load(w.view.Dir)
		if err != nil {
			return err
		}
		if w.waiting() == 0 {
			return w.app.say("told\n")
		}
		if now.Status != session.Running && w.withdraw() > 0 {
			return exit.Failedf("coven why "+shellword.Word(w.view.Task), "the agent was not told: task %s is %s", w.view.Task, stateText(now))
		}
		select {
		case <-ctx.Done():
			if w.withdraw() > 0 {
				return fmt.Errorf("the agent was not told: %w", context.Cause(ctx))
			}
		case <-ticker.C:
		}
	}
}

// stay shows what happens until the session stops, and sends what is typed.
func (w *visitor) stay(ctx context.Context) error {
	events := newSpectator(w.app, w.view)
	typed := w.typed(ctx)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		now, err := events.show()
		if err != nil {
			return err
		}
		if now.Status != session.Running {
			return w.leave(now)
		}
		select {
		case <-ctx.Done():
			return w.leave(now)
		case line, more := <-typed:
			if !more {
				typed = nil
			} else if err := w.send(line); err != nil {
				return err
			}
		case <-ticker.C:
		}
	}
}

// typed are the lines of the input that are not blank.
func (w *visitor) typed(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(w.app.in)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			if strings.TrimSpace(in.Text()) == "" {
				continue
			}
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// leave says how the session is, and takes back what no agent was told.
func (w *visitor) leave(now session.View) error {
	for file, text := range w.sent {
		if session.Withdraw(file) {
			if err := w.app.say("not told: %s\n", terminal.Printable(text)); err != nil {
				return err
			}
		}
	}
	return w.app.say("%s  %s\n", terminal.Printable(now.Task), stateText(now))
}

func (w *visitor) send(text string) error {
	file, err := sendMessage(w.house, w.view, text)
	w.sent[file] = text
	return err
}

// waiting is how many messages no agent was told yet.
func (w *visitor) waiting() int {
	for file := range w.sent {
		if !session.Asked(file) {
			delete(w.sent, file)
		}
	}
	return len(w.sent)
}

// withdraw takes back what no agent was told yet, and says how many.
func (w *visitor) withdraw() int {
	n := 0
	for file := range w.sent {
		if session.Withdraw(file) {
			n++
		}
	}
	return n
}
