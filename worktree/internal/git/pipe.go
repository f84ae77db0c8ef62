package git

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A PipeError means that git was blocked because a program replaced a file that git reads with a named pipe
// that no process writes to.
type PipeError struct{ Dir string } // git's working directory

// Error names the directory and the command that finds the pipe.
func (e *PipeError) Error() string {
	return fmt.Sprintf("a pipe is in the place of a file that git reads; to find it: find %s -type p", e.Dir)
}

// NextCommand returns the command that finds the pipe.
func (e *PipeError) NextCommand() string {
	return "find '" + strings.ReplaceAll(e.Dir, "'", `'\''`) + "' -type p"
}

// pipePatience is the interval at which coven checks whether git is blocked on a pipe.
const pipePatience = time.Second

// run runs a command, and cancels it if it blocks on a named pipe.
func run(cmd *exec.Cmd, cancel context.CancelCauseFunc) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := watchForPipes(cmd, cancel)
	defer stop()
	return cmd.Wait()
}

// watchForPipes cancels a running command when it blocks on a named pipe.
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
