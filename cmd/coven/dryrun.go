package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

// list says what would be run.
func (o *runOptions) list(h *house, todo []job, target worktree.Target) error {
	code, tasks := exitOK, []planned{}
	for _, j := range todo {
		p, err := h.wouldRun(j, o.grimoire)
		if err != nil {
			return err
		}
		if p.Problem != "" {
			code = exitUsage
		}
		tasks = append(tasks, p)
	}
	if o.json {
		if err := o.app.sayJSON(tasks); err != nil {
			return err
		}
		return status(code)
	}
	for _, p := range tasks {
		text := fmt.Sprintf("%s  P%d  %s  (%s: %s)\n", printable(p.ID), p.Priority, clip(p.Title, 80), printable(p.Grimoire), printable(p.Why))
		if p.Problem != "" {
			text += "    CANNOT RUN: " + strings.ReplaceAll(printableLines(p.Problem), "\n", "\n    ") + "\n"
		}
		if err := o.app.say("%s", text); err != nil {
			return err
		}
	}
	if err := o.app.say("%d tasks would be run, landing on %s\n", len(todo), printable(target.Branch)); err != nil {
		return err
	}
	return status(code)
}

// planned is a task as run --dry-run --json has it.
type planned struct {
	task.Task
	Grimoire string `json:"grimoire"`
	Why      string `json:"grimoire_why"`
	Problem  string `json:"problem,omitempty"` // why it cannot be run
}

// wouldRun says which grimoire a task would run, and why. A session that can go
// on keeps its own.
func (h *house) wouldRun(j job, flag string) (planned, error) {
	p := planned{Task: j.task}
	v, err := h.finder.OfTask(j.task.ID)
	if err != nil && !errors.Is(err, session.ErrNone) {
		return p, err
	}
	if err == nil && v.Live() {
		p.Grimoire, p.Why = v.Info.Grimoire, "its session "+v.ID+" goes on"
		return p, nil
	}
	choice, err := h.grimoireOf(j.task, flag)
	if err != nil {
		return p, err
	}
	p.Grimoire, p.Why = choice.Grimoire, choice.Why
	if _, err := h.library.Load(choice.Grimoire); grimoires.IsInvalid(err) {
		p.Problem = err.Error()
	} else if err != nil {
		return p, err
	}
	return p, nil
}

// chooses demands that what chooses grimoires can be read: the one that the
// command line gives, and the rules.
func (h *house) chooses(flag string) error {
	if flag != "" {
		_, err := h.library.Load(flag)
		return err
	}
	_, err := h.library.Matchers()
	return err
}
