// Package attach implements coven attach, which shows a running agent and sends it messages.
package attach

import (
	"bufio"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
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
keeps working. With -m, a task that waits for review continues as with coven revise.

If another machine runs the task, see coven status --remote, coven shows the events up to the end of the
last step, and that machine gets the message of -m at the end of the present one, or after a few minutes.`,
		Example: `  coven attach bd-12
  coven attach bd-12 -m "use the existing parser"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.CompleteTasks(cli.UnderWay),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.Open(cmd.Context())
			if err != nil {
				return err
			}
			a.Mirror(cmd.Context(), p)
			c := &control.Controller{Project: p}
			if cmd.Flags().Changed("message") {
				v, err := p.Find(cmd.Context(), args[0])
				switch {
				case err == nil && control.WaitsForReview(v):
					return revise(cmd.Context(), a, v, message)
				case err == nil && v.Elsewhere() && v.Status == session.Running:
					return send(cmd.Context(), a, p, v, message)
				}
				if err := c.Deliver(cmd.Context(), args[0], message); err != nil {
					return err
				}
				return a.Printf("delivered\n")
			}
			v, err := c.Attach(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if v.Elsewhere() {
				return show(a, v)
			}
			return (&attachment{app: a, controller: c, view: v}).follow(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "send the agent this `TEXT` and return once it has read it")
	cli.Once(cmd, "message")
	return cmd
}

// revise sends a message to the agent of a task that waits for review, and continues the session.
func revise(ctx context.Context, a *cli.App, v session.View, message string) error {
	return a.WithController(ctx, func(c *control.Controller) error {
		return a.Revise(ctx, c, control.ReviseRequest{Task: v.Task, Seen: v, Comments: []string{message}})
	})
}

// send sends a message to the agent of a session that another machine runs.
func send(ctx context.Context, a *cli.App, p *project.Project, v session.View, message string) error {
	if err := control.HideSecrets(p); err != nil {
		return err
	}
	if err := handover.Send(ctx, p, v, message); err != nil {
		return err
	}
	return a.Printf("sent to %s, where the agent gets it after the present step, or in a few minutes\n", terminal.Printable(v.Away.Machine))
}

// show prints the events of a session that another machine runs, as far as they are known.
func show(a *cli.App, v session.View) error {
	if _, err := cli.NewSpectator(a, v).Show(); err != nil {
		return err
	}
	ago := max(a.Now().Sub(v.Updated), 0).Round(time.Second)
	return a.Printf("%s  %s on %s: its events up to the end of the last step, %s ago\n  next: coven attach %s -m TEXT\n",
		terminal.Printable(v.Task), control.StateOf(v), terminal.Printable(v.Away.Machine), ago, terminal.Printable(shellword.Word(v.Task)))
}

// attachment watches a session that another process runs, and sends messages to its agent.
type attachment struct {
	app        *cli.App
	controller *control.Controller
	view       session.View
	sent       []control.Message
}

// follow prints events until the session stops, and sends the lines that the user types.
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

// typed returns the lines of the input that are not blank.
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

// leave withdraws the messages that no agent has acknowledged, and prints them and the
// state of the session.
func (w *attachment) leave(now session.View) error {
	for _, m := range w.sent {
		if m.Withdraw() {
			if err := w.app.Printf("not delivered: %s\n", terminal.Printable(m.Text)); err != nil {
				return err
			}
		}
	}
	return w.app.Printf("%s  %s\n", terminal.Printable(now.Task), control.StateOf(now))
}

func (w *attachment) send(text string) error {
	m, err := w.controller.Send(w.view, text)
	if err == nil {
		w.sent = append(w.sent, m)
	}
	return err
}
