// Package root combines all commands into the command line of coven.
package root

import (
	"strings"

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
	"github.com/coven-run/coven/internal/cli/page"
	"github.com/coven-run/coven/internal/cli/permissions"
	"github.com/coven-run/coven/internal/cli/plugin"
	"github.com/coven-run/coven/internal/cli/rescue"
	"github.com/coven-run/coven/internal/cli/resume"
	"github.com/coven-run/coven/internal/cli/review"
	"github.com/coven-run/coven/internal/cli/run"
	"github.com/coven-run/coven/internal/cli/screen"
	"github.com/coven-run/coven/internal/cli/sessions"
	"github.com/coven-run/coven/internal/cli/setup"
	"github.com/coven-run/coven/internal/cli/skills"
	"github.com/coven-run/coven/internal/cli/snapshots"
	"github.com/coven-run/coven/internal/cli/spawn"
	"github.com/coven-run/coven/internal/cli/status"
	"github.com/coven-run/coven/internal/cli/task"
	"github.com/coven-run/coven/internal/cli/tools"
	"github.com/coven-run/coven/internal/cli/trust"
	"github.com/coven-run/coven/internal/cli/verify"
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
	overview, ui := status.NewStatus(a), screen.NewUI(a)
	root.RunE = screenOrHelp(a, ui)
	group(root, "Run tasks:", run.NewRun(a), task.NewTask(a), chat.NewChat(a), resume.NewResume(a), resume.NewRetry(a), resume.NewCancel(a), run.NewWorker(a))
	group(root, "Decide:", review.NewReview(a), review.NewApprove(a), review.NewRevise(a), review.NewReject(a), approvals.NewApprovals(a), screen.NewSnooze(a))
	group(root, "Inspect:", ui, page.NewWeb(a), overview, status.NewWhy(a), review.NewDiff(a), verify.NewVerify(a), logs.NewLogs(a), attach.NewAttach(a), page.NewOpen(a), metrics.NewCost(a), metrics.NewMetrics(a))
	group(root, "Recover and clean up:", snapshots.NewSnapshots(a), snapshots.NewRevert(a), rescue.NewRescue(a), worktree.NewWorktree(a), disk.NewDu(a), disk.NewGC(a))
	group(root, "Agents and workflows:", grimoire.NewGrimoires(a), grimoire.NewPrompts(a), agents.NewAgents(a), skills.NewSkills(a), tools.NewTools(a), permissions.NewPermissions(a), plugin.NewPlugins(a), mcp.NewMCP(a), sessions.NewSessions(a))
	group(root, "Set up:", setup.NewInit(a), doctor.NewDoctor(a), setup.NewConfig(a), trust.NewTrust(a), setup.NewVersion(a))
	root.AddCommand(logs.NewEvents(a), ground.NewGround(a), spawn.NewSpawn(a), setup.NewSchema(a), setup.NewCompletion(a)) // in no group
	help := setup.NewHelp(a)
	checkUsage(help) // cobra adds it to root later
	root.SetHelpCommand(help)
	root.SetHelpCommandGroupID("Set up:")
	root.AddCommand(newGate(a), newEvaluate(a), newPlugin())
	checkUsage(root)
	describeInput(root)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.FillInput(cmd) }
	root.CompletionOptions.SetDefaultShellCompDirective(cli.NoFiles)
	root.SetUsageTemplate(inOneLine(root.UsageTemplate()) + "\n" + exit.Help + "\n")
	return root
}

// screenOrHelp shows the screen of the repository, or outside of one the help. Without a terminal, the screen is the overview.
func screenOrHelp(a *cli.App, ui *cobra.Command) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if p, err := a.OpenOrOutside(cmd.Context()); err != nil || p.Repo == nil {
			return cli.ShowHelp(cmd, args)
		}
		ui.SetContext(cmd.Context())
		return ui.RunE(ui, args)
	}
}

// inOneLine changes cobra's usage template so that the commands in no group, which few people type, share one line.
func inOneLine(template string) string {
	const title, each = "Additional Commands:", "\n  {{rpad .Name .NamePadding }} {{.Short}}"
	before, others, _ := strings.Cut(template, title)
	return before + "For programs and editors:" + strings.Replace(others, each, " {{.Name}}", 1)
}

// describeInput says in the help of all commands which flags take standard input.
func describeInput(cmd *cobra.Command) {
	cli.DescribeInput(cmd)
	for _, sub := range cmd.Commands() {
		describeInput(sub)
	}
}

// group adds commands to root under a title.
func group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = title
	}
	root.AddCommand(commands...)
}
