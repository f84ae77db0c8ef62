package setup

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/docs"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
)

// NewHelp returns the command coven help.
func NewHelp(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Show the help of a command, or a page of the documentation",
		Long: `Show the help of a command, or a page of the documentation: a guide or the description of
a file format. Without an argument: list both. A TOPIC with the name of a command shows
the page; the command's help is coven COMMAND --help.`,
		Example: `  coven help day
  coven help config
  coven help task add`,
		ValidArgsFunction: completeHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				if err := root.Help(); err != nil {
					return err //nolint:wrapcheck // of writing the output
				}
				return a.Printf("\n%s", topics())
			}
			if topic, ok := docs.Find(args[0]); ok && len(args) == 1 {
				return a.Page(cmd.Context(), page(root, topic))
			}
			found, rest, err := root.Find(args)
			switch {
			case err != nil || found == root:
				return exit.Usagef("coven help", "no command or topic %q%s", args[0], cli.Suggest(args[0], helpNames(root)))
			case len(rest) > 0 && found.HasSubCommands():
				return exit.Usagef(found.CommandPath()+" --help", "%w", cli.NoCommand(found, rest))
			case len(rest) > 0:
				return exit.Usagef(found.CommandPath()+" --help", "unexpected argument %q after %s", rest[0], found.CommandPath())
			}
			return found.Help() //nolint:wrapcheck // of writing the output
		},
	}
}

// page returns the text of a topic.
func page(root *cobra.Command, t docs.Topic) string {
	if cmd, _, err := root.Find([]string{t.Name}); err == nil && cmd != root {
		return fmt.Sprintf("(the command: %s --help)\n\n%s", cmd.CommandPath(), t.Text)
	}
	return t.Text
}

// topics lists the pages of the documentation.
func topics() string {
	var b strings.Builder
	b.WriteString("Topics, for coven help TOPIC:\n")
	for _, t := range docs.Topics() {
		fmt.Fprintf(&b, "  %-18s %s\n", t.Name, t.Title)
	}
	return b.String()
}

// helpNames returns the names of all commands and topics.
func helpNames(root *cobra.Command) []string {
	var names []string
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			names = append(names, cmd.Name())
		}
	}
	for _, t := range docs.Topics() {
		names = append(names, t.Name)
	}
	return names
}

// completeHelp completes commands and topics.
func completeHelp(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	for _, name := range helpNames(cmd.Root()) {
		if len(args) == 0 && strings.HasPrefix(name, typed) {
			found = append(found, name)
		}
	}
	return found, cli.NoFiles
}
