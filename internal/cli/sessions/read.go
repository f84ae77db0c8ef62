package sessions

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

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
				parts, err := messages(dirOf(p, v))
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

// messages reads the conversation of a session. A line that a crash cut off is left out.
func messages(dir string) ([]session.Part, error) {
	parts := []session.Part{}
	f, err := session.OpenMessages(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return parts, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the messages: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	in := bufio.NewReader(f)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the messages: %w", err)
		}
		var part session.Part
		if json.Unmarshal(line, &part) == nil {
			parts = append(parts, part)
		}
	}
}

// partText describes a part of a conversation.
func partText(p session.Part) string {
	head := terminal.Printable(p.Path) + "  "
	switch p.Type {
	case "text", "reasoning":
		return head + p.Type + ": " + terminal.PrintableLines(p.Text)
	case "tool_call":
		input, _ := json.Marshal(p.Input) // it was read from JSON
		return head + "→ " + terminal.Printable(p.Tool) + " " + terminal.Printable(string(input))
	case "tool_result":
		mark := "← "
		if p.Error {
			mark = "✗ "
		}
		return head + mark + terminal.PrintableLines(p.Text)
	}
	return ""
}
