package process

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Descriptors the shim is started with, beside its standard ones.
const (
	orderFd    = 3 // the order, a memory file
	controlFd  = 4 // coven's commands; its end of file is coven's death
	statusFd   = 5 // reports to coven, one JSON value each
	inputFd    = 6 // the program's standard input, unless it is the shim's own
	terminalFd = 7 // the program's standard output and error, likewise
)

// What the control pipe can ask for: TERM, grace and KILL, or KILL at once.
const (
	commandTerm = 'T'
	commandKill = 'K'
)

// order is what a shim is told to do.
type order struct {
	Containment Containment
	// UserNamespace says that the shim was started in one of its own.
	UserNamespace bool
	// Probe asks only whether the containment can be set up.
	Probe bool
	// Self is the argv prefix of the launcher command.
	Self []text
	Argv []text
	Dir  text
	Env  []text
	// Inherit gives the program the shim's own environment and standard streams
	// instead of Env, inputFd and terminalFd, and tells a failed start on
	// standard error.
	Inherit bool
	// Leftover is the grace of what the program leaves behind.
	Grace, Leftover time.Duration
}

// report is one message from a shim about one thing: it runs, it could not, it ended.
type report struct {
	Ready  bool     `json:",omitempty"`
	Main   int      `json:",omitempty"` // with Ready: the program's process ID, as the shim sees it
	Failed *failure `json:",omitempty"`
	Ended  *ended   `json:",omitempty"`
}

// ended is how the program ended. Stopped: after a stop was asked for.
type ended struct {
	Code    int
	Signal  syscall.Signal
	Stopped bool
}

// failure is an error that crosses from one process to another: either one
// about a path, which keeps its meaning, or a Note on why the launcher broke.
type failure struct {
	Op       string
	Path     text
	Errno    syscall.Errno
	NotFound bool
	Note     string
}

func newFailure(err error) *failure {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return &failure{Note: err.Error()}
	}
	f := &failure{Op: path.Op, Path: text(path.Path), NotFound: errors.Is(err, ErrNotFound)}
	if !f.NotFound && !errors.As(err, &f.Errno) {
		return &failure{Note: err.Error()}
	}
	return f
}

func (f *failure) err() error {
	if f.Note != "" {
		return fmt.Errorf("%w: %s", ErrLauncher, f.Note)
	}
	err := error(f.Errno)
	if f.NotFound {
		err = ErrNotFound
	}
	return &fs.PathError{Op: f.Op, Path: string(f.Path), Err: err}
}

// text is a string of any bytes; plain JSON strings would mangle those that
// are not UTF-8.
type text string

// MarshalText encodes the bytes as base64.
func (t text) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString([]byte(t))), nil
}

// UnmarshalText decodes what MarshalText made.
func (t *text) UnmarshalText(data []byte) error {
	raw, err := base64.StdEncoding.DecodeString(string(data))
	*t = text(raw)
	return err
}

func texts(list []string) []text {
	out := make([]text, len(list))
	for i, s := range list {
		out[i] = text(s)
	}
	return out
}

func plain(list []text) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}

// readOrder reads the whole memory file, whose offset other stages share.
func readOrder(file *os.File) (order, error) {
	var o order
	info, err := file.Stat()
	if err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	err = json.NewDecoder(io.NewSectionReader(file, 0, info.Size())).Decode(&o)
	if err != nil {
		return o, fmt.Errorf("read order: %w", err)
	}
	return o, nil
}
