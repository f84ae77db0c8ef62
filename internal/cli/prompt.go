package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/coven-run/coven/internal/terminal"
)

// choose asks for one of several keys, below the lines of running tasks, and returns the key. It asks for a
// line if the terminal cannot report keys. The answer is empty at the end of the input.
func (a *App) choose(ctx context.Context, question string, options []terminal.Option) (string, error) {
	return a.chooseBy(ctx, &terminal.Choice{Question: question, Options: options})
}

// chooseBy is like choose, with the question of c.
func (a *App) chooseBy(ctx context.Context, c *terminal.Choice) (string, error) {
	c.Question = a.hidden(c.Question)
	err := a.shown.Prompt(ctx, c)
	if c.Answer != "" {
		a.notices.acted()
	}
	if !errors.Is(err, terminal.ErrNoKeys) {
		return c.Answer, err
	}
	for {
		answer, err := a.askAlone(ctx, c.Line()+" ")
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil || c.Take(answer):
			return c.Answer, err
		case answer != "":
			if err := a.Showf("%s\n", c.Wrong(answer)); err != nil {
				return "", err
			}
		}
	}
}

// input asks for a text of one or several lines, or for one line if the terminal cannot report keys. It
// returns "" if the user went back. If the question is answered elsewhere, it prints the unfinished text.
func (a *App) input(ctx context.Context, question string) (string, error) {
	in := terminal.NewInput(question)
	err := a.shown.Prompt(ctx, in)
	if typed := in.Typed(); err != nil && typed != "" {
		_ = a.Showf("not sent: %s\n", terminal.PrintableLines(typed)) // err is more important
	}
	if !errors.Is(err, terminal.ErrNoKeys) {
		return in.Text, err
	}
	answer, err := a.askAlone(ctx, question)
	if errors.Is(err, io.EOF) {
		return "", nil
	}
	return answer, err
}

// Compose asks for a message of a chat, also while a turn runs: see terminal.Screen. It returns terminal.ErrNoKeys if the terminal
// cannot report keys.
func (a *App) Compose(ctx context.Context, m *terminal.Message) error { return a.shown.Compose(ctx, m) }

// AskLine asks for a line while nothing else is shown. left reports whether the user leaves.
func (a *App) AskLine(ctx context.Context) (text string, left bool, err error) {
	text, err = a.askAlone(ctx, "> ")
	if errors.Is(err, io.EOF) {
		return "", true, nil
	}
	return text, false, err
}

// acceptUnsandboxed asks whether tasks may run without a sandbox.
func (a *App) acceptUnsandboxed(ctx context.Context, gap string) (bool, error) {
	answer, err := a.askAlone(ctx, "There is no sandbox here: "+gap+".\nRun tasks of this repository anyway? [y/N] ")
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return strings.HasPrefix(strings.ToLower(answer), "y"), err
}

// askAlone asks for a line while nothing else is shown.
func (a *App) askAlone(ctx context.Context, question string) (answer string, err error) {
	if gaveUp := a.shown.Alone(ctx, func() { answer, err = a.askLine(ctx, question) }); gaveUp != nil {
		return "", gaveUp
	}
	return answer, err
}
