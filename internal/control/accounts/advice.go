package accounts

import (
	"errors"
	"fmt"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/builtin"
)

// Advised returns the error with which the run of a task ended, with the name of the task and a next command.
func Advised(task string, err error) error {
	resume := "coven resume " + shellword.Word(task)
	advised := &exit.Error{Exit: exit.Code(err), Err: fmt.Errorf("task %s: %w", task, err)}
	login := (*LoginError)(nil)
	switch {
	case errors.As(err, &login):
		advised.Exit, advised.Next = exit.Usage, login.Then(resume)
	case errors.Is(err, process.ErrNotFound):
		advised.Exit, advised.Next = exit.Failed, builtin.Installer(err)+", then "+resume
	case exit.Next(err) == "":
		advised.Next = "coven why " + shellword.Word(task)
	}
	return advised
}
