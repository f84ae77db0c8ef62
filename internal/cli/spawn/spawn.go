// Package spawn implements coven spawn, which starts one agent for one task.
package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/agent/spawn"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/mcp"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

type spawnOptions struct {
	app         *cli.App
	request     spawn.Request
	permissions []string
	provider    string
	onto        string
	json        bool
	unsandboxed bool
}

// NewSpawn returns the command coven spawn.
func NewSpawn(a *cli.App) *cobra.Command {
	o := &spawnOptions{app: a}
	cmd := &cobra.Command{
		Use:   "spawn AGENT TEXT",
		Short: "Start one agent for one task, and print its report",
		Long: `Start an agent for one task, in a worktree of its own, and print its report. The agent sees
its own prompt and TEXT; - stands for standard input. It may do what its definition says, and no more than coven grants by
itself.

What it changed stays on the task's branch, and the session waits for coven approve.
coven agents list shows the agents.`,
		Example: `  coven spawn code-reviewer "Review the error handling of internal/auth"
  coven spawn test-generator "Write tests for parse.go" --model haiku`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: a.CompleteWords(cli.AgentNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			o.request.Agent = args[0]
			if o.request.Task, err = a.TextArgument(cmd, args[1]); err != nil {
				return err
			}
			if cmd.Flags().Changed("permission") {
				o.request.Permissions = &o.permissions
			}
			if mcp.InAgent(a.Getenv) {
				return o.ask(cmd.Context())
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.permissions, "permission", nil, "restrict it to the permission `NAME`; may be given several times")
	f.StringVar(&o.request.Model, "model", "", "the `NAME` of its model (default: that of its definition, else sonnet)")
	f.StringVar(&o.request.TaskID, "task-id", "", "a short `NAME` for its record (default: from the task)")
	f.StringVar(&o.provider, "provider", "", "the `NAME` of the provider that drives it (default: that of its definition, else claude)")
	f.StringVar(&o.onto, "onto", "", "the `BRANCH` to land on (default: the one checked out)")
	f.BoolVar(&o.json, "json", false, "print events as JSON lines")
	cli.UnsandboxedFlag(cmd, &o.unsandboxed)
	cli.CompleteFlag(cmd, "model", cli.CompleteList("sonnet", "haiku", "opus"))
	cli.CompleteFlag(cmd, "provider", a.CompleteWords(cli.ProviderNames))
	cli.CompleteFlag(cmd, "onto", a.CompleteWords(cli.Branches))
	return cmd
}

// ask sends the request to the coven that runs the agent of this process.
func (o *spawnOptions) ask(ctx context.Context) error {
	text, err := mcp.Call(ctx, o.app.Getenv, o.app.Version, "spawn_agent", o.request)
	if err != nil {
		return exit.Failedf("", "%w", err)
	}
	return o.app.Printf("%s\n", strings.TrimSpace(terminal.PrintableLines(text)))
}

func (o *spawnOptions) run(ctx context.Context) error {
	p, err := o.app.Open(ctx)
	if err != nil {
		return err
	}
	branch, err := control.TargetBranch(ctx, p, o.onto)
	if err != nil {
		return err
	}
	c, err := control.New(p)
	if err != nil {
		return tooDeep(err)
	}
	defer c.Close()
	if o.unsandboxed {
		if err := c.AcceptUnsandboxed(); err != nil {
			return err
		}
	}
	stop := o.app.Watch(c, o.json, terminal.Lines)
	defer stop()
	outcome, err := c.Spawn(ctx, grimoires.SpawnRequest(o.request), control.Options{Provider: o.provider, Onto: branch})
	if err != nil {
		return err
	}
	stop()
	if !o.json {
		if err := o.show(ctx, c, outcome); err != nil {
			return err
		}
	}
	return cli.ExitStatus(outcome, nil)
}

// tooDeep replaces the error of an agent's command by the depth limit, if the agent has reached it.
func tooDeep(err error) error {
	by := (*control.AgentError)(nil)
	if !errors.As(err, &by) {
		return err
	}
	return cmp.Or(spawn.Admission{MaxDepth: spawn.MaxDepth}.Descend(by.Depth), err)
}

// show prints the reports, and where the record is.
func (o *spawnOptions) show(ctx context.Context, c *control.Controller, outcome control.Outcome) error {
	v, err := c.Project.SessionOf(ctx, outcome.Session)
	if err != nil {
		return err
	}
	for _, s := range v.Subagents {
		if s.Error != nil { // also errors of nested subagents
			text := fmt.Sprintf("%s failed: %s: %s\n%s", s.Agent, s.Error.Type, s.Error.Message, spawn.Attribution(s.TraceID, s.ParentChain, s.Task))
			if _, err := fmt.Fprintln(o.app.Err, terminal.PrintableLines(text)); err != nil {
				return cli.WriteError(err)
			}
		}
		if text := s.Verdict(); text != "" {
			if err := o.app.Printf("%s\n\n", terminal.Printable(text)); err != nil {
				return err
			}
		}
		if s.Report != "" {
			if err := o.app.Printf("%s\n\n", strings.TrimSpace(terminal.PrintableLines(s.Report))); err != nil {
				return err
			}
		}
	}
	return o.app.Printf("Session: %s/%s\n", session.Dir, outcome.Session)
}
