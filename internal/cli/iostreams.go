package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/coven-run/coven/internal/terminal"
)

// Say prints to standard output.
func (a *App) Say(format string, args ...any) error {
	_, err := io.WriteString(a.Out, a.hidden(fmt.Sprintf(format, args...)))
	return Written(err)
}

// Tell prints to standard output, between the lines of the tasks at work. Where events
// are printed it prints nothing.
func (a *App) Tell(format string, args ...any) error {
	switch {
	case a.shown == nil:
		return a.Say(format, args...)
	case !a.shown.json:
		a.shown.Say(a.hidden(fmt.Sprintf(format, args...)))
	}
	return nil
}

// ExplainBetween tells an error between the lines of the tasks at work.
func (a *App) ExplainBetween(err error) {
	if err != nil {
		a.shown.Later(func() { a.Explain(err) })
	}
}

// Written is the error of writing output. A reader that has seen enough is none.
func Written(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write output: %w", err)
}

// SayJSON prints a value as indented JSON.
func (a *App) SayJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err := a.Out.Write(terminal.SafeJSON(text.Bytes()))
	return Written(err)
}

// Ask asks a person and returns the answer: one line, trimmed. The end of the
// input is an empty answer. A Ctrl-C ends the question.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	if err := a.Say("%s", question); err != nil {
		return "", err
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := readLine(a.In)
		answers <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-answers:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", got.err)
		}
		return strings.TrimSpace(got.line), nil
	}
}

// readLine reads one line and not a byte more: the rest is for others.
func readLine(in io.Reader) (string, error) {
	if r, ok := in.(*bufio.Reader); ok {
		return r.ReadString('\n')
	}
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		if n == 1 {
			if b[0] == '\n' {
				return string(line), nil
			}
			line = append(line, b[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}
