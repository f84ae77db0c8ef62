package process

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"time"
)

const (
	defaultGrace  = 5 * time.Second
	leftoverGrace = time.Second
	defaultRows   = 40
	defaultCols   = 200
)

// Spec describes the program to run and its limits.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked
	// up in the absolute directories of the PATH in Env.
	Argv []string
	// Dir is the program's working directory. It defaults to coven's.
	Dir string
	// Env is the whole environment, KEY=VALUE. Nothing is inherited.
	Env []string
	// Input is written to the program's standard input by Run; with Start, the caller
	// writes the input. The program need not read it. Optional.
	Input []byte
	// Transcript receives all output before the reader of Output gets it. If writing to it
	// fails, the child is stopped. Optional.
	Transcript io.Writer
	// Timeout limits how long the child may run, and Idle how long it may print nothing. Zero
	// means no limit. The child is not idle while it has unread output.
	Timeout, Idle time.Duration
	// OnStop is called once before the child is stopped for any reason. It must not block.
	// Optional.
	OnStop func()
	// OnStart is called by Run when the program runs. It must not block. Optional.
	OnStart func(*Child)
	// Grace is the time between TERM and KILL; 0 means 5 s. For processes that a program
	// leaves behind when it ends by itself, it is at most 1 s.
	Grace time.Duration
	// Boundary limits the files and processes that the program can change, see and signal. Optional.
	Boundary *Boundary
	// Pipe makes the program's output a pipe instead of a terminal; it then has no terminal at all.
	Pipe bool
	// Size is the window size of the terminal; zero means 40 x 200.
	Size Size
}

// Size is a terminal's size in characters.
type Size struct{ Rows, Cols uint16 }

func (s Spec) completed() (Spec, error) {
	if s.Grace <= 0 {
		s.Grace = defaultGrace
	}
	s.Size.Rows = cmp.Or(s.Size.Rows, defaultRows)
	s.Size.Cols = cmp.Or(s.Size.Cols, defaultCols)
	return s, s.check()
}

func (s Spec) check() error {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return errors.New("no program given")
	}
	for _, text := range append(append([]string{s.Dir}, s.Argv...), s.Env...) {
		if strings.ContainsRune(text, 0) {
			return errors.New("a NUL byte in the arguments, the environment or the directory")
		}
	}
	return s.Boundary.check()
}
