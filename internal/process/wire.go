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

// Descriptors of a shim in addition to the standard ones.
const (
	orderFd    = 3 // the order, a memory file
	controlFd  = 4 // coven's commands; end of file means that coven is dead
	statusFd   = 5 // reports to coven, one JSON value each
	inputFd    = 6 // the program's standard input, unless it is the shim's own
	terminalFd = 7 // the program's standard output and error, likewise
	socketFd   = 8 // for ownNetwork, if there is one; inputFd if those two are the shim's own
	readsFd    = 9 // a memory file for the list of limits.Reads, if there is one
)

// Commands on the control pipe: TERM, grace and KILL, or KILL at once.
const (
	commandTerm = 'T'
	commandKill = 'K'
)

// order is a shim's configuration.
type order struct {
	Containment Containment
	// UserNamespace means that the shim was started in its own user namespace.
	UserNamespace bool
	// Probe only tests whether the containment can be set up.
	Probe bool
	// Self is the argv prefix of the launcher command.
	Self []text
	Argv []text
	Dir  text
	Env  []text
	// Inherit gives the program the shim's own environment and standard streams instead of
	// Env, inputFd and terminalFd, and reports a failed start on standard error.
	Inherit bool
	Limits  *limits     `json:",omitempty"`
	Network *ownNetwork `json:",omitempty"`
	// Leftover is the grace for processes that the program leaves behind.
	Grace, Leftover time.Duration
}

// report is a message from a shim about the program: its process ID is known, it runs, it could not be
// started, or it has ended.
type report struct {
	Ready  bool     `json:",omitempty"`
	Main   int      `json:",omitempty"` // the program's process ID, as the shim sees it
	Failed *failure `json:",omitempty"`
	Ended  *ended   `json:",omitempty"`
}

// ended describes how the program ended. Stopped is set if it ended after a stop
// command.
type ended struct {
	Code    int
	Signal  syscall.Signal
	Stopped bool
}

// failure is an error sent from one process to another. It is either an error about a path,
// which can be reconstructed, or a Note about a failure of the launcher.
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

// text is a string of arbitrary bytes. A plain JSON string would corrupt bytes that
// are not UTF-8.
type text string

// MarshalText encodes the bytes as base64.
func (t text) MarshalText() ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString([]byte(t))), nil
}

// UnmarshalText decodes the output of MarshalText.
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
