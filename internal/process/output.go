package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	// orphanWait limits how long a reader waits for more output after the tree has ended.
	// Only a process outside the tree that keeps the terminal open can make it wait.
	orphanWait = 200 * time.Millisecond
	// orphanBytes limits the bytes that are read after that; the kernel buffers less.
	orphanBytes = 1 << 20
)

// output reads a child's terminal or pipe. Unread bytes stay in the kernel, so a slow reader
// loses nothing but blocks the child.
type output struct {
	master     *os.File
	kept       *os.File // the terminal's other end, or nil: see keepTerminal
	transcript io.Writer
	active     func()      // called after every read that returned bytes
	broken     func(error) // called when the transcript fails
	ended      chan struct{}

	reading sync.Mutex
	left    int // bytes still accepted after ended
	over    error
}

func newOutput(master, kept *os.File, transcript io.Writer, active func(), broken func(error)) *output {
	return &output{
		master: master, kept: kept, transcript: transcript, active: active, broken: broken,
		ended: make(chan struct{}), left: orphanBytes,
	}
}

// Read returns io.EOF when the tree has ended and all its output is read.
func (o *output) Read(p []byte) (int, error) {
	o.reading.Lock()
	defer o.reading.Unlock()
	if o.over != nil || len(p) == 0 {
		return 0, o.over
	}
	n, err := o.read(p)
	if n > 0 {
		o.record(p[:n])
		return n, nil
	}
	o.over = err
	if closing := o.close(); closing != nil && errors.Is(err, io.EOF) {
		o.over = fmt.Errorf("close terminal: %w", closing)
	}
	return 0, o.over
}

func (o *output) read(p []byte) (int, error) {
	for {
		final := o.final()
		if final {
			if o.left <= 0 || o.kept != nil && !o.pending() {
				return 0, io.EOF
			}
			p = p[:min(len(p), o.left)]
			if err := o.master.SetReadDeadline(time.Now().Add(orphanWait)); err != nil {
				return 0, fmt.Errorf("read terminal: %w", err)
			}
		}
		n, err := o.master.Read(p)
		switch {
		case n > 0:
			if final {
				o.left -= n
			}
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded) && !final:
			<-o.ended // end woke us up; read on with a deadline of our own
		case errors.Is(err, syscall.EIO), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF):
			return 0, io.EOF
		default:
			return 0, fmt.Errorf("read output: %w", err)
		}
	}
}

func (o *output) record(p []byte) {
	o.active()
	if o.transcript == nil {
		return
	}
	if _, err := o.transcript.Write(p); err != nil {
		o.transcript = nil
		o.broken(fmt.Errorf("write transcript: %w", err))
	}
}

func (o *output) final() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// end records that the tree has ended. The deadline wakes a waiting reader; it is set
// before final can be true, so it cannot interrupt a final read. A closed master has
// no reader to wake.
func (o *output) end() {
	_ = o.master.SetReadDeadline(time.Unix(1, 0))
	close(o.ended)
}

// pending reports whether there is unread output.
func (o *output) pending() bool {
	raw, err := o.master.SyscallConn()
	if err != nil {
		return false
	}
	waiting := false
	err = raw.Control(func(fd uintptr) { waiting = unread(int(fd)) })
	return err == nil && waiting
}

// close closes the terminal. It closes the master first, because closing the other end
// could wait for a reader.
func (o *output) close() error {
	err := o.master.Close()
	if o.kept != nil {
		err = errors.Join(err, o.kept.Close())
	}
	return err
}

// drain reads the remaining output for the transcript and closes the terminal.
func (o *output) drain() error {
	_, err := io.Copy(io.Discard, o)
	return err
}
