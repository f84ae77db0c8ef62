package process

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process/loopback"
)

// ownProgram returns the path of this process's program.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// ontoInput makes a file the standard input.
func ontoInput(file *os.File) error { return unix.Dup3(int(file.Fd()), 0, 0) }

// contain ensures that no process of the tree outlives this process.
func (w *wire) contain() error {
	// The program runs as the same user and must not trace this process or read its
	// memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protect shim: %w", err)
	}
	switch w.order.Containment {
	case PIDNamespace:
		return w.enterNamespace()
	case ProcessGroup:
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// enterNamespace mounts the namespace's own /proc, then drops the capability needed
// for that.
func (w *wire) enterNamespace() error {
	if os.Getpid() != 1 {
		return errors.New("not the init of a PID namespace") // so signalling all processes would reach others
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if w.order.Limits != nil {
		if err := errors.Join(w.order.Limits.seal(), w.order.Limits.coverTerminals()); err != nil {
			return err
		}
	}
	if network := w.order.Network; network != nil {
		if err := loopback.Open(network.Ports, network.Fd); err != nil {
			return err
		}
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if !w.order.UserNamespace {
		return nil
	}
	none := [2]unix.CapUserData{} // dropping permitted capabilities also drops ambient ones
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
