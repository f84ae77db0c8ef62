package main

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
)

// completion is which tasks a command takes.
type completion int

const (
	forRun   completion = iota // ready, or with a session that can go on
	underWay                   // with a session that is not over
	resting                    // the same, and no coven is at work on it
	retried                    // the same, or with one that has failed
	waiting                    // with a session that waits for a review
	recorded                   // with a session
	tracked                    // open in the tracker
	treed                      // with a worktree
	all                        // with a session, or open in the tracker
)

// completeTime bounds how long somebody waits who has pressed the tab key.
const completeTime = 2 * time.Second

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeTasks offers the ids of tasks with their titles. What cannot be read
// is not offered: there is no place for an error on the command line.
func (a *app) completeTasks(kind completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if cmd.ValidateArgs(append(slices.Clone(args), "x")) != nil {
			return nil, noFiles // it takes no more
		}
		return a.offerTasks(cmd.Context(), kind, args, typed), noFiles | cobra.ShellCompDirectiveKeepOrder
	}
}

// offerTasks are the tasks of a kind that are not given yet and begin as typed.
func (a *app) offerTasks(ctx context.Context, kind completion, given []string, typed string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	v := a.visit(ctx)
	if v.house == nil {
		return nil
	}
	o := &offer{typed: typed, seen: map[string]bool{}}
	for _, id := range given {
		o.seen[id] = true
	}
	switch kind {
	case forRun:
		o.tasks(v.readyTasks(ctx))
	case treed:
		trees, _ := v.house.repo.Worktrees(ctx)
		for _, t := range trees {
			o.add(t.TaskID, t.Branch)
		}
		return o.found
	case tracked:
		open, _ := v.allTasks(ctx)
		o.tasks(open)
		return o.found
	}
	views, _ := v.sessionViews()
	for _, s := range newest(views) {
		if kind.takes(s) {
			o.add(s.Task, stateText(s)+": "+s.Info.Query)
		}
	}
	if kind == all {
		open, _ := v.allTasks(ctx)
		o.tasks(open)
	}
	return o.found
}

// takes says whether a kind has the task of this session.
func (kind completion) takes(v session.View) bool {
	switch kind {
	case underWay:
		return v.Live()
	case forRun, resting:
		return v.Live() && v.Status != session.Running
	case retried:
		return v.Live() && v.Status != session.Running || v.Status == session.Failed
	case waiting:
		return v.Status == session.Waiting && v.Reason == event.WaitReview
	}
	return true
}

func (v *visit) readyTasks(ctx context.Context) []task.Task {
	if v.house.tracker == nil {
		return nil
	}
	ready, _ := v.house.tracker.Ready(ctx)
	return ready
}

// newest leaves the newest session of each task. Views have the newest first.
func newest(views []session.View) []session.View {
	var kept []session.View
	seen := map[string]bool{}
	for _, v := range views {
		if !seen[v.Task] {
			seen[v.Task], kept = true, append(kept, v)
		}
	}
	return kept
}

// offer collects what is offered.
type offer struct {
	typed string
	seen  map[string]bool
	found []cobra.Completion
}

// add offers a word. One that a shell could take for several is left out.
func (o *offer) add(word, what string) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if word == "" || o.seen[word] || !strings.HasPrefix(word, o.typed) || strings.ContainsFunc(word, odd) {
		return
	}
	o.seen[word] = true
	o.found = append(o.found, cobra.CompletionWithDesc(word, clip(what, 60)))
}

func (o *offer) tasks(tasks []task.Task) {
	for _, t := range tasks {
		if t.Status != task.StatusClosed {
			o.add(t.ID, t.Title)
		}
	}
}

// completeFlags says what the flags of commands take. root has all commands.
func (a *app) completeFlags(root *cobra.Command) {
	words := func(list ...string) func(*visit, context.Context, []string) []string {
		return func(*visit, context.Context, []string) []string { return list }
	}
	for _, f := range []struct {
		command, flag string
		values        func(v *visit, ctx context.Context, args []string) []string
	}{
		{"run", "grimoire", (*visit).grimoireNames},
		{"grimoires graph", "format", words(graphFormats...)},
		{"plugins test", "kind", words(kindNames()...)},
		{"run", "model", words("sonnet", "haiku", "opus")},
		{"run", "provider", (*visit).providerNames},
		{"run", "onto", (*visit).branches},
		{"run", "base", (*visit).branches},
		{"retry", "from", (*visit).stepNames},
		{"task add", "type", words("task", "bug", "feature", "chore", "epic")},
		{"task add", "priority", words("0", "1", "2", "3", "4")},
	} {
		cmd, _, err := root.Find(strings.Fields(f.command))
		if err == nil {
			err = cmd.RegisterFlagCompletionFunc(f.flag, a.completeWords(f.values))
		}
		if err != nil {
			panic(err) // the table names a flag that does not exist
		}
	}
	for command, flag := range map[string]string{"task add": "after", "prompts render": "task"} {
		cmd, _, err := root.Find(strings.Fields(command))
		if err == nil {
			err = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return a.offerTasks(cmd.Context(), tracked, nil, typed), noFiles
			})
		}
		if err != nil {
			panic(err) // the table names a flag that does not exist
		}
	}
}

// completeWords offers words that a repository gives.
func (a *app) completeWords(values func(*visit, context.Context, []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		o := &offer{typed: typed, seen: map[string]bool{}}
		for _, word := range values(a.visit(ctx), ctx, args) {
			o.add(word, "")
		}
		return o.found, noFiles | cobra.ShellCompDirectiveKeepOrder
	}
}

func (v *visit) grimoireNames(context.Context, []string) []string {
	if v.house == nil {
		return nil
	}
	names, _ := v.house.library.Names()
	return names
}

// promptNames are for the one argument that names a prompt.
func (v *visit) promptNames(_ context.Context, args []string) []string {
	if v.house == nil || len(args) > 0 {
		return nil
	}
	names, _ := v.house.library.PromptNames()
	return names
}

func (v *visit) branches(ctx context.Context, _ []string) []string {
	if v.house == nil {
		return nil
	}
	names, _ := v.house.repo.Branches(ctx)
	return names
}

// stepNames are the steps that the task's session has run.
func (v *visit) stepNames(_ context.Context, args []string) []string {
	if v.house == nil || len(args) == 0 {
		return nil
	}
	s, err := session.OfTask(v.house.repo.Root, args[0])
	if err != nil {
		return nil
	}
	return stepPaths(s)
}

// newCompletion prints what a shell needs to complete coven's command lines.
func newCompletion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print the script that completes coven's command lines in a shell",
		Long: `Print the script by which a shell completes coven's commands, flags, tasks,
grimoires, branches and steps. Put it where the shell looks, once, and open a
new shell:

  coven completion bash > ~/.local/share/bash-completion/completions/coven
  coven completion zsh > "${fpath[1]}/_coven"
  coven completion fish > ~/.config/fish/completions/coven.fish

bash needs the package bash-completion; zsh needs "autoload -U compinit;
compinit" in ~/.zshrc.`,
		ValidArgs: []cobra.Completion{"bash", "zsh", "fish"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			}
			return root.GenFishCompletion(a.out, true)
		},
	}
}
