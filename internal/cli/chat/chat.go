// Package chat implements coven chat, a conversation with an agent in a separate worktree.
package chat

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

type chatOptions struct {
	app         *cli.App
	message     string
	session     string
	options     control.Options
	json        bool
	unsandboxed bool
}

// NewChat returns the command coven chat.
func NewChat(a *cli.App) *cobra.Command {
	o := &chatOptions{app: a}
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Talk with an agent, in a worktree of its own",
		Long: `Talk with an agent. It works in a worktree of its own, may start other agents, and asks for
approval as in coven run. With -m, or a message on standard input: one turn, whose answer is
printed.

coven commits what the agent changes after each turn. The chat can be continued with
--session until you approve or reject its change; coven review shows it.

Enter sends a message, Alt-Enter starts a new line. Messages that you send during a turn
are queued. Ctrl-C stops a turn, not the chat. Ctrl-D or /exit leaves.`,
		Example: `  coven chat
  coven chat -m "Where are passwords checked?"
  coven chat --session 2026-01-02-where-are-passwords-checked -m "And tokens?"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.options.Agent, "agent", "", "the `NAME` of the agent (default: the setting default_agent, else build)")
	f.StringVarP(&o.message, "message", "m", "", "say `TEXT`, print the answer, and end")
	f.StringVar(&o.session, "session", "", "continue the chat with this `ID`")
	f.StringVar(&o.options.Provider, "provider", "", "the `NAME` of the provider that drives the agents, or MODEL-loop (default: the setting provider, else claude)")
	f.StringVar(&o.options.Model, "model", "", "the `NAME` of the agents' model (default sonnet; others: their own)")
	f.BoolVar(&o.json, "json", false, "print events as JSON lines")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.Once(cmd, "message")
	cmd.MarkFlagsMutuallyExclusive("session", "agent")
	cmd.MarkFlagsMutuallyExclusive("session", "provider")
	cmd.MarkFlagsMutuallyExclusive("session", "model")
	cli.CompleteFlag(cmd, "agent", a.CompleteWords(cli.AgentNames))
	cli.CompleteFlag(cmd, "model", cli.CompleteList("sonnet", "haiku", "opus"))
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	return cmd
}

func (o *chatOptions) run(ctx context.Context) error {
	if err := o.readMessage(); err != nil {
		return err
	}
	p, err := o.app.Open(ctx)
	if err != nil {
		return err
	}
	if o.options.Onto, err = control.TargetBranch(ctx, p, ""); err != nil && o.session == "" {
		return err
	}
	c, err := control.New(p)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.unsandboxed {
		if err := c.AcceptUnsandboxed(); err != nil {
			return err
		}
	}
	view := session.View{}
	if o.session != "" {
		if view, err = c.Chat(ctx, o.session); err != nil {
			return err
		}
	}
	c.NewChat()
	stop := o.app.Watch(c, o.json, o.draw)
	defer stop()
	c.Observer.Ended = nil // the turns print their results
	t := &conversation{chatOptions: o, controller: c, view: view}
	if o.message != "" {
		err = t.once(ctx)
	} else {
		err = t.talk(ctx)
	}
	stop()
	return t.end(err)
}

// readMessage reads the message from the input if the command line has none and the user cannot be asked.
func (o *chatOptions) readMessage() error {
	if o.message != "" || o.app.Interactive && !o.json {
		return nil
	}
	text, err := o.app.Piped(task.MaxText)
	if err != nil {
		return err
	}
	if o.message = strings.TrimSpace(text); o.message == "" {
		return exit.Usagef(`coven chat -m "..."`, "there is no message: without a terminal, give it with -m or on standard input")
	}
	return nil
}
