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

// Printf prints to standard output.
func (a *App) Printf(format string, args ...any) error {
	_, err := io.WriteString(a.Out, a.hidden(fmt.Sprintf(format, args...)))
	return WriteError(err)
}

// Showf prints to standard output, between the lines of running tasks. It prints nothing if
// the command prints events as JSON.
func (a *App) Showf(format string, args ...any) error {
	switch {
	case a.shown == nil:
		return a.Printf(format, args...)
	case !a.shown.json:
		a.shown.Say(a.hidden(fmt.Sprintf(format, args...)))
	}
	return nil
}

// ShowError prints an error between the lines of running tasks.
func (a *App) ShowError(err error) {
	if err != nil {
		a.shown.Later(func() { a.PrintError(err) })
	}
}

// WriteError returns the error of writing output. A reader that has closed the pipe is not
// an error.
func WriteError(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write output: %w", err)
}

// PrintJSON prints a value as indented JSON.
func (a *App) PrintJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err := a.Out.Write(terminal.SafeJSON(text.Bytes()))
	return WriteError(err)
}

// Ask asks the user and returns the answer: one line, trimmed. It is empty at the end of the
// input. Ctrl-C ends the question.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	if err := a.Printf("%s", question); err != nil {
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

// readLine reads one line and leaves the rest of the input to later readers.
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
