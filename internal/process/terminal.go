package process

import (
	"errors"
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openTerminal returns both ends of a raw terminal. The master is non-blocking, so
// that a waiting reader needs no thread and supports deadlines; its Fd method must not
// be called, because it would make it blocking again.
func openTerminal(size Size) (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	master, err = pollable(blocking)
	if err == nil {
		err = prepare(slave, size)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("prepare terminal: %w", err), slave.Close(), master.Close())
	}
	return master, slave, nil
}

// pollable returns a non-blocking file for the same open file description in place of
// file. The result must be closed, even if there is an error.
func pollable(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return file, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return file, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), file.Name()), file.Close()
}

// prepare sets the terminal up before any program can see it.
func prepare(slave *os.File, size Size) error {
	if _, err := term.MakeRaw(int(slave.Fd())); err != nil {
		return err
	}
	return pty.Setsize(slave, &pty.Winsize{Rows: size.Rows, Cols: size.Cols})
}
