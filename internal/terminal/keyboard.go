package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
)

// Keyboard is the input of a terminal. Normally the terminal collects lines and echoes them.
// While a question is open, it reports each key, including Ctrl-Z and Ctrl-\. Ctrl-C is a signal in
// both modes, unless the question handles it as a key.
type Keyboard struct {
	in  *os.File
	out io.Writer

	mu    sync.Mutex
	mode  *unix.Termios // mode to restore; nil in line mode
	keeps bool          // earlier input is kept
}

// NewKeyboard returns the keyboard of the terminal in, whose screen is out.
func NewKeyboard(in *os.File, out io.Writer) *Keyboard { return &Keyboard{in: in, out: out} }

// Control sequences for reading keys: they hide the cursor and enable
// bracketed paste.
const (
	keysBegin = "\x1b[?25l\x1b[?2004h"
	keysEnd   = "\x1b[?2004l\x1b[?25h"
)

// readKeys makes the terminal report keys. It discards earlier input, unless a person writes a message: with message, Ctrl-C is
// reported as a key, too.
func (k *Keyboard) readKeys(message bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	mode, err := unix.IoctlGetTermios(int(k.in.Fd()), getTermios)
	if err != nil {
		return fmt.Errorf("read the mode of the terminal: %w", err)
	}
	keys := *mode
	keys.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL | unix.IEXTEN
	keys.Iflag &^= unix.ICRNL | unix.INLCR | unix.IGNCR
	keys.Cc[unix.VMIN], keys.Cc[unix.VTIME] = 1, 0
	keys.Cc[unix.VSUSP], keys.Cc[unix.VQUIT] = noKey, noKey
	if message {
		keys.Cc[unix.VINTR] = noKey
	}
	if err := unix.IoctlSetTermios(int(k.in.Fd()), setTermios, &keys); err != nil {
		return fmt.Errorf("set the mode of the terminal: %w", err)
	}
	if k.keeps = message; !k.keeps {
		k.forget()
	}
	if k.mode == nil {
		k.mode = mode
	}
	_, _ = io.WriteString(k.out, keysBegin) // a closed terminal must not stop the run
	return nil
}

// forget discards unread input.
func (k *Keyboard) forget() { flushInput(int(k.in.Fd())) }

// Release restores line mode and shows the cursor. It reports whether
// keys were being read. It may be called at any time, even on a nil Keyboard.
func (k *Keyboard) Release() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mode == nil {
		return false
	}
	_ = unix.IoctlSetTermios(int(k.in.Fd()), setTermios, k.mode) // a closed terminal needs no mode
	if !k.keeps {
		k.forget()
	}
	k.mode = nil
	_, _ = io.WriteString(k.out, keysEnd) // as above
	return true
}

// Lend lets another program use the terminal until restore is called. restore resets the mode of the
// terminal, because a killed program does not. Lend may be called on a nil
// Keyboard.
func (k *Keyboard) Lend() (restore func()) {
	if k == nil {
		return func() {}
	}
	mode, err := unix.IoctlGetTermios(int(k.in.Fd()), getTermios)
	if err != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(int(k.in.Fd()), setTermios, mode) } // a closed terminal needs no mode
}

// reader returns a reader for the keys of one question.
func (k *Keyboard) reader() (*keyReader, error) {
	in, err := cancelreader.NewReader(k.in)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the terminal: %w", err)
	}
	return &keyReader{in: in}, nil
}

// keyReader reads the keys of one question. When a question is withdrawn, bubbletea would abandon its own
// read of the terminal without waiting for it to end. That read could consume a
// key of the next question, and it would use closed files.
type keyReader struct {
	in cancelreader.CancelReader

	mu     sync.Mutex // held during a read
	closed bool
}

// Read returns the bytes of keys, or io.EOF after close.
func (r *keyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, io.EOF
	}
	n, err := r.in.Read(p)
	if errors.Is(err, cancelreader.ErrCanceled) {
		err = io.EOF
	}
	return n, err //nolint:wrapcheck // bubbletea interprets it
}

// close cancels a running read without consuming a key, and waits for its end.
func (r *keyReader) close() {
	r.in.Cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	_ = r.in.Close() // nothing was written to it
}
