package process

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coven-run/coven/internal/process/overlay"
	"github.com/coven-run/coven/internal/process/reads"
	"github.com/coven-run/coven/internal/process/sockets"
)

// ErrNoBoundary means that the kernel cannot enforce a Boundary.
var ErrNoBoundary = errors.New("the kernel cannot limit what programs write")

// Boundary limits the effects of a program and all its descendants on the machine. The
// kernel enforces it: Landlock and a mount namespace on Linux, a sandbox-exec profile on macOS.
//
// The program can change only the files below Write and the basic devices. From Landlock ABI 6,
// it can send signals and connect to abstract sockets only among its own processes; from ABI 9,
// the same holds for path sockets. It can trace only its own processes, and has no access to the
// keyrings of the kernel. It can read everything that its user can read, except Hide.
//
// With a mount namespace, everything else is mounted read-only, so that the program cannot change modes,
// owners, attributes and times either; sockets that the user owns are missing, except those in
// Connect; and the program has its own terminals and System V shared memory. The directories that
// contain hidden paths, or sockets, are frozen: entries that appear or are replaced later do not
// appear in them, and a file in them stays the one that it was at the start. Directories that are
// in Write, or contain a file in Write, are not frozen, nor are the root directory and those with more than
// 5,000 entries.
//
// Not restricted are truncation below ABI 3, the network without Loopback, and the sockets mentioned above below their
// ABI: those of other users, and those that appear later in a directory that is not frozen. Without
// a mount namespace, modes, owners, attributes and times of the user's files are not restricted either.
type Boundary struct {
	// Write lists the files and directories that may be changed, including everything below
	// them. The paths must be absolute and exist.
	Write []string
	// Hide lists files and directories that look empty, as absolute paths. They may be missing. With a
	// mount namespace they are covered by empty ones, and stay missing if they appear later. Without
	// one, reads of them are refused: the names in them can be listed, and files that are
	// created later next to them, or next to a directory that contains them, cannot be read.
	Hide []string
	// Partial maps directories to the paths in them that the program can read, besides Write and Connect. With a
	// mount namespace everything else in them is missing; without one, it cannot be read, but names can be
	// listed. The paths must be absolute; missing ones are skipped.
	Partial map[string][]string
	// Live prevents directories from being frozen: the program sees everything that appears later. It is for
	// trusted programs that run long.
	Live bool
	// Connect lists sockets of other programs, or directories of sockets, to which the program may
	// connect. The paths must be absolute and exist. Below ABI 9, it may connect to all visible sockets.
	Connect []string
	// Shm is a directory that replaces /dev/shm, which all programs of the machine share. The program
	// may change it there. It may be empty, and needs a mount namespace.
	Shm string
	// Replace maps paths of files to the contents that the program sees instead. It can neither change nor
	// remove these files. Missing files are skipped. Without a mount namespace, Replace has no effect.
	Replace map[string]string
	// Link maps directories in Write to directories that the program sees there instead, as changeable as they are
	// elsewhere. It skips those that are missing, or not directories. Without a mount namespace, Link has no effect.
	Link map[string]string
	// Caches returns directories of the user that the program can change without changing the user's, and a function for
	// when it has ended. It is called when the program starts, and only with a mount namespace. It may be nil.
	Caches func() ([]overlay.Dir, func(), error)
	// Reads records the files that the program reads. Without a mount namespace, it has no effect.
	Reads *Reads
	// Loopback gives the program a network of its own: see Launcher.PrivateNetwork. If it is nil, the program uses the
	// network of the machine.
	Loopback *Loopback
}

// network returns the program's own network, or nil.
func (b *Boundary) network() *Loopback {
	if b == nil {
		return nil
	}
	return b.Loopback
}

// check returns an error if the boundary is invalid or the kernel cannot enforce it.
func (b *Boundary) check() error {
	if b == nil {
		return nil
	}
	replaced, partial := slices.Collect(maps.Keys(b.Replace)), slices.Collect(maps.Keys(b.Partial))
	linked := slices.Concat(slices.Collect(maps.Keys(b.Link)), slices.Collect(maps.Values(b.Link)))
	for _, path := range slices.Concat(b.Write, b.Hide, b.Connect, replaced, linked, partial, slices.Concat(slices.Collect(maps.Values(b.Partial))...), []string{cmp.Or(b.Shm, "/")}) {
		if !filepath.IsAbs(path) || slices.Contains([]byte(path), 0) {
			return fmt.Errorf("boundary: %q is not an absolute path", path)
		}
	}
	if !enforcement(mode{}).Any() {
		return ErrNoBoundary
	}
	return b.Loopback.check()
}

// limits is a Boundary in the form for an order.
type limits struct {
	Write, Hide, Connect []text
	Shm                  text
	Covered              bool   // the program has its own view of the file system
	Live                 bool   // no directory is frozen
	Sockets              []text // of the user, hidden unless they are in Connect
	Replace              []replacement
	Link                 []linkedDir
	Partial              []partial
	Caches               []overlay.Dir
	Reads                *reads.Scope `json:",omitempty"`
}

func (b *Boundary) limits(m mode) (*limits, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // without limits
	}
	if b.Loopback != nil && m.containment != PIDNamespace {
		return nil, errNoNetwork
	}
	l := &limits{Write: texts(b.Write), Hide: texts(b.Hide), Connect: texts(b.Connect), Shm: text(b.Shm), Live: b.Live, Covered: m.containment == PIDNamespace}
	if l.Covered {
		found, err := sockets.OfUser()
		if err != nil {
			return nil, err
		}
		l.Sockets = texts(found)
	}
	if b.Reads != nil && l.Covered {
		l.Reads = &b.Reads.Scope
	}
	for dir, shown := range b.Partial {
		l.Partial = append(l.Partial, partial{text(dir), texts(shown)})
	}
	for path, source := range b.Link {
		l.Link = append(l.Link, linkedDir{text(path), text(source)})
	}
	for path, content := range b.Replace {
		l.Replace = append(l.Replace, replacement{text(path), text(content)})
	}
	return l, nil
}

type replacement struct{ Path, Content text }

type linkedDir struct{ Path, Source text }

// partial is a directory of which the program sees only some paths.
type partial struct {
	Dir   text
	Shown []text
}

// partialDirs returns the existing partial directories, each with the paths in it that are shown or granted, without
// symbolic links in the paths and without those in others.
func (l *limits) partialDirs() map[string][]string {
	dirs := map[string][]string{}
	granted := slices.Concat(plain(l.Write), plain(l.Connect))
	for _, p := range l.Partial {
		dir, err := filepath.EvalSymlinks(string(p.Dir))
		if err != nil {
			continue
		}
		var shown []string
		for _, path := range slices.Concat(plain(p.Shown), granted) {
			if real, err := filepath.EvalSymlinks(path); err == nil && isWithin(real, []string{dir}) {
				shown = append(shown, real)
			}
		}
		slices.Sort(shown) // directories before what is in them
		var apart []string
		for _, path := range shown {
			if !isWithin(path, apart) {
				apart = append(apart, path)
			}
		}
		dirs[dir] = apart
	}
	return dirs
}

// isWithin reports whether a path is one of dirs or below one of them.
func isWithin(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
	})
}

// Enforcement describes the parts of a Boundary that this machine can enforce. Its zero value means none.
type Enforcement struct {
	ABI    int  // version of Landlock's interface; 0 without Landlock
	Covers bool // mounts cover Hide and sockets, and make everything outside Write read-only
	// Profile means that sandbox-exec of macOS enforces the Boundary. This has not been tested on
	// macOS yet.
	Profile bool
}

// Any reports whether a Boundary can be enforced.
func (e Enforcement) Any() bool { return e.ABI > 0 || e.Profile }

// Enforcement returns the parts of a Boundary that the launcher can enforce. The first call takes some
// milliseconds.
func (l *Launcher) Enforcement() Enforcement {
	return enforcement(l.mode())
}
