// Package root combines all commands into the command line of coven.
package root

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/cli/attach"
	"github.com/coven-run/coven/internal/cli/doctor"
	"github.com/coven-run/coven/internal/cli/grimoire"
	"github.com/coven-run/coven/internal/cli/logs"
	"github.com/coven-run/coven/internal/cli/plugin"
	"github.com/coven-run/coven/internal/cli/resume"
	"github.com/coven-run/coven/internal/cli/review"
	"github.com/coven-run/coven/internal/cli/run"
	"github.com/coven-run/coven/internal/cli/setup"
	"github.com/coven-run/coven/internal/cli/status"
	"github.com/coven-run/coven/internal/cli/task"
	"github.com/coven-run/coven/internal/cli/trust"
	"github.com/coven-run/coven/internal/cli/worktree"
	"github.com/coven-run/coven/internal/exit"
)

// NewRoot returns the command coven with all its subcommands.
func NewRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		SuggestionsMinimumDistance: 2,

		Use:   "coven",
		Short: "Turn tasks into merged, verified changes with coding agents",
		Long: `coven takes tasks, gives each its own git worktree, runs a workflow in it whose
agent steps are the Claude Code CLI, checks the result, shows it to you, and
lands exactly what was checked. Your own checkout is never switched, stashed or
overwritten.

  coven run -p "add a --version flag"    a task of one sentence, no set-up
  coven task add "Fix the login bug"     a task in the repository's tracker
  coven run -j 4                         run what is ready, four at once
  coven status                           what is going on, and what is next`,
		SilenceErrors: true, SilenceUsage: true, Args: cli.NoCommand, RunE: cli.ShowHelp,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
	})
	group(root, "Run:", run.NewRun(a), resume.NewResume(a), resume.NewRetry(a), resume.NewCancel(a))
	group(root, "Decide:", review.NewReview(a), review.NewApprove(a), review.NewReject(a))
	group(root, "Inspect:", status.NewStatus(a), status.NewWhy(a), attach.NewAttach(a), logs.NewLogs(a), logs.NewEvents(a), review.NewDiff(a))
	group(root, "Manage:", task.NewTask(a), worktree.NewWorktree(a), grimoire.NewGrimoires(a), grimoire.NewPrompts(a), plugin.NewPlugins(a))
	group(root, "Set up:", setup.NewInit(a), doctor.NewDoctor(a), trust.NewTrust(a), setup.NewSchema(a), setup.NewCompletion(a), setup.NewVersion(a))
	root.AddCommand(setup.NewMan(a), newGate(a), newPlugin())
	checkArgs(root)
	root.CompletionOptions.SetDefaultShellCompDirective(cli.NoFiles)
	root.SetUsageTemplate(root.UsageTemplate() + "\n" + exit.Help + "\n")
	return root
}

// group adds commands to root under a title.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// checkArgs turns errors about arguments of cmd and its subcommands into usage errors.
func checkArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		checkArgs(sub)
	}
}
