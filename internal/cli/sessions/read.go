package sessions

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/conversation"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

func newMessages(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "messages SESSION", Short: "Print the messages of the agents of a session",
		Long: `Print the messages of the agents of a session, oldest first, also those that were summarized for
the model. Messages of coven's own loop have an ID, for coven sessions fork, and a number of
tokens: that of the API for what the model wrote, otherwise an estimate (about).`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.CompleteTasks(cli.Recorded),
		RunE: inSession(a, func(_ context.Context, p *project.Project, v session.View, _ []string) error {
			all, err := conversation.Messages(dirOf(p, v))
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			for _, m := range all {
				if err := a.Printf("%s", messageText(m)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// idLength is the number of characters that are shown of the ID of a message.
const idLength = 8

// messageText describes a message: its parts, each on at least one line.
func messageText(m conversation.Message) string {
	var text strings.Builder
	if m.ID != "" {
		about := ""
		if m.TokensFrom == conversation.FromEstimate {
			about = "about "
		}
		fmt.Fprintf(&text, "%s  %s, %s%d tokens\n", terminal.Printable(m.ID[:min(idLength, len(m.ID))]), terminal.Printable(m.Role), about, m.Tokens)
	}
	for _, part := range m.Parts {
		if line := partText(m, part); line != "" {
			text.WriteString(line + "\n")
		}
	}
	if m.Summary != nil {
		text.WriteString(terminal.Printable(m.Path) + "  summary of older messages: " + terminal.PrintableLines(m.Summary.Text) + "\n")
	}
	return text.String()
}

// partText describes a part of a message.
func partText(m conversation.Message, p conversation.Part) string {
	head := terminal.Printable(m.Path) + "  "
	switch p.Type {
	case "text", "reasoning":
		if m.Role == event.RoleUser {
			p.Type = m.Role
		}
		return head + p.Type + ": " + terminal.PrintableLines(p.Text)
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
