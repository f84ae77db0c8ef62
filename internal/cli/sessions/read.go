package sessions

import (
	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

func newMessages(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "messages SESSION", Short: "Print the conversation of the agents of a session",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			return with(cmd.Context(), a, args[0], func(p *project.Project, v session.View) error {
				parts, err := session.Parts(dirOf(p, v))
				if err != nil {
					return err
				}
				if asJSON {
					return a.PrintJSON(parts)
				}
				for _, part := range parts {
					if text := partText(part); text != "" {
						if err := a.Printf("%s\n", text); err != nil {
							return err
						}
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// partText describes a part of a conversation.
func partText(p session.Part) string {
	head := terminal.Printable(p.Path) + "  "
	switch p.Type {
	case "text", "reasoning":
		if p.Role == "user" {
			p.Type = p.Role
		}
		return head + p.Type + ": " + terminal.PrintableLines(p.Text)
	case "summary":
		return head + "summary of older messages: " + terminal.PrintableLines(p.Text)
	case "tool_call":
		return head + "→ " + terminal.Printable(p.Tool) + " " + terminal.Printable(string(p.Input))
	case "tool_result":
		mark := "← "
		if p.Error {
			mark = "✗ "
		}
		return head + mark + terminal.PrintableLines(p.Text)
	}
	return ""
}
