package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/text/didyoumean"
)

// NoCommand returns an error for arguments of a command that only has subcommands.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		switch {
		case sub.Name() == args[0]:
			return fmt.Errorf("-- must not precede the command %s", args[0])
		case sub.IsAvailableCommand():
			names = append(names, sub.Name())
		}
	}
	if strings.TrimSpace(args[0]) == "" {
		return fmt.Errorf("the command after %s is empty (is a variable unset?)", cmd.CommandPath())
	}
	return fmt.Errorf("no command %q%s", cmd.CommandPath()+" "+args[0], Suggest(args[0], names))
}

// Suggest returns a suggestion to append to an error about an unknown word, such as (did you mean "run"?), or
// "". It names the known words with this prefix, or else the most similar word.
func Suggest(word string, known []string) string {
	var found []string
	for _, k := range known {
		if word != "" && strings.HasPrefix(k, strings.ToLower(word)) {
			found = append(found, k)
		}
	}
	if near, ok := didyoumean.Nearest(word, known); ok && len(found) == 0 {
		found = append(found, near)
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return ` (did you mean "` + strings.Join(slices.Compact(found), `" or "`) + `"?)`
}

// Group returns cmd as a command that only has the subcommands subs. Without arguments it prints its help.
func Group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.Args, cmd.RunE = NoCommand, ShowHelp
	cmd.AddCommand(subs...)
	return cmd
}

// ShowHelp prints the help of a command that only has subcommands.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
