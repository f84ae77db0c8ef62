// Package attach is coven attach: it shows an agent at work and sends it messages.
package attach

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
)

// NewAttach returns the command coven attach.
func NewAttach(a *cli.App) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "attach TASK",
		Short: "Watch the agent working on a task and send it messages",
		Long: `Watch what the agent says and does. Each line you type is sent to the agent: it
reads the line after its current step and answers before it finishes. A line typed
while no agent is working waits for the next one. Ctrl-C stops watching; the agent
keeps working.`,
		Example: `  coven attach bd-12
  coven attach bd-12 -m "use the existing parser"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.UnderWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			v, err := p.Find(args[0])
			if err != nil {
				return err
			}
			if v.Status != session.Running {
				return exit.Personf("coven why "+shellword.Word(v.Task), "task %s: no agent is at work: it is %s", v.Task, control.StateOf(v))
			}
			w := &attachment{app: a, project: p, view: v, sent: map[string]string{}}
			if cmd.Flags().Changed("message") {
				return w.sendAndWait(cmd.Context(), message)
			}
			return w.follow(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "send the agent this `TEXT` and return once it has read it")
	return cmd
}

// attachment watches a session that another process runs, and talks to its agent.
type attachment struct {
	app     *cli.App
	project *project.Project
	view    session.View
	sent    map[string]string // file of a message that was not taken yet -> its text
}

// sendAndWait sends one message and returns when the agent was told.
func (w *attachment) sendAndWait(ctx context.Context, text string) error {
	if err := w.send(text); err != nil {
		return err
	}
	ticker := time.NewTicker(cli.FollowEvery)
	defer ticker.Stop()
	for {
		now, err := session.Load(w.view.Dir)
		if err != nil {
			return err
		}
		if w.waiting() == 0 {
			return w.app.Printf("told\n")
		}
		if now.Status != session.Running && w.withdraw() > 0 {
			return exit.Failedf("coven why "+shellword.Word(w.view.Task), "message not sent: task %s is %s", w.view.Task, control.StateOf(now))
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

// follow shows what happens until the session stops, and sends what is typed.
func (w *attachment) follow(ctx context.Context) error {
	events := cli.NewSpectator(w.app, w.view)
	typed := w.typed(ctx)
	ticker := time.NewTicker(cli.FollowEvery)
	defer ticker.Stop()
	for {
		now, err := events.Show()
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
func (w *attachment) typed(ctx context.Context) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		in := bufio.NewScanner(w.app.In)
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
func (w *attachment) leave(now session.View) error {
	for file, text := range w.sent {
		if session.Withdraw(file) {
			if err := w.app.Printf("not told: %s\n", terminal.Printable(text)); err != nil {
				return err
			}
		}
	}
	return w.app.Printf("%s  %s\n", terminal.Printable(now.Task), control.StateOf(now))
}

func (w *attachment) send(text string) error {
	file, err := control.SendMessage(w.project, w.view, text)
	w.sent[file] = text
	return err
}

// waiting is how many messages no agent was told yet.
func (w *attachment) waiting() int {
	for file := range w.sent {
		if !session.Asked(file) {
			delete(w.sent, file)
		}
	}
	return len(w.sent)
}

// withdraw takes back what no agent was told yet, and says how many.
func (w *attachment) withdraw() int {
	n := 0
	for file := range w.sent {
		if session.Withdraw(file) {
			n++
		}
	}
	return n
}
