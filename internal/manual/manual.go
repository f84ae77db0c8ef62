// Package manual renders the help of coven's commands as man pages and as docs/commands.md. It is
// not part of the coven binary: make man and the tests use it.
package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/coven-run/coven/internal/exit"
)

// WriteMan writes the man pages of all visible commands into a directory and returns their number.
func WriteMan(root *cobra.Command, dir string) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("write the man pages: %w", err)
	}
	commands := visible(root)
	for _, c := range commands {
		page, err := manPage(c)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(dir, dashed(c)+".1"), page, 0o644); err != nil {
			return 0, fmt.Errorf("write the man pages: %w", err)
		}
	}
	return len(commands), nil
}

// visible returns a command and its visible subcommands, in order.
func visible(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			all = append(all, visible(sub)...)
		}
	}
	return all
}

// dashed returns the name of a command's page.
func dashed(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the man page of one command. It does not depend on the day, the machine or the
// version.
func manPage(cmd *cobra.Command) ([]byte, error) {
	plain := *cmd // cobra modifies the command that it documents
	plain.DisableAutoGenTag = true
	plain.Long = codeLines(longText(cmd))
	date := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	var page bytes.Buffer
	err := doc.GenMan(&plain, &doc.GenManHeader{Date: &date, Source: "coven", Manual: "coven manual"}, &page)
	if err != nil {
		return nil, fmt.Errorf("write the man page of %s: %w", cmd.CommandPath(), err)
	}
	codes := ".SH EXIT STATUS\n.nf\n" + strings.TrimPrefix(exit.Help, "Exit codes:\n") + "\n.fi\n\n"
	text, related, found := strings.Cut(page.String(), ".SH SEE ALSO")
	if !found {
		return []byte(text + "\n" + codes), nil
	}
	return []byte(text + codes + ".SH SEE ALSO" + related), nil
}

func longText(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// codeLines turns the indented lines of a help text into Markdown code blocks.
func codeLines(text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(text, "\n") {
		if code := strings.HasPrefix(line, "  "); code != inside {
			b.WriteString("```\n")
			inside = code
		}
		b.WriteString(line + "\n")
	}
	if inside {
		b.WriteString("```\n")
	}
	return b.String()
}

// Markdown returns docs/commands.md: the exit codes and the help of every command.
func Markdown(root *cobra.Command) (string, error) {
	var page bytes.Buffer
	page.WriteString("# Commands\n\nGenerated from the program's help by `UPDATE=1 go test ./cmd/coven -run TestCommandsPage`.\n\n")
	page.WriteString("```\n" + exit.Help + "\n```\n\n")
	for _, c := range visible(root) {
		plain := *c // cobra modifies the command that it documents
		plain.DisableAutoGenTag = true
		plain.Long = strings.TrimRight(codeLines(c.Long), "\n")
		if err := doc.GenMarkdownCustom(&plain, &page, section); err != nil {
			return "", fmt.Errorf("write the section of %s: %w", c.CommandPath(), err)
		}
	}
	return strings.TrimRight(page.String(), "\n") + "\n", nil
}

// section returns the link to a command's section, such as #coven-task-add for coven_task_add.md.
func section(file string) string {
	return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-")
}
