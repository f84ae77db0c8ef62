package git

import (
	"context"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/internal/file"
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
	return "find " + shellword.Word(e.Dir) + " -type p"
}

const (
	// The interval at which coven checks whether git is blocked on a pipe grows from minInterval to maxInterval.
	minInterval = 50 * time.Millisecond
	maxInterval = time.Second
	// maxPipes limits how often a git process may be blocked.
	maxPipes = 1000
)

// run runs a command. If it blocks on a named pipe, run ends the pipe or cancels the command.
func (r Repo) run(cmd *exec.Cmd, cancel context.CancelCauseFunc) error {
	start := cmd.Start
	if r.Write != nil {
		start = func() error { return startWithin(cmd, r.Write) }
	}
	if err := start(); err != nil {
		return err
	}
	stop := watchForPipes(cmd, cancel)
	defer stop()
	return cmd.Wait()
}

// watchForPipes watches a running command. If it blocks on a named pipe in place of one of git's own files, such as
// .gitignore, it ends that pipe, so that git reads an empty file. It cancels a command that blocks on another pipe.
func watchForPipes(cmd *exec.Cmd, cancel context.CancelCauseFunc) (stop func()) {
	over := make(chan struct{})
	go func() {
		interval := minInterval
		for blocked := 0; ; {
			select {
			case <-over:
				return
			case <-time.After(interval):
			}
			waits, known := waitsForPipe(cmd.Process.Pid)
			ended := (waits || !known && interval == maxInterval) && endPipes(cmd.Dir) // which reads all directories
			switch {
			case ended && blocked < maxPipes:
				blocked++
				if waits { // otherwise the next pipe, too, is only found when the interval has grown
					interval = minInterval
				}
			case waits || ended:
				cancel(&PipeError{Dir: cmd.Dir})
				return
			default:
				interval = min(2*interval, maxInterval)
			}
		}
	}()
	return func() { close(over) }
}

// endPipes ends the named pipes in place of git's own files in a worktree that a process waits to read, and reports
// whether there were any.
func endPipes(top string) bool {
	root, err := file.OpenRoot(top)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	ended := false
	_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type() != fs.ModeNamedPipe {
			return nil //nolint:nilerr // other directories may contain the pipe
		}
		name, err := filepath.Rel(top, path)
		if err == nil && strings.Contains("/"+filepath.ToSlash(name), "/.git") && root.EndPipe(filepath.ToSlash(name)) {
			ended = true
		}
		return nil
	})
	return ended
}
