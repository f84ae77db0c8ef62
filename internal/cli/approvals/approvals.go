// Package approvals holds the commands about tool calls that wait for a person's answer.
package approvals

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/control/approval"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/shellword"
)

// NewApprovals returns the command coven approvals.
func NewApprovals(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "approvals", Short: "Answer agents that ask before they act",
		Long: `An agent asks before it does what its definition has under requires_approval, and what no rule
allows or denies. Its call waits until a person answers, for at most five minutes unless its definition
says otherwise. Then the call is refused, and a subagent is stopped.

A question has a number in its session. Name the task, too, if several sessions have a question with
this number. Of several answers, the first one counts. If another machine runs the session (see coven
status --remote), it gets the answer after a few seconds.`,
	}, newList(a), newApprove(a), newDeny(a), newModify(a))
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the questions that wait for an answer, the oldest first", Args: cobra.NoArgs,
		RunE: a.InProject(func(cmd *cobra.Command, p *project.Project, _ []string) error {
			a.Mirror(cmd.Context(), p)
			all, err := approval.List(p)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			if len(all) == 0 {
				return a.Printf("nothing waits for an approval\n")
			}
			for i, q := range all {
				if i > 0 {
					if err := a.Printf("\n"); err != nil {
						return err
					}
				}
				if err := a.Printf("%s", describe(q)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// describe formats a question for people.
func describe(q approval.Question) string {
	var b strings.Builder
	of := q.Of
	fmt.Fprintf(&b, "%s %d: %s", terminal.Printable(q.Task), of.N, terminal.Printable(strings.Join(q.Chain, " > ")))
	if q.Machine != "" {
		fmt.Fprintf(&b, ", on %s", terminal.Printable(q.Machine))
	}
	b.WriteString("\n\n")
	b.WriteString(terminal.Approval(of.Approval))
	fmt.Fprintf(&b, "\nWhy: %s\n", terminal.Printable(of.Reason))
	fmt.Fprintf(&b, "Answer: coven approvals approve|deny|modify %s %d, until %s\n", shellword.Word(terminal.Printable(q.Task)), of.N, of.Until.Local().Format("15:04:05"))
	return b.String()
}

func newApprove(a *cli.App) *cobra.Command {
	var forSession bool
	cmd := &cobra.Command{
		Use: "approve [TASK] N", Short: "Let the call happen",
		Example: "  coven approvals approve 1\n  coven approvals approve t-1 2 --session",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(cmd, a, args, event.ApprovalAnswer{Answer: event.Approved, Session: forSession})
		},
	}
	cmd.Flags().BoolVar(&forSession, "session", false, "do not ask about the same again in this session")
	return cmd
}

func newDeny(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "deny [TASK] N", Short: "Refuse the call, and tell the agent why",
		Example: `  coven approvals deny 1 --reason "not in this file"`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return answer(cmd, a, args, event.ApprovalAnswer{Answer: event.Denied, Reason: reason})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "what the agent is told: a `TEXT`")
	return cmd
}

// maxParameters is more than a request to a session may have, in bytes.
const maxParameters = 2 << 20

func newModify(a *cli.App) *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use: "modify [TASK] N", Short: "Let the call happen with other parameters",
		Long: `Let the call happen with other parameters. They must fit the tool, and the agent must be allowed to do
it: otherwise the question is asked again. The agent is told what was modified.`,
		Example: `  coven approvals modify 1 --input '{"path": "notes/a.md", "content": "hello"}'`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if input == "-" {
				data, err := io.ReadAll(io.LimitReader(a.In, maxParameters)) // the rest is missing, so it is not JSON
				if err != nil {
					return fmt.Errorf("read the parameters: %w", err)
				}
				input = string(data)
			}
			var object map[string]any
			if json.Unmarshal([]byte(input), &object) != nil || object == nil {
				return exit.Usagef("coven approvals list --json", "--input is not a JSON object")
			}
			return answer(cmd, a, args, event.ApprovalAnswer{Answer: event.Modified, Modified: &event.Modification{After: json.RawMessage(input)}})
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "the parameters as `JSON`; -: from standard input")
	return cmd
}

// answer answers the question named by the arguments.
func answer(cmd *cobra.Command, a *cli.App, args []string, with event.ApprovalAnswer) error {
	task := ""
	if len(args) == 2 {
		task = args[0]
	}
	n, err := strconv.Atoi(args[len(args)-1])
	if err != nil {
		return exit.Usagef("coven approvals list", "%q is not the number of a question", args[len(args)-1])
	}
	p, err := a.Open(cmd.Context())
	if err != nil {
		return err
	}
	if task != "" {
		if task, err = p.Resolve(cmd.Context(), task, project.Known); err != nil {
			return err
		}
	}
	a.Mirror(cmd.Context(), p)
	q, err := approval.Find(p, task, n)
	if err != nil {
		return err
	}
	if err := approval.Answer(cmd.Context(), p, q, with); err != nil {
		return err
	}
	if q.Machine != "" {
		return a.Printf("%s %d: %s, sent to %s, where the first answer counts\n", terminal.Printable(q.Task), n, with.Answer, terminal.Printable(q.Machine))
	}
	return a.Printf("%s %d: %s\n", terminal.Printable(q.Task), n, with.Answer)
}
