// Package root combines all commands into the command line of coven.
package root

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/cli/agents"
	"github.com/coven-run/coven/internal/cli/approvals"
	"github.com/coven-run/coven/internal/cli/attach"
	"github.com/coven-run/coven/internal/cli/chat"
	"github.com/coven-run/coven/internal/cli/disk"
	"github.com/coven-run/coven/internal/cli/doctor"
	"github.com/coven-run/coven/internal/cli/grimoire"
	"github.com/coven-run/coven/internal/cli/ground"
	"github.com/coven-run/coven/internal/cli/logs"
	"github.com/coven-run/coven/internal/cli/mcp"
	"github.com/coven-run/coven/internal/cli/metrics"
	"github.com/coven-run/coven/internal/cli/permissions"
	"github.com/coven-run/coven/internal/cli/plugin"
	"github.com/coven-run/coven/internal/cli/rescue"
	"github.com/coven-run/coven/internal/cli/resume"
	"github.com/coven-run/coven/internal/cli/review"
	"github.com/coven-run/coven/internal/cli/run"
	"github.com/coven-run/coven/internal/cli/sessions"
	"github.com/coven-run/coven/internal/cli/setup"
	"github.com/coven-run/coven/internal/cli/skills"
	"github.com/coven-run/coven/internal/cli/snapshots"
	"github.com/coven-run/coven/internal/cli/spawn"
	"github.com/coven-run/coven/internal/cli/status"
	"github.com/coven-run/coven/internal/cli/task"
	"github.com/coven-run/coven/internal/cli/tools"
	"github.com/coven-run/coven/internal/cli/trust"
	"github.com/coven-run/coven/internal/cli/worktree"
	"github.com/coven-run/coven/internal/exit"
)

// NewRoot returns the command coven with all its subcommands.
func NewRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "coven",
		Short: "Turn tasks into merged, verified changes with coding agents",
		Long: `coven gives each task its own git worktree, where an agent CLI such as Claude Code
works until the checks and the reviews pass. Then it shows you the change and, once
you approve it, lands exactly what was checked. Your own checkout is never switched,
stashed or overwritten.

  coven doctor                           check what coven needs
  coven run -p "add a --version flag"    run one task, without any setup
  coven task add "Fix the login bug"     add a task to the repository's tracker
  coven run -j 4                         run all ready tasks, four at a time
  coven status                           show sessions and the next command for each

coven help also lists the guides and file formats, which coven contains.`,
		SilenceErrors: true, SilenceUsage: true, Args: cli.NoCommand, RunE: cli.ShowHelp,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Version = setup.VersionText(a)
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().Bool("version", false, "print the version of coven")
	root.SetFlagErrorFunc(flagError)
	group(root, "Run:", run.NewRun(a), resume.NewResume(a), resume.NewRetry(a), resume.NewCancel(a), spawn.NewSpawn(a), chat.NewChat(a), mcp.NewMCP(a))
	group(root, "Decide:", review.NewReview(a), review.NewApprove(a), review.NewRevise(a), review.NewReject(a), approvals.NewApprovals(a))
	group(root, "Inspect:", status.NewStatus(a), status.NewWhy(a), attach.NewAttach(a), logs.NewLogs(a), logs.NewEvents(a), review.NewDiff(a), snapshots.NewSnapshots(a), ground.NewGround(a))
	group(root, "Manage:", task.NewTask(a), worktree.NewWorktree(a), snapshots.NewRevert(a), rescue.NewRescue(a), disk.NewDu(a), disk.NewGC(a), grimoire.NewGrimoires(a), grimoire.NewPrompts(a), agents.NewAgents(a), tools.NewTools(a), skills.NewSkills(a), sessions.NewSessions(a), metrics.NewMetrics(a), permissions.NewPermissions(a), plugin.NewPlugins(a))
	group(root, "Set up:", setup.NewInit(a), setup.NewConfig(a), doctor.NewDoctor(a), trust.NewTrust(a), setup.NewSchema(a), setup.NewCompletion(a), setup.NewVersion(a))
	help := setup.NewHelp(a)
	checkUsage(help) // cobra adds it to root later
	root.SetHelpCommand(help)
	root.SetHelpCommandGroupID("Set up:")
	root.AddCommand(newGate(a), newEvaluate(a), newPlugin())
	checkUsage(root)
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
