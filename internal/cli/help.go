package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// NoCommand returns an error for arguments of a command that only has subcommands.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	near := ""
	if found := cmd.SuggestionsFor(args[0]); len(found) > 0 {
		near = fmt.Sprintf(" (did you mean %s?)", strings.Join(found, " or "))
	}
	return fmt.Errorf("no command %q%s", cmd.CommandPath()+" "+args[0], near)
}

// ShowHelp prints the help of a command that only has subcommands.
func ShowHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }
