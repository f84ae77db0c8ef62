package main

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
	"github.com/spf13/cobra"
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
	h, _, err := openAnyway(ctx, a.env)
	if err != nil {
		return nil
	}
	o := &offer{typed: typed, seen: map[string]bool{}}
	for _, id := range given {
		o.seen[id] = true
	}
	switch kind {
	case forRun:
		o.tasks(readyTasks(ctx, h))
	case treed:
		trees, _ := h.repo.Worktrees(ctx)
		for _, t := range trees {
			o.add(t.TaskID, t.Branch)
		}
		return o.found
	case tracked:
		o.tasks(allTasks(ctx, h))
		return o.found
	}
	views, _ := session.List(h.repo.Root)
	for _, s := range newest(views) {
		if kind.takes(s) {
			o.add(s.Task, stateText(s)+": "+s.Info.Query)
		}
	}
	if kind == all {
		o.tasks(allTasks(ctx, h))
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

func readyTasks(ctx context.Context, h *house) []task.Task {
	if h.tracker == nil {
		return nil
	}
	ready, _ := h.tracker.Ready(ctx)
	return ready
}

func allTasks(ctx context.Context, h *house) []task.Task {
	if h.tracker == nil {
		return nil
	}
	all, _ := h.tracker.List(ctx)
	return all
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
	o.found = append(o.found, cobra.CompletionWithDesc(word, terminal.Clip(what, 60)))
}

func (o *offer) tasks(tasks []task.Task) {
	for _, t := range tasks {
		if t.Status != task.StatusClosed {
			o.add(t.ID, t.Title)
		}
	}
}

// completeFlag makes a shell complete the value of a flag of cmd.
func completeFlag(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // the flag does not exist
	}
}

// completeTaskFlag completes the ids of tasks in a flag.
func (a *app) completeTaskFlag(kind completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.offerTasks(cmd.Context(), kind, nil, typed), noFiles
	}
}

// completeList offers the same words everywhere.
func completeList(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offered(list, typed)
	}
}

// completeWords offers words that a repository gives.
func (a *app) completeWords(values func(context.Context, *house, []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		h, _, err := openAnyway(ctx, a.env)
		if err != nil {
			return nil, noFiles
		}
		return offered(values(ctx, h, args), typed)
	}
}

func offered(words []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	o := &offer{typed: typed, seen: map[string]bool{}}
	for _, word := range words {
		o.add(word, "")
	}
	return o.found, noFiles | cobra.ShellCompDirectiveKeepOrder
}

func grimoireNames(_ context.Context, h *house, _ []string) []string {
	names, _ := h.library.Names()
	return names
}

func branches(ctx context.Context, h *house, _ []string) []string {
	names, _ := h.repo.Branches(ctx)
	return names
}

// providerNames are the providers that there are.
func providerNames(_ context.Context, h *house, _ []string) []string {
	r, err := h.registry()
	if err != nil {
		return nil
	}
	return r.Names(plugins.KindProvider)
}
