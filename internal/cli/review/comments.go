package review

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/cli"
	"github.com/coven-run/coven/internal/cli/reviewpage"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/control/review"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// commentOptions are the flags of coven review for comments.
type commentOptions struct {
	comment, suggest, discard string
	drafts, patch, send       bool
}

func (o *commentOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.comment, "comment", "", "comment on `FILE:LINE` with TEXT")
	cmd.Flags().StringVar(&o.suggest, "suggest", "", "suggest TEXT in place of the lines at `FILE:LINE`")
	cmd.Flags().BoolVar(&o.drafts, "drafts", false, "list the comments, those that were sent with their answers")
	cmd.Flags().StringVar(&o.discard, "discard", "", "remove the draft with this `ID`")
	cmd.Flags().BoolVar(&o.patch, "patch", false, "print the suggestions among the drafts as a patch for git apply")
	cmd.Flags().BoolVar(&o.send, "send", false, "send all drafts to the agent, which continues")
	cmd.MarkFlagsMutuallyExclusive("comment", "suggest", "drafts", "patch", "discard", "send")
	cli.Once(cmd, "comment")
	cli.Once(cmd, "suggest")
}

// any reports whether a flag was given.
func (o *commentOptions) any() bool { return *o != commentOptions{} }

// args checks the arguments: a task, and a text if the flags need one.
func (o *commentOptions) args(cmd *cobra.Command, args []string) error {
	texts := o.comment != "" || o.suggest != ""
	switch {
	case texts && len(args) != 2:
		return exit.Usagef(cmd.CommandPath()+" --help", "give the task and the text: coven review TASK --comment FILE:LINE TEXT")
	case !texts && len(args) > 1:
		return exit.Usagef(cmd.CommandPath()+" --help", "a text needs --comment FILE:LINE or --suggest FILE:LINE")
	case o.any() && len(args) == 0:
		return exit.Usagef("coven review", "missing TASK")
	}
	return nil
}

func (o *commentOptions) run(cmd *cobra.Command, a *cli.App, c *control.Controller, args []string, asJSON bool) error {
	ctx, task := cmd.Context(), args[0]
	switch {
	case o.send:
		request, err := review.Request(ctx, c, task, nil)
		if err != nil {
			return err
		}
		return a.Revise(ctx, c, request)
	case o.discard != "":
		old, err := review.Discard(ctx, c, task, o.discard)
		if err != nil {
			return err
		}
		return a.Printf("%s", reviewpage.DiscardedText(old))
	case o.patch:
		text, err := review.Patch(ctx, c, task)
		if err != nil {
			return err
		}
		return a.Printf("%s", text)
	case o.drafts:
		r, err := review.Of(ctx, c, task)
		if err != nil {
			return err
		}
		if asJSON {
			return a.PrintJSON(r.Comments)
		}
		return a.Printf("%s", reviewpage.CommentsText(r))
	}
	return o.add(cmd, a, c, args, asJSON)
}

// add adds a comment or a suggestion.
func (o *commentOptions) add(cmd *cobra.Command, a *cli.App, c *control.Controller, args []string, asJSON bool) error {
	place := o.comment + o.suggest
	anchor, err := review.ParsePlace(place)
	if err != nil {
		return exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
	}
	text, err := a.TextArgument(cmd, args[1])
	if err != nil {
		return err
	}
	n := review.NewComment{Anchor: anchor, Text: text}
	if o.suggest != "" {
		n.Text, n.Suggestion = "", &text
	}
	added, err := review.Add(cmd.Context(), c, args[0], n)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(added)
	}
	return a.Printf("%s\n  next: %s\n", fmt.Sprintf("%s is a draft on %s", added.ID, reviewpage.Place(added.Anchor)), "coven review "+shellword.Word(args[0])+" --send")
}
