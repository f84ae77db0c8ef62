package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/terminal"
)

// createOptions are the options of the commands that create a chat without messages.
type createOptions struct {
	app         *cli.App
	title       string
	message     string
	options     control.Options
	unsandboxed bool
}

func newNew(a *cli.App) *cobra.Command {
	o := &createOptions{app: a}
	cmd := &cobra.Command{
		Use: "new", Short: "Create a session for a chat, and print its ID",
		Long: `Create a session in which nothing is said yet, with a worktree of its own, and print its ID. It is
the same as a session of coven chat: coven chat --session ID sends the first message.`,
		Example: `  id=$(coven sessions new --agent build --title "Where are passwords checked?")
  coven chat --session "$id" -m "Where are passwords checked?"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if strings.TrimSpace(o.title) == "" {
				return exit.Usagef("coven sessions new", "--title is empty")
			}
			return o.create(cmd.Context(), func(ctx context.Context, c *control.Controller) (control.Outcome, error) {
				return c.CreateChat(ctx, o.title, o.options)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.options.Agent, "agent", "", "the `NAME` of the agent (default: the setting default_agent, else build)")
	f.StringVar(&o.options.Provider, "provider", "", "the `NAME` of the provider that drives the agents, or MODEL-loop (default: the setting provider, else claude)")
	f.StringVar(&o.options.Model, "model", "", "the `NAME` of the agents' model (default sonnet; codex and qwen: their own)")
	f.StringVar(&o.title, "title", "New chat", "the `TITLE` of the chat, of which its IDs are made")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.CompleteFlag(cmd, "agent", a.CompleteWords(cli.AgentNames))
	cli.CompleteFlag(cmd, "model", cli.CompleteList("sonnet", "haiku", "opus"))
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	return cmd
}

func newFork(a *cli.App) *cobra.Command {
	o := &createOptions{app: a}
	cmd := &cobra.Command{
		Use: "fork SESSION", Short: "Create a chat that begins with the messages of a session",
		Long: `Create a chat that begins with the messages of a session up to one, and print its ID. Its agent
knows them, and has a worktree of its own with the files of that moment, as far as coven has
saved them. coven chat --session ID continues. The other session stays as it is; it may be
running.

Only conversations of coven's own loop can be forked: an agent CLI keeps its conversation
itself. Agent, provider and model stay the same; permissions and settings are those of today.`,
		Example: `  coven sessions messages p-fix-the-login
  coven sessions fork p-fix-the-login --at 8f6f7c1e`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.create(cmd.Context(), func(ctx context.Context, c *control.Controller) (control.Outcome, error) {
				return c.ForkChat(ctx, args[0], o.message, o.options)
			})
		},
	}
	cmd.Flags().StringVar(&o.message, "at", "", "the `ID` of the last message to keep, or its beginning (default: the last one)")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.Once(cmd, "at")
	return cmd
}

// create creates a chat and prints the ID of its session. Everything else goes to standard error.
func (o *createOptions) create(ctx context.Context, do func(context.Context, *control.Controller) (control.Outcome, error)) error {
	c, err := o.app.Controller(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.unsandboxed {
		if err := c.AcceptUnsandboxed(); err != nil {
			return err
		}
	}
	stop := o.app.Watch(c, false, func(event.Event) string { return "" })
	defer stop()
	c.Observer.Ended = nil
	c.Observer.Notice = func(n control.Notice) { fmt.Fprintln(o.app.Err, terminal.Printable(n.Text)) } //nolint:errcheck // nothing else can report it
	c.NewChat()
	outcome, err := do(ctx, c)
	stop()
	if err != nil {
		return err
	}
	if err := o.app.Printf("%s\n", terminal.Printable(outcome.Session)); err != nil {
		return err
	}
	if !outcome.WaitsInChat(event.Session{Chat: true}) {
		return &exit.Error{Exit: outcome.ExitCode(), Next: outcome.Next, Err: fmt.Errorf("session %s is %s: %s", outcome.Session, outcome.Status, outcome.Detail)} //nolint:err113 // for a person
	}
	_, err = fmt.Fprintf(o.app.Err, "  next: %s\n", terminal.Printable(control.ChatCommand(outcome.Session)))
	return cli.WriteError(err)
}
