package process

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// ErrNoBoundary means that the kernel cannot hold a program to a Boundary.
var ErrNoBoundary = errors.New("the kernel cannot limit what programs write")

// Boundary limits what a program and everything that it starts can do to the machine. The
// kernel enforces it: on Linux, Landlock and a mount namespace; on macOS, a profile of sandbox-exec.
//
// The program can change the files below Write and the basic devices, and nothing else. It
// can send signals, and connect to abstract sockets, only among its own processes, from
// Landlock ABI 6; to path sockets likewise, from ABI 9. It can trace nobody else. It reads
// everything that its user can read, except Hide.
//
// With a mount namespace it has terminals and System V shared memory of its own.
//
// What stays open: attributes and times of files that the user owns, truncation below ABI 3,
// the network, and the sockets above below their ABI.
type Boundary struct {
	// Write holds the files and directories that may be changed, with all that is below
	// them: absolute paths that exist.
	Write []string
	// Hide holds files and directories that look empty, as absolute paths; those that do
	// not exist are skipped. With a mount namespace they are covered by empty ones. Without
	// one, reads of them are refused: the names in them can be listed, and files that are
	// created later beside them, or beside a directory that contains them, cannot be read.
	Hide []string
	// Connect holds sockets of others, or directories of them, to which the program may
	// connect: absolute paths that exist. Below ABI 9, it may connect to all that it sees.
	Connect []string
	// Shm is a directory that takes the place of /dev/shm, which all programs of the machine
	// share, and may be changed there; empty: none does. It needs a mount namespace.
	Shm string
}

// check returns an error if the boundary is invalid or the kernel cannot enforce it.
func (b *Boundary) check() error {
	if b == nil {
		return nil
	}
	for _, path := range slices.Concat(b.Write, b.Hide, b.Connect, []string{cmp.Or(b.Shm, "/")}) {
		if !filepath.IsAbs(path) || slices.Contains([]byte(path), 0) {
			return fmt.Errorf("boundary: %q is not an absolute path", path)
		}
	}
	if !enforcement(mode{}).Any() {
		return ErrNoBoundary
	}
	return nil
}

// limits is a Boundary in an order.
type limits struct {
	Write, Hide, Connect []text
	Shm                  text
	Covered              bool // by mounts: Hide, and /dev/shm
}

func (b *Boundary) limits(m mode) *limits {
	if b == nil {
		return nil
	}
	return &limits{Write: texts(b.Write), Hide: texts(b.Hide), Connect: texts(b.Connect), Shm: text(b.Shm), Covered: m.containment == PIDNamespace}
}

// Enforcement is what this machine can enforce of a Boundary. Its zero value means nothing.
type Enforcement struct {
	ABI    int  // version of Landlock's interface; 0: no Landlock
	Covers bool // Hide is covered by mounts
	// Profile means that sandbox-exec of macOS enforces the Boundary. coven has not run there
	// yet.
	Profile bool
}

// Any reports whether a Boundary can be enforced.
func (e Enforcement) Any() bool { return e.ABI > 0 || e.Profile }

// Enforcement returns what the launcher can enforce of a Boundary. The first call takes some
// milliseconds.
func (l *Launcher) Enforcement() Enforcement {
	return enforcement(l.mode())
}
