package main

import (
	"github.com/spf13/cobra"
)

// newCompletion prints what a shell needs to complete coven's command lines.
func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the script that completes coven's command lines in a shell",
		Long: `Print the script by which a shell completes coven's commands, flags, tasks,
grimoires, branches and steps. Put it where the shell looks, once, and open a
new shell:

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
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			}
			return root.GenFishCompletion(a.out, true)
		},
	}
}
