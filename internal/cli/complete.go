package cli

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
)

// TaskKind is the kind of tasks that a command accepts.
type TaskKind int

// The kinds of tasks.
const (
	ForRun   TaskKind = iota // ready, or with a session that can be resumed
	UnderWay                 // with a session that is not over
	Resting                  // with a session that is neither over nor running
	Retried                  // as Resting, or with a session that has failed
	Waiting                  // with a session that waits for a review
	Recorded                 // with a session
	Tracked                  // open in the tracker
	Treed                    // with a worktree
	All                      // with a session, or open in the tracker
)

// completeTime limits how long the user waits after pressing the tab key.
const completeTime = 2 * time.Second

// NoFiles tells the shell not to offer files.
const NoFiles = cobra.ShellCompDirectiveNoFileComp

// CompleteTasks completes the IDs of tasks. It ignores errors, because completion cannot show them.
func (a *App) CompleteTasks(kind TaskKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if cmd.ValidateArgs(append(slices.Clone(args), "x")) != nil {
			return nil, NoFiles // the command takes no more arguments
		}
		return a.offerTasks(cmd.Context(), kind, args, typed), NoFiles | cobra.ShellCompDirectiveKeepOrder
	}
}

// offerTasks returns the tasks of a kind that begin with typed and are not in given.
func (a *App) offerTasks(ctx context.Context, kind TaskKind, given []string, typed string) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	p, _, err := project.OpenLenient(ctx, a.Environment)
	if err != nil {
		return nil
	}
	o := &offer{typed: typed, seen: map[string]bool{}}
	for _, id := range given {
		o.seen[id] = true
	}
	switch kind {
	case ForRun:
		o.tasks(readyTasks(ctx, p))
	case Treed:
		trees, _ := p.Worktrees(ctx)
		for _, t := range trees {
			o.add(t.TaskID, t.Branch)
		}
		return o.found
	case Tracked:
		o.tasks(allTasks(ctx, p))
		return o.found
	}
	all, _ := p.Finder.Known()
	for _, s := range project.Newest(all) {
		if !s.Live() && !kind.takesEnded() || !o.wants(s.Task) {
			continue
		}
		if v, err := s.View(); err == nil && kind.takes(v) {
			o.add(s.Task, control.StateOf(v)+": "+v.Info.Query)
		}
	}
	if kind == All {
		o.tasks(allTasks(ctx, p))
	}
	return o.found
}

// takes reports whether the task of a session is of this kind.
func (kind TaskKind) takes(v session.View) bool {
	switch kind {
	case UnderWay:
		return v.Live()
	case ForRun, Resting:
		return v.Live() && v.Status != session.Running
	case Retried:
		return v.Live() && v.Status != session.Running || v.Status == session.Failed
	case Waiting:
		return control.WaitsForReview(v)
	}
	return true
}

// takesEnded reports whether tasks of this kind may have a session that is over.
func (kind TaskKind) takesEnded() bool {
	return kind == Retried || kind == Recorded || kind == All
}

func readyTasks(ctx context.Context, p *project.Project) []task.Task {
	if p.Tracker == nil {
		return nil
	}
	ready, _ := p.Tracker.Ready(ctx)
	return ready
}

func allTasks(ctx context.Context, p *project.Project) []task.Task {
	if p.Tracker == nil {
		return nil
	}
	all, _ := p.Tracker.List(ctx)
	return all
}

// offer collects completions.
type offer struct {
	typed string
	seen  map[string]bool
	found []cobra.Completion
}

// wants reports whether to offer a word. It rejects words that a shell would split.
func (o *offer) wants(word string) bool {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	return word != "" && !o.seen[word] && strings.HasPrefix(word, o.typed) && !strings.ContainsFunc(word, odd)
}

// add offers a word if it is wanted.
func (o *offer) add(word, what string) {
	if !o.wants(word) {
		return
	}
	o.seen[word] = true
	o.found = append(o.found, cobra.CompletionWithDesc(word, terminal.Clip(what, 60)))
}

func (o *offer) tasks(tasks []task.Task) {
	for _, t := range tasks {
		if t.Status != task.StatusClosed {
			o.add(t.ID, t.Title)
		}
	}
}

// CompleteFlag sets the completion of a flag of cmd.
func CompleteFlag(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist
	}
}

// CompleteTaskFlag completes the IDs of tasks in a flag.
func (a *App) CompleteTaskFlag(kind TaskKind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.offerTasks(cmd.Context(), kind, nil, typed), NoFiles
	}
}

// CompleteList completes a fixed list of words.
func CompleteList(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offered(list, typed)
	}
}

// CompleteWords completes words that depend on the repository.
func (a *App) CompleteWords(values func(context.Context, *project.Project, []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		p, _, err := project.OpenLenient(ctx, a.Environment)
		if err != nil {
			return nil, NoFiles
		}
		return offered(values(ctx, p, args), typed)
	}
}

// CompleteOne completes a single argument with words that depend on the repository.
func (a *App) CompleteOne(values func(context.Context, *project.Project, []string) []string) cobra.CompletionFunc {
	return a.CompleteWords(func(ctx context.Context, p *project.Project, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return values(ctx, p, args)
	})
}

func offered(words []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	o := &offer{typed: typed, seen: map[string]bool{}}
	for _, word := range words {
		o.add(word, "")
	}
	return o.found, NoFiles | cobra.ShellCompDirectiveKeepOrder
}

// GrimoireNames returns the grimoires of a project.
func GrimoireNames(_ context.Context, p *project.Project, _ []string) []string {
	names, _ := p.Library.Names()
	return names
}

// AgentNames returns the agents of a project.
func AgentNames(_ context.Context, p *project.Project, _ []string) []string {
	return p.Agents().Names()
}

// Branches returns the branches of a project.
func Branches(ctx context.Context, p *project.Project, _ []string) []string {
	names, _ := p.Repo.Branches(ctx)
	return names
}

// ProviderNames returns the providers of a project.
func ProviderNames(_ context.Context, p *project.Project, _ []string) []string {
	r, err := p.Registry()
	if err != nil {
		return nil
	}
	names := r.Names(plugins.KindProvider)
	for _, model := range r.Names(plugins.KindModel) {
		names = append(names, plugins.LoopOf(model))
	}
	return names
}
