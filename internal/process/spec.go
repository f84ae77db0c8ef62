package process

import (
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

// Spec says what to run and under which limits.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked
	// up in the absolute directories of the PATH in Env.
	Argv []string
	// Dir is where the program starts; empty means coven's own directory.
	Dir string
	// Env is the whole environment, KEY=VALUE. Nothing is inherited.
	Env []string
	// Input is what Run writes to the program's standard input; Start leaves that
	// to its caller. A program need not read it. Optional.
	Input []byte
	// Transcript receives every byte of output as Output hands it on, before
	// the reader sees it. A failing transcript stops the child. Optional.
	Transcript io.Writer
	// Timeout is the longest the child may run, Idle the longest it may be
	// silent; 0 is no limit. Output that nobody has read yet is not silence.
	Timeout, Idle time.Duration
	// OnStop is called once when the child is to be stopped, for whatever cause
	// and before any signal is sent. It must not block. Optional.
	OnStop func()
	// Grace is the time between TERM and KILL; 0 means 5 s. What a program
	// leaves behind when it ends by itself gets 1 s of it at most.
	Grace time.Duration
	// Size is the window size of the terminal; zero means 40 x 200.
	Size Size
}

// Size is a terminal's size in characters.
type Size struct{ Rows, Cols uint16 }

func (s Spec) completed() (Spec, error) {
	if s.Grace <= 0 {
		s.Grace = defaultGrace
	}
	if s.Size.Rows == 0 {
		s.Size.Rows = defaultRows
	}
	if s.Size.Cols == 0 {
		s.Size.Cols = defaultCols
	}
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
	return nil
}
