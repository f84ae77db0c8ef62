package setup

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
)

// NewCompletion returns the command coven completion.
func NewCompletion(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the script that completes coven's command lines in a shell",
		Long: `Print the script that lets a shell complete coven's commands, flags, tasks,
grimoires, branches and steps. Install it once and open a new shell:

  coven completion bash > ~/.local/share/bash-completion/completions/coven
  coven completion zsh > "${fpath[1]}/_coven"
  coven completion fish > ~/.config/fish/completions/coven.fish

bash needs the package bash-completion; zsh needs "autoload -U compinit;
compinit" in ~/.zshrc.`,
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			}
			return root.GenFishCompletion(a.Out, true)
		},
	}
}
