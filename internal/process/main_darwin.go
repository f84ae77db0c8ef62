package process

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ownProgram returns the path from which this process was started.
func ownProgram() (string, error) { return os.Executable() }

// ontoInput makes a file the standard input.
func ontoInput(file *os.File) error { return unix.Dup2(int(file.Fd()), 0) }

// contain keeps the program, which runs as the same user, from tracing the shim.
func (*wire) contain() error {
	if err := unix.PtraceDenyAttach(); err != nil {
		return fmt.Errorf("protect shim: %w", err)
	}
	return nil
}
