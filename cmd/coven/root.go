package main

import (
	"github.com/coven-run/coven/internal/exit"
	"github.com/spf13/cobra"
)

func newRoot(a *app) *cobra.Command {
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
		SilenceErrors: true, SilenceUsage: true, Args: noCommand, RunE: showHelp,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
	})
	group(root, "Run:", newRun(a), newResume(a), newRetry(a), newCancel(a))
	group(root, "Decide:", newReview(a), newApprove(a), newReject(a))
	group(root, "Look:", newStatus(a), newWhy(a), newAttach(a), newLogs(a), newEvents(a), newDiff(a))
	group(root, "What there is:", newTask(a), newWorktree(a), newGrimoires(a), newPrompts(a), newPlugins(a))
	group(root, "Set up:", newInit(a), newDoctor(a), newTrust(a), newSchema(a), newCompletion(a), newVersion(a))
	root.AddCommand(newMan(a), newGate(a), newPlugin())
	checkArgs(root)
	root.CompletionOptions.SetDefaultShellCompDirective(noFiles)
	root.SetUsageTemplate(root.UsageTemplate() + "\n" + exit.Help + "\n")
	return root
}

// group adds commands to root, under a title in its help.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}

// checkArgs makes wrong arguments of cmd and its subcommands usage errors.
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
