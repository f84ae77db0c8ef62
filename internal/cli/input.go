package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/task"
)

// fromInput stands for standard input where a text is expected.
const fromInput = "-"

// Input reads a text from standard input. On a terminal, it tells the user how to end the text.
func (a *App) Input() (string, error) {
	if a.inputRead {
		return "", errors.New("only one text can be read from standard input")
	}
	a.inputRead = true
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(a.Err, "Type the text, then Ctrl-D on a line of its own.") //nolint:errcheck // only advice
	}
	data, err := io.ReadAll(io.LimitReader(a.In, task.MaxText+1))
	switch text := string(data); {
	case err != nil:
		return "", fmt.Errorf("read standard input: %w", err)
	case len(data) > task.MaxText:
		return "", fmt.Errorf("standard input has more than %d bytes: put the text into a file, and name the file in the text", task.MaxText)
	case strings.TrimSpace(text) == "":
		return "", errors.New("standard input is empty")
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", errors.New("standard input is not UTF-8 text")
	default:
		return strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n"), nil
	}
}

// TextArgument returns a text that was given as an argument of a command, or that of standard input if the
// argument is a single -.
func (a *App) TextArgument(cmd *cobra.Command, text string) (string, error) {
	if text != fromInput {
		return text, nil
	}
	text, err := a.Input()
	if err != nil {
		return "", exit.Usagef(cmd.CommandPath()+" --help", "%w", err)
	}
	return text, nil
}

// isText reports whether the value of a flag is a text that can be long.
func isText(f *pflag.Flag) bool {
	name, _ := pflag.UnquoteUsage(f)
	return name == "TEXT"
}

// DescribeInput adds to the help of a command's flags that take a text that they take standard input, too.
func DescribeInput(cmd *cobra.Command) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if isText(f) {
			f.Usage += "; -: from standard input"
		}
	})
}

// FillInput replaces a single - in the flags of a command that take a text by standard input.
func (a *App) FillInput(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if failed == nil && isText(f) {
			if err := a.fill(f); err != nil {
				failed = exit.Usagef(cmd.CommandPath()+" --help", "--%s: %w", f.Name, err)
			}
		}
	})
	return failed
}

// fill replaces a single - in the value of a flag by standard input.
func (a *App) fill(f *pflag.Flag) error {
	value := f.Value
	if o, ok := value.(*once); ok {
		value = o.Value
	}
	list, isList := value.(pflag.SliceValue)
	if !isList {
		if value.String() != fromInput {
			return nil
		}
		text, err := a.Input()
		if err != nil {
			return err
		}
		return value.Set(text)
	}
	texts := list.GetSlice()
	for i, text := range texts {
		if text != fromInput {
			continue
		}
		var err error
		if texts[i], err = a.Input(); err != nil {
			return err
		}
	}
	return list.Replace(texts)
}
