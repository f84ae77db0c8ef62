package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/terminal"
)

// Printf prints to standard output.
func (a *App) Printf(format string, args ...any) error {
	_, err := io.WriteString(a.Out, a.hidden(fmt.Sprintf(format, args...)))
	return WriteError(err)
}

// Showf prints to standard output between the lines of running tasks. It prints nothing if the command
// prints events as JSON.
func (a *App) Showf(format string, args ...any) error {
	switch {
	case a.shown == nil:
		return a.Printf(format, args...)
	case !a.shown.json:
		a.shown.Say(a.hidden(fmt.Sprintf(format, args...)))
	}
	return nil
}

// ShowError prints an error between the lines of running tasks. A missing agent CLI, which stops many
// tasks, is reported once.
func (a *App) ShowError(err error) {
	if missing := (*control.CLIError)(nil); errors.As(err, &missing) {
		if a.shown.missing[missing.Program] {
			return
		}
		a.shown.missing[missing.Program] = true
	}
	if err != nil {
		a.shown.Later(func() { a.PrintError(err) })
	}
}

// WriteError wraps the error of writing output. It ignores the error that the reader has closed the pipe.
func WriteError(err error) error {
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write output: %w", err)
}

// PrintTable prints a row for each item, below the heading. row returns its cells with tabs between them.
// Without a heading, the table has only the rows.
func PrintTable[T any](a *App, heading string, items []T, row func(T) string) error {
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	if heading != "" {
		fmt.Fprintln(w, heading) //nolint:errcheck // Flush reports it
	}
	for _, item := range items {
		fmt.Fprintln(w, row(item)) //nolint:errcheck // Flush reports it
	}
	return WriteError(w.Flush())
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
	_, err := a.Out.Write(terminal.SafeJSON([]byte(a.hidden(text.String()))))
	return WriteError(err)
}

// Ask asks the user and returns the answer: one trimmed line, or "" at the end of the input. Ctrl-C ends
// the question.
func (a *App) Ask(ctx context.Context, question string) (string, error) {
	answer, err := a.askLine(ctx, question)
	if errors.Is(err, io.EOF) {
		return answer, nil
	}
	return answer, err
}

// Piped returns the text that was piped to coven, at most max+1 bytes. It returns "" if the input is a
// terminal or another device.
func (a *App) Piped(max int64) (string, error) {
	if f, ok := a.In.(*os.File); ok {
		if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return "", nil //nolint:nilerr // a closed input has nothing
		}
	}
	text, err := io.ReadAll(io.LimitReader(a.In, max+1))
	if err != nil {
		return "", fmt.Errorf("read the input: %w", err)
	}
	return string(text), nil
}

// line is a line of the input, or the error of reading it.
type line struct {
	text string
	err  error
}

// askLine is like Ask, but returns io.EOF at the end of the input. A line that arrives after the end of ctx
// answers the next question.
func (a *App) askLine(ctx context.Context, question string) (string, error) {
	if err := a.Printf("%s", question); err != nil {
		return "", err
	}
	if a.lines == nil {
		lines := make(chan line, 1)
		a.lines = lines
		go func() {
			text, err := readLine(a.In)
			lines <- line{strings.TrimSpace(text), err}
		}()
	}
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-a.lines:
		a.lines = nil
		switch {
		case got.err == nil || errors.Is(got.err, io.EOF) && got.text != "":
			return got.text, nil
		case errors.Is(got.err, io.EOF):
			return "", io.EOF
		}
		return "", fmt.Errorf("read the answer: %w", got.err)
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
