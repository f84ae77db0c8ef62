package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process/keyring"
)

// writing is the set of rights to change files, and to use devices and sockets outside.
const writing = landlock.AccessFSSet(ll.AccessFSWriteFile | ll.AccessFSTruncate |
	ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSRefer |
	ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock |
	ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym |
	ll.AccessFSIoctlDev | ll.AccessFSResolveUnix)

// reading is the set of rights to read or execute files.
const reading = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir)

// neverGranted is the set of rights that no program needs: root could create devices to access the
// disks, and sockets of other programs lead outside.
const neverGranted = landlock.AccessFSSet(ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSResolveUnix)

// onFiles is the set of rights that apply to a file.
const onFiles = landlock.AccessFSSet(ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile |
	ll.AccessFSTruncate | ll.AccessFSIoctlDev | ll.AccessFSResolveUnix)

// devices returns the devices that every program may use.
func devices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", terminalsDir}
}

// landlockABI returns the version of Landlock's interface, or 0 without Landlock.
var landlockABI = sync.OnceValue(func() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
})

// enforcement returns the abilities of the kernel.
func enforcement(m mode) Enforcement {
	return Enforcement{ABI: landlockABI(), Covers: m.containment == PIDNamespace}
}

// within returns the command line that runs a program. The limits are already in effect.
func (*limits) within(path string, argv []string) (string, []string) { return path, argv }

// configOf returns the restrictions of an ABI version. It does not use the library's best-effort
// mode, which silently restricts nothing if it cannot restrict everything.
func configOf(abi int) (landlock.Config, error) {
	versions := []landlock.Config{
		{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9,
	}
	if abi < 1 {
		return landlock.Config{}, ErrNoBoundary
	}
	all := versions[min(abi, len(versions)-1)]
	all.HandledAccessNet = 0 // a restriction by port would not be a boundary
	return all, nil
}

// enforce restricts this process, and the programs that it executes, to the limits.
func (l *limits) enforce() error {
	config, err := configOf(landlockABI())
	if err != nil {
		return err
	}
	if l.Covered || len(l.Hide)+len(l.Partial) == 0 {
		config.HandledAccessFS &= writing
	}
	rules, err := l.rules(config.HandledAccessFS)
	if err != nil {
		return err
	}
	if err := config.Restrict(rules...); err != nil {
		return fmt.Errorf("set the boundary: %w", err)
	}
	return errors.Join(keyring.Refuse(), dropCapabilities())
}

// kept returns the capabilities that a program of root keeps: those of a container, except
// for making devices and, because the network is the machine's, capturing packets. The
// others lead around the boundary: into the memory of other processes, to the disks, or into the
// kernel.
func kept() []uintptr {
	return []uintptr{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_SETGID, unix.CAP_SETUID,
		unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE,
	}
}

// dropCapabilities drops all other capabilities of this thread. Programs that it executes cannot regain
// them, because new privileges are forbidden.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	var keep [2]uint32
	for _, one := range kept() {
		keep[one/32] |= 1 << (one % 32)
	}
	for i := range held {
		held[i].Effective &= keep[i]
		held[i].Permitted &= keep[i]
		held[i].Inheritable &= keep[i]
	}
	if err := unix.Capset(&header, &held[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// rules returns the exceptions that the limits allow from the restricted rights.
func (l *limits) rules(restricted landlock.AccessFSSet) ([]landlock.Rule, error) {
	var rules []landlock.Rule
	allow := func(path string, rights landlock.AccessFSSet, dir bool) {
		if rights &= restricted; !dir {
			rights &= onFiles
		}
		if rights != 0 {
			rules = append(rules, landlock.PathAccess(rights, path).IgnoreIfMissing())
		}
	}
	write := plain(l.Write)
	if l.Shm != "" {
		write = append(write, string(l.Shm))
	}
	for _, path := range write {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("boundary: %w", err)
		}
		allow(path, (reading|writing)&^neverGranted, info.IsDir())
	}
	for _, cache := range l.Caches {
		for _, place := range cache.Places {
			allow(place, (reading|writing)&^neverGranted, true)
		}
	}
	for _, path := range devices() {
		if info, err := os.Stat(path); err == nil {
			allow(path, reading|ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSIoctlDev, info.IsDir())
		}
	}
	for _, path := range l.ownTerminals() {
		allow(path, ll.AccessFSReadFile|ll.AccessFSWriteFile|ll.AccessFSTruncate|ll.AccessFSIoctlDev, false)
	}
	for _, path := range plain(l.Connect) {
		if info, err := os.Stat(path); err == nil {
			allow(path, ll.AccessFSResolveUnix, info.IsDir())
		}
	}
	if restricted&reading == 0 {
		return rules, nil
	}
	return rules, l.eachReadable(func(path string, mode fs.FileMode, whole bool) {
		if whole {
			allow(path, reading, mode.IsDir())
		} else {
			allow(path, ll.AccessFSReadDir, true)
		}
	})
}

// eachReadable calls visit for files and directories that are wholly readable, and together contain
// everything that is not hidden, and for the directories that contain hidden paths. Links are skipped,
// because their targets are visited directly.
func (l *limits) eachReadable(visit func(path string, mode fs.FileMode, whole bool)) error {
	hidden, err := l.resolved()
	if err != nil {
		return err
	}
	partly, partial := maps.Clone(hidden), l.partialDirs()
	for dir := range partial {
		partly[dir] = true
	}
	var walk func(dir string) error
	walk = func(dir string) error {
		shown, isPartial := partial[dir]
		whole := !isPartial && !contains(dir, partly)
		if visit(dir, fs.ModeDir, whole); whole {
			return nil
		}
		if isPartial {
			return l.eachShown(dir, shown, visit, walk)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("boundary: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			switch {
			case hidden[path] || entry.Type()&fs.ModeSymlink != 0:
			case !entry.IsDir():
				visit(path, entry.Type(), true)
			default:
				if err := walk(path); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk("/")
}

// eachShown is eachReadable for a partial directory, which has been visited.
func (l *limits) eachShown(dir string, shown []string, visit func(path string, mode fs.FileMode, whole bool), walk func(string) error) error {
	above := map[string]bool{dir: true}
	for _, path := range shown {
		for up := filepath.Dir(path); !above[up] && isWithin(up, []string{dir}); up = filepath.Dir(up) {
			above[up] = true
			visit(up, fs.ModeDir, false)
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil: // it is gone
		case !info.IsDir():
			visit(path, info.Mode().Type(), true)
		case path != dir:
			if err := walk(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolved returns the hidden paths that exist, with links resolved.
func (l *limits) resolved() (map[string]bool, error) {
	all := map[string]bool{}
	for _, path := range plain(l.Hide) {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue // common case: one lookup instead of one per parent directory
		}
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err == nil:
			all[real] = true
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.ENOTDIR):
			return nil, fmt.Errorf("hide: %w", err)
		}
	}
	return all, nil
}

// contains reports whether one of the paths is below dir.
func contains(dir string, paths map[string]bool) bool {
	for path := range paths {
		if dir == "/" || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// terminalsDir is the directory of pseudo-terminals.
const terminalsDir = "/dev/pts"

// coverTerminals gives this mount namespace its own pseudo-terminals. On those of the machine
// a program could read the user's input and write to the user's screen.
func (l *limits) coverTerminals() error {
	if info, err := os.Lstat(terminalsDir); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nothing to cover
	}
	if err := unix.Mount("devpts", terminalsDir, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600"); err != nil {
		return fmt.Errorf("cover %s: %w", terminalsDir, err)
	}
	return nil
}

// ownTerminals returns the standard streams that are terminals of the machine if these are otherwise
// covered. coven created them for the program, and programs may open them as /dev/stderr.
func (l *limits) ownTerminals() []string {
	var own []string
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil && l.Covered {
			own = append(own, fmt.Sprintf("%s/%d", descriptorsDir, fd))
		}
	}
	return own
}
