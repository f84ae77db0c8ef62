package main

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

// say prints to standard output.
func (a *app) say(format string, args ...any) error {
	_, err := io.WriteString(a.out, a.hidden(fmt.Sprintf(format, args...)))
	return written(err)
}

// tell prints to standard output, between the lines of the tasks at work. Where events
// are printed it prints nothing.
func (a *app) tell(format string, args ...any) error {
	switch {
	case a.shown == nil:
		return a.say(format, args...)
	case !a.shown.json:
		a.shown.Say(a.hidden(fmt.Sprintf(format, args...)))
	}
	return nil
}

// explainBetween tells an error between the lines of the tasks at work.
func (a *app) explainBetween(err error) {
	if err != nil {
		a.shown.Later(func() { a.explain(err) })
	}
}

// written is the error of writing output. A reader that has seen enough is none.
func written(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write output: %w", err)
}

// sayJSON prints a value as indented JSON.
func (a *app) sayJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err := a.out.Write(terminal.SafeJSON(text.Bytes()))
	return written(err)
}

// ask asks a person and returns the answer: one line, trimmed. The end of the
// input is an empty answer. A Ctrl-C ends the question.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	if err := a.say("%s", question); err != nil {
		return "", err
	}
	type answer struct {
		line string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		line, err := readLine(a.in)
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
