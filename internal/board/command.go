package board

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// CommandLine returns a command line of coven as it is typed in a shell.
func CommandLine(args []string) string {
	words := []string{"coven"}
	for _, arg := range args {
		words = append(words, shellword.Word(arg))
	}
	return strings.Join(words, " ")
}

// Result describes the end of a command line: the last line of its output, without its next command, and the error. The command has
// not failed if it ended because coven waits for a person.
func Result(output string, err error) (text string, failed bool) {
	lines := slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool { return line == "" || line[0] == ' ' })
	if len(lines) > 0 {
		text = lines[len(lines)-1]
	}
	var ended interface{ ExitCode() int }
	if failed = err != nil && (!errors.As(err, &ended) || ended.ExitCode() != exit.Person); failed {
		text = strings.TrimPrefix(text+" ("+err.Error()+")", " ")
	}
	return cmp.Or(text, "done"), failed
}

// Cost formats an amount of money. It returns "" for nothing.
func Cost(usd float64) string {
	if usd == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}
