// Package permissions holds the commands about permissions of agents.
package permissions

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/agent"
	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/permission"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/didyoumean"
)

// NewPermissions returns the command coven permissions.
func NewPermissions(a *cli.App) *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "permissions", Short: "List permissions, check what an agent may do, and propose rules",
	}, newList(a), newCheck(a), newReview(a))
}

// wordJSON is a word as permissions list --json prints it.
type wordJSON struct {
	Word        string            `json:"word"`
	Permissions []permission.Name `json:"permissions"`
}

func newList(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the words that grant permissions, and what each stands for", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := []wordJSON{}
			for _, word := range permission.Words() {
				names, _ := permission.Expand(word)
				if names[0].Word() == word { // a bundle stands for its permission
					all = append(all, wordJSON{word, names})
				}
			}
			if asJSON {
				return a.PrintJSON(all)
			}
			return cli.PrintTable(a, "", all, func(word wordJSON) string {
				return fmt.Sprintf("%s\t%s", word.Word, word.Permissions[0])
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkedJSON is a decision as permissions check --json prints it.
type checkedJSON struct {
	Action permission.Action `json:"action"`
	Reason string            `json:"reason"`
	Layer  string            `json:"layer"`
	Rule   *permission.Rule  `json:"rule"`
}

func newCheck(a *cli.App) *cobra.Command {
	var asJSON bool
	var name string
	cmd := &cobra.Command{
		Use: "check PERMISSION [SUBJECT]", Short: "Tell what an agent may do, and which rule decides",
		Long: `Tell what an agent may do, and which rule decides. SUBJECT is a file, from the top of the
worktree (/src/app.ts), a shell command, or what else the permission is about.`,
		Example: `  coven permissions check file.write /src/app.ts
  coven permissions check --agent code-reviewer bash.execute "git log | head"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.OpenOrOutside(cmd.Context())
			if err != nil {
				return err
			}
			d, err := p.Agents().Get(name)
			if err != nil {
				return exit.Failedf("coven agents list", "%w", err)
			}
			req, err := request(args)
			if err != nil {
				return err
			}
			decided := decide(d, p.Config.Rules(), req)
			if asJSON {
				return a.PrintJSON(checkedJSON{decided.Action, decided.Reason, decided.Layer, decided.Rule})
			}
			return a.Printf("%s: %s\n", decided.Action, terminal.Printable(decided.Reason))
		},
	}
	cmd.Flags().StringVar(&name, "agent", "build", "the `NAME` of an agent")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// top is the path of the worktree in a check.
const top = "/worktree"

func decide(d agent.Definition, user []permission.Rule, req permission.Request) permission.Decision {
	return permission.OfPrimary(top, d.Name, d.Permissions, d.RequiresApproval, user).Decide(req)
}

// request parses a permission and its subject.
func request(args []string) (permission.Request, error) {
	names, known := permission.Expand(args[0])
	if !known {
		return permission.Request{}, exit.Usagef("coven permissions list", "unknown permission %q%s", args[0], didyoumean.Aside(args[0], permission.Words()))
	}
	subject := ""
	if len(args) == 2 {
		subject = args[1]
	}
	req := permission.Request{Permission: names[0], Subject: subject}
	switch names[0] {
	case permission.FileRead, permission.FileWrite, permission.CodeSearch:
		req.Path = top + strings.TrimSuffix(path.Clean("/"+subject), "/")
	case permission.BashExecute:
		if subject == "" {
			return req, exit.Usagef("coven permissions check --help", "bash.execute needs a command")
		}
		req.Command = subject
	}
	return req, nil
}
