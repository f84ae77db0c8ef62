package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/process/sockets"
)

// stage is a temporary directory for empty files and for directories until they are mounted. It covers
// /proc; the namespace's own /proc is mounted afterwards.
const (
	stage     = "/proc"
	emptyFile = stage + "/file"
	emptyDir  = stage + "/dir"
)

// maxFrozen limits the entries of a frozen directory. Each is a mount, and the kernel limits their number.
const maxFrozen = 5000

// sharedMemory is the directory of POSIX shared memory and semaphores.
const sharedMemory = "/dev/shm"

// view changes the file system of this mount namespace into the one that a program sees. Its maps contain
// paths without symbolic links.
type view struct {
	limits  *limits
	write   []string          // the writable files and directories
	connect []string          // Connect
	hidden  map[string]bool   // true if already covered
	beside  []string          // the directories of these paths are frozen
	parents map[string]string // results of parent
	partial map[string][]string
	caches  map[string]string // the places of Caches, each with the path that is mounted there
	made    int               // number of directories on the stage
}

// seal makes everything outside Write read-only in this mount namespace, including attributes and times,
// and hides the hidden paths and the sockets of the user's other programs. Files are replaced after the mounts
// of the writable paths, which would cover them.
func (l *limits) seal() error {
	working, _ := os.Getwd() // empty if it was removed
	v := &view{limits: l, hidden: map[string]bool{}, parents: map[string]string{}, caches: map[string]string{}}
	if err := v.resolve(); err != nil {
		return err
	}
	v.hideSockets()
	places := v.frozenPlaces()
	if err := v.prepareStage(); err != nil {
		return err
	}
	for _, dir := range places {
		if err := v.freeze(dir); err != nil {
			return fmt.Errorf("hide: freeze %s: %w", dir, err)
		}
	}
	for dir, shown := range v.partial {
		if err := v.show(dir, shown); err != nil {
			return fmt.Errorf("show parts of %s: %w", dir, err)
		}
	}
	if err := v.protect(); err != nil {
		return err
	}
	if err := readOnly(stage, 0); err != nil {
		return err
	}
	if err := v.replace(); err != nil {
		return err
	}
	for path, covered := range v.hidden {
		if !covered {
			if err := cover(path); err != nil {
				return fmt.Errorf("hide %s: %w", path, err)
			}
		}
	}
	if err := v.link(); err != nil {
		return err
	}
	if err := unix.Unmount(stage, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("hide: %w", err)
	}
	// The working directory is still the one below the new mounts, from which relative paths lead around them.
	if err := os.Chdir(working); err != nil {
		return os.Chdir("/")
	}
	return nil
}

// makeStage mounts the stage, with the files that replace others.
func (l *limits) makeStage() error {
	if err := unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=1m,mode=0755"); err != nil {
		return fmt.Errorf("hide: mount an empty directory: %w", err)
	}
	if err := errors.Join(os.WriteFile(emptyFile, nil, 0o444), os.Mkdir(emptyDir, 0o555)); err != nil {
		return fmt.Errorf("hide: %w", err)
	}
	for i, r := range l.Replace {
		if err := os.WriteFile(replaced(i), []byte(r.Content), 0o444); err != nil {
			return fmt.Errorf("replace %s: %w", r.Path, err)
		}
	}
	return nil
}

// resolve resolves the symbolic links in the paths of the limits.
func (v *view) resolve() error {
	for _, path := range plain(v.limits.Write) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return fmt.Errorf("boundary: %w", err)
		}
		v.write = append(v.write, real)
	}
	slices.Sort(v.write)
	for _, path := range plain(v.limits.Connect) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			v.connect = append(v.connect, real)
		}
	}
	v.partial = v.limits.partialDirs()
	hidden, err := v.limits.resolved()
	for path := range hidden {
		v.hidden[path] = false
	}
	v.beside = slices.Concat(plain(v.limits.Hide), slices.Collect(maps.Keys(hidden)), v.connect)
	return err
}

// hideSockets adds the user's sockets to the hidden paths, except those in Connect. It leaves a directory live
// that contains writable paths, for example a git directory, which contains those of its worktrees.
func (v *view) hideSockets() {
	for _, path := range plain(v.limits.Sockets) {
		dir := v.parent(path)
		real := filepath.Join(dir, filepath.Base(path))
		if isWithin(real, v.connect) {
			continue
		}
		v.hidden[real] = false
		if !slices.ContainsFunc(v.write, func(path string) bool { return isWithin(path, []string{dir}) }) {
			v.beside = append(v.beside, real)
		}
	}
}

// frozenPlaces returns the directories to freeze, parents first: those with hidden paths, with paths that will be
// hidden if they appear, and with sockets. A program's own directories are not frozen. Neither is a
// directory with a writable file: this is a login, and the program needs the file with which another
// program replaces it.
func (v *view) frozenPlaces() []string {
	if v.limits.Live {
		return nil
	}
	places := map[string]bool{}
	for _, path := range v.beside {
		places[v.parent(path)] = true
	}
	maps.DeleteFunc(places, func(dir string, _ bool) bool {
		for partial, shown := range v.partial {
			if isWithin(dir, []string{partial}) && !isWithin(dir, shown) {
				return true
			}
		}
		hasWritable := slices.ContainsFunc(v.write, func(path string) bool { return filepath.Dir(path) == dir && !isDir(path) })
		return dir == "/" || hasWritable || isWithin(dir, slices.Collect(maps.Keys(v.hidden))) || isWithin(dir, v.write) || isWithin(dir, v.connect) || isWithin(dir, []string{"/proc", "/sys", "/dev"})
	})
	return slices.Sorted(maps.Keys(places))
}

// parent returns the closest existing directory above a path, without symbolic links. It returns "/" if
// this process cannot access it.
func (v *view) parent(path string) string {
	dir := filepath.Dir(path)
	if known, ok := v.parents[dir]; ok {
		return known
	}
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		real = v.parent(dir)
	case err != nil:
		real = "/"
	}
	v.parents[dir] = real
	return real
}

// freeze replaces a directory by one with the present entries, so that later ones do not appear, and files
// that replace hidden ones do not either. Hidden files and directories look empty, and sockets are missing. It
// does nothing if the directory cannot be listed or is too large.
func (v *view) freeze(dir string) error {
	entries, info, err := list(dir)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || len(entries) > maxFrozen {
		return nil
	}
	if err != nil {
		return err
	}
	copied, err := v.newDir()
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := v.copyEntry(filepath.Join(dir, entry.Name()), filepath.Join(copied, entry.Name()), entry); err != nil {
			return err
		}
	}
	return substitute(dir, copied, info)
}

// newDir creates an empty directory on the stage, as a mount of its own.
func (v *view) newDir() (string, error) {
	v.made++
	dir := filepath.Join(stage, strconv.Itoa(v.made))
	return dir, errors.Join(os.Mkdir(dir, 0o700), unix.Mount(dir, dir, "", unix.MS_BIND, ""))
}

// substitute mounts a directory of newDir over another one, with its owner and mode.
func substitute(dir, by string, info fs.FileInfo) error {
	stat := info.Sys().(*syscall.Stat_t)             //nolint:forcetypeassert // the type on Linux
	_ = unix.Chown(by, int(stat.Uid), int(stat.Gid)) // fails for other users in a user namespace
	if err := unix.Chmod(by, stat.Mode&0o7777); err != nil {
		return err
	}
	return ignoreMissing(unix.Mount(by, dir, "", unix.MS_MOVE, ""))
}

// show replaces a directory by one that has only the shown paths in it.
func (v *view) show(dir string, shown []string) error {
	info, err := os.Lstat(dir)
	if err != nil || slices.Contains(shown, dir) {
		return ignoreMissing(err)
	}
	copied, err := v.newDir()
	if err != nil {
		return err
	}
	for _, path := range shown {
		to := filepath.Join(copied, strings.TrimPrefix(path, dir))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := placeholder(to, isDir(path)); err != nil {
			return err
		}
		err := bind(path, to)
		if isMissing(err) {
			err = os.Remove(to)
		}
		if err != nil {
			return err
		}
	}
	return substitute(dir, copied, info)
}

// prepareStage mounts the stage and, on it, the caches.
func (v *view) prepareStage() error {
	if err := v.limits.makeStage(); err != nil {
		return err
	}
	return v.mountCaches()
}

// mountCaches mounts the caches on the stage. The kernel does not look into mounts in the directories that it combines,
// such as those of frozen ones.
func (v *view) mountCaches() error {
	for _, cache := range v.limits.Caches {
		dir, err := v.newDir()
		if err != nil {
			return err
		}
		dir = cache.Mount(dir)
		for _, place := range cache.Places {
			v.caches[place] = dir
		}
	}
	return nil
}

// list returns the entries of a directory, at most one more than maxFrozen.
func list(dir string) ([]fs.DirEntry, fs.FileInfo, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close() //nolint:errcheck // nothing is written
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	entries, err := file.ReadDir(maxFrozen + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, info, err
}

// copyEntry mounts an entry of a directory at another path, or the empty file or directory if it is hidden. It
// copies symbolic links, and omits sockets of the user.
func (v *view) copyEntry(from, to string, entry fs.DirEntry) error {
	if entry.Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		return os.Symlink(target, to)
	}
	_, hidden := v.hidden[from]
	if hidden {
		v.hidden[from] = true
	}
	if entry.Type() == fs.ModeSocket {
		info, err := entry.Info()
		if hidden || err != nil || sockets.IsOfUser(info) && !isWithin(from, v.connect) {
			return nil //nolint:nilerr // it is gone
		}
	}
	if hidden {
		if from = emptyFile; entry.IsDir() {
			from = emptyDir
		}
	}
	if err := placeholder(to, entry.IsDir()); err != nil {
		return err
	}
	err := bind(from, to)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EINVAL) { // gone, replaced, or not to be copied
		return os.Remove(to)
	}
	return err
}

// bind mounts a file or directory, with all mounts in it, at another path. It does not follow a link that has just
// replaced it.
func bind(from, to string) error {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return err
	}
	return errors.Join(unix.MoveMount(fd, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH), unix.Close(fd))
}

// placeholder creates an empty file or directory to mount over.
func placeholder(path string, dir bool) error {
	if dir {
		return unix.Mkdir(path, 0o555)
	}
	return unix.Mknod(path, unix.S_IFREG|0o444, 0)
}

// protect makes all mounts read-only, except those of the writable paths, and mounts Shm over /dev/shm. A copy of
// a writable path, made before, keeps the flags of its mounts and is mounted over it afterwards.
func (v *view) protect() (err error) {
	copies := map[string]int{} // the descriptor of the mounts for each path
	defer func() {
		for _, fd := range copies {
			err = errors.Join(err, unix.Close(fd)) // a mount that has a place remains
		}
	}()
	for path, from := range v.copied() {
		if copies[path], err = unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
			return fmt.Errorf("copy the mount of %s: %w", from, err)
		}
	}
	if !slices.Contains(v.write, "/") {
		if err := readOnly("/", unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(copies)) { // directories before what is in them
		err := unix.MoveMount(copies[path], "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if _, cache := v.caches[path]; err != nil && (!cache || !isMissing(err)) {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	return nil
}

// readOnly makes a mount read-only, and with AT_RECURSIVE all mounts in it.
func readOnly(path string, flags uint) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("make mounts read-only: %w", err)
	}
	return nil
}

// copied returns the paths that stay writable, each with the path that is mounted there. Only caches are in others.
func (v *view) copied() map[string]string {
	copied := maps.Clone(v.caches)
	for i, path := range v.write {
		if path != "/" && !isWithin(path, v.write[:i]) {
			copied[path] = path
		}
	}
	if shm := string(v.limits.Shm); shm != "" && isDir(sharedMemory) {
		copied[sharedMemory] = shm
	}
	return copied
}

// replaced returns the path of the file that replaces another.
func replaced(i int) string { return filepath.Join(stage, fmt.Sprint("replaced", i)) }

// replace mounts the files with the contents of Replace, with the flags of the stage.
func (v *view) replace() error {
	for i, r := range v.limits.Replace {
		path := string(r.Path)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // nothing to replace
		}
		if err := bind(replaced(i), path); err != nil {
			return fmt.Errorf("replace %s: %w", path, err)
		}
	}
	return nil
}

// link mounts the linked directories, with the flags and covers that they have elsewhere.
func (v *view) link() error {
	for _, l := range v.limits.Link {
		source, err := filepath.EvalSymlinks(string(l.Source))
		if err != nil || !isDir(source) || !isDir(string(l.Path)) {
			continue // nothing to link
		}
		if err := bind(source, string(l.Path)); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	return nil
}

// cover mounts an empty file or directory over a hidden path, with the flags of the stage.
func cover(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return ignoreMissing(err) // it may be below a path that is already covered
	}
	empty := emptyFile
	if info.IsDir() {
		empty = emptyDir
	}
	return ignoreMissing(bind(empty, path))
}

// ignoreMissing returns nil if a file is gone: other programs remove theirs, such as sockets, at any time.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// isMissing reports whether a directory is gone, or was replaced by a file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// isDir reports whether a path is a directory, and not a link to one.
func isDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}
