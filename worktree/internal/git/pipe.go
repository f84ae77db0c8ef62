package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A PipeError means that git wanted to read a file in whose place a program has put a pipe, to
// which nobody writes. git would wait forever.
type PipeError struct{ Dir string } // where git ran

// Error names the directory, and how to find the pipe.
func (e *PipeError) Error() string {
	return fmt.Sprintf("a pipe is in the place of a file that git reads; to find it: find %s -type p", e.Dir)
}

// NextCommand returns the command that finds the pipe.
func (e *PipeError) NextCommand() string {
	return "find '" + strings.ReplaceAll(e.Dir, "'", `'\''`) + "' -type p"
}

// pipePatience is how long git runs before coven looks whether it waits for a pipe.
const pipePatience = time.Second

// run runs a command that can be canceled. It cancels one that waits for a pipe.
func run(cmd *exec.Cmd, cancel context.CancelCauseFunc) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := watchForPipes(cmd, cancel)
	defer stop()
	return cmd.Wait()
}

// watchForPipes cancels a running command when it waits for a pipe.
func watchForPipes(cmd *exec.Cmd, cancel context.CancelCauseFunc) (stop func()) {
	over := make(chan struct{})
	go func() {
		ticker := time.NewTicker(pipePatience)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				if waitsForPipe(cmd.Process.Pid) {
					cancel(&PipeError{Dir: cmd.Dir})
					return
				}
			}
		}
	}()
	return func() { close(over) }
}
