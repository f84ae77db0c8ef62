package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/shellword"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/runner"
	"github.com/coven-run/coven/runner/engine"
)

// outcome is the exit of a command that ran one session.
func outcome(e runner.Outcome, err error) error {
	if err != nil {
		return err
	}
	return exit.Status(exitOf(e))
}

// atDesk opens the repository and what runs tasks for one command. The command
// asks no questions.
func (a *app) atDesk(ctx context.Context, do func(*desk) error) error {
	h, err := a.open(ctx)
	if err != nil {
		return err
	}
	d, err := h.startDesk()
	if err != nil {
		return err
	}
	defer d.close()
	defer a.watch(d, false, terminal.Lines)()
	return do(d)
}

// watch shows on the terminal what a desk does, until stop is called.
func (a *app) watch(d *desk, asJSON bool, draw func(event.Event) string) (stop func()) {
	a.shown = &display{Screen: a.screen(asJSON, draw), json: asJSON}
	d.parking = a.parking
	d.ask = func(ctx context.Context, needs []plugins.Need) (err error) {
		if gaveUp := a.shown.Alone(ctx, func() { err = a.admitPlugins(ctx, d.house, needs) }); gaveUp != nil {
			return gaveUp
		}
		return err
	}
	d.observer = observer{
		event: a.shown.See,
		ended: func(s stretch) {
			_ = a.tell("%s\n  session: %s\n", terminal.PrintableLines(endText(s)), session.Dir+"/"+s.session) // there is nobody else to tell
		},
		notice: func(n notice) { _ = a.tell("%s", noticeText(n)) }, // there is nobody else to tell
	}
	return a.shown.Close
}

// noticeText is a notice for a terminal.
func noticeText(n notice) string {
	text := terminal.Printable(n.text)
	if n.task != "" {
		text = terminal.Printable(n.task) + "  " + text
	}
	if n.next != "" {
		text += "\n  next: " + terminal.Printable(n.next)
	}
	return text + "\n"
}

// display is where tasks at work are shown.
type display struct {
	*terminal.Screen
	json bool // as events, and nothing else
}

// endText says how a session ended.
func endText(s stretch) string {
	var b strings.Builder
	e := s.ending
	fmt.Fprintf(&b, "%s  %s", s.task, e.Status)
	if e.Reason != "" {
		fmt.Fprintf(&b, " (%s)", e.Reason)
	}
	switch {
	case e.Status == engine.Completed && e.Commit != "":
		fmt.Fprintf(&b, ": landed %.10s%s", e.Commit, terminal.Colon(e.Summary))
	case e.Status == engine.Completed:
		fmt.Fprintf(&b, ": nothing changed%s", terminal.Colon(e.Summary))
	case e.Detail != "":
		fmt.Fprintf(&b, ": %s", oneline.Of(e.Detail))
	}
	if e.Next != "" {
		fmt.Fprintf(&b, "\n  next: %s", e.Next)
	}
	return b.String()
}

// screen is where tasks at work are shown: as JSON lines, or as draw says.
func (a *app) screen(asJSON bool, draw func(event.Event) string) *terminal.Screen {
	switch {
	case asJSON:
		return terminal.New(a.out, terminal.JSONLine, nil)
	case a.interactive:
		return terminal.New(a.out, draw, terminal.NewLive(a.out, a.size, a.now))
	}
	return terminal.New(a.out, draw, nil)
}

// rejectedText tells what became of a rejected change.
func rejectedText(v session.View, ended event.Ended) string {
	return fmt.Sprintf("%s  rejected; %s\n  next: coven run %s\n", terminal.Printable(v.Task), keptAs(ended.Rescue), terminal.Printable(shellword.Word(v.Task)))
}

func keptAs(ref string) string {
	if ref == "" {
		return "nothing had to be stored"
	}
	return "everything it made is stored as " + ref
}
