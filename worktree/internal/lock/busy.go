package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/shellword"
)

// A BusyError means that a lock file of git exists: another git process is running in the repository, or
// was killed. Nothing was changed. coven never removes such a file.
type BusyError struct {
	File   string
	Age    time.Duration // since File was created
	Others []string      // further lock files of the same transaction
}

// Files returns all lock files.
func (e *BusyError) Files() []string { return append([]string{e.File}, e.Others...) }

func (e *BusyError) Error() string { return e.Reason() + "; next: " + e.Next() }

// Reason describes the lock files.
func (e *BusyError) Reason() string {
	return fmt.Sprintf("another git process has held %s for %v", e.File, e.Age.Round(time.Second))
}

// Next returns the instruction that removes the lock files.
func (e *BusyError) Next() string {
	command := "rm"
	for _, file := range e.Files() {
		command += " " + shellword.Quote(file)
	}
	return "end that process, or if there is none: " + command
}

// lockWait limits the time to wait for a lock of another git process.
const lockWait = 5 * time.Second

// AwaitGone waits for another git process to remove its lock file.
func AwaitGone(ctx context.Context, file string) error {
	deadline := time.NewTimer(lockWait)
	defer deadline.Stop()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		info, err := os.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look for a lock: %w", err)
		}
		select {
		case <-time.After(pause):
		case <-deadline.C:
			return &BusyError{File: file, Age: Age(info)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// CommandExit returns exit.Person.
func (e *BusyError) CommandExit() int { return exit.Person }

// NextCommand returns the command that removes the lock files.
func (e *BusyError) NextCommand() string {
	command := "rm"
	for _, file := range e.Files() {
		command += " " + shellword.Word(file)
	}
	return command
}

// Age returns the time since the last modification of a file.
func Age(info fs.FileInfo) time.Duration { return time.Since(info.ModTime()) }
