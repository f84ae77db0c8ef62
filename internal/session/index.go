package session

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// The index is a cache of ended sessions. The file runDir/indexFile has a line for each one, with the summary of the session and the stamp of
// its journal. A line is valid only while the journal has this stamp, and a process that creates a session removes the line of an earlier one. If
// the index is missing, damaged or outdated, coven reads the journals instead. Processes replace the whole file and need no lock.
const (
	runDir    = ".coven/run"
	indexFile = "sessions.index"
	indexHead = "coven session index 2"
)

const (
	// maxIndex limits the size of the index in bytes.
	maxIndex = 64 << 20
	// indexBatch is the number of missing lines that triggers a rewrite of the index. It also limits
	// the number of superfluous lines.
	indexBatch = 16
	// settled is the minimum age of a journal's last change, because file systems do not
	// distinguish changes in quick succession.
	settled = 2 * time.Second
)

// fileStamp identifies a state of a file. Programs cannot set the change time of an
// inode, so a line of the index cannot be forged before its file exists.
type fileStamp struct {
	inode  int64
	size   int64
	mtime  int64 // in nanoseconds
	change int64 // change time of the inode, in nanoseconds
}

// stampOf returns the stamp of a session's journal. parent is the descriptor of the
// sessions directory. ok is false unless the journal is a regular file.
func stampOf(parent int, id string) (s fileStamp, ok bool) {
	var st unix.Stat_t
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Fstatat(parent, id+"/"+eventsFile, &st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fileStamp{}, false
	}
	return fileStamp{int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()}, true
}

// settledAt reports whether the last change is old enough that any further change would change the
// stamp.
func (s fileStamp) settledAt(now time.Time) bool {
	return now.Sub(time.Unix(0, s.change)) >= settled
}

// hash returns the FNV-1a hash of the stamp.
func (s fileStamp) hash() uint64 {
	h := uint64(14695981039346656037)
	for _, n := range [...]int64{s.inode, s.size, s.mtime, s.change} {
		for shift := 0; shift < 64; shift += 8 {
			h = (h ^ uint64(n)>>shift&0xff) * 1099511628211
		}
	}
	return h
}

// index holds the lines of the index file, sorted by session ID. Lines are decoded on demand. The
// fields of a line are separated by tabs: the hash of the stamp, the ID, the task, the status, start
// and end in nanoseconds, the cost, and the grimoire, which may be empty.
type index []string

// readIndex returns the index, or nil if it is missing or damaged. The first line contains the
// checksum of the others.
func readIndex(root string) index {
	if regularfile.Directory(root, runDir) != nil {
		return nil
	}
	raw, err := regularfile.ReadIn(filepath.Join(root, runDir), indexFile, maxIndex)
	if err != nil {
		return nil
	}
	head, text, _ := strings.Cut(string(raw), "\n")
	if head != indexHeader(text) {
		return nil
	}
	known := make(index, 0, strings.Count(text, "\n"))
	last := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		id := idOf(line)
		if id <= last {
			return nil // not written by coven
		}
		known, last = append(known, line), id
	}
	return known
}

func indexHeader(text string) string {
	return fmt.Sprintf("%s %08x", indexHead, crc32.ChecksumIEEE([]byte(text)))
}

// hashLength is the length of a stamp's hash and the following tab.
const hashLength = 17

// idOf returns the ID of a line, or "".
func idOf(line string) string {
	if len(line) < hashLength {
		return ""
	}
	id, _, _ := strings.Cut(line[hashLength:], "\t")
	return id
}

// taskIn returns the task of a line, which may be truncated after the task.
func taskIn(line string) string {
	_, rest, _ := strings.Cut(line[hashLength:], "\t")
	task, _, _ := strings.Cut(rest, "\t")
	return task
}

// line returns the index line of a session, or "" if the session cannot be indexed.
func (s Summary) line(at fileStamp) string {
	if !s.indexable() {
		return ""
	}
	return strings.Join([]string{
		fmt.Sprintf("%016x", at.hash()), s.ID, s.Task, string(s.Status), strconv.FormatInt(s.Started.UnixNano(), 10), strconv.FormatInt(s.Ended.UnixNano(), 10),
		strconv.FormatFloat(s.Cost, 'g', -1, 64), s.Grimoire,
	}, "\t")
}

// summaryIn decodes a line.
func summaryIn(line, root string) (s Summary, ok bool) {
	var fields [8]string
	for i := range fields {
		field, rest, more := strings.Cut(line, "\t")
		if fields[i], line = field, rest; more != (i < len(fields)-1) {
			return s, false
		}
	}
	started, startErr := strconv.ParseInt(fields[4], 10, 64)
	ended, endErr := strconv.ParseInt(fields[5], 10, 64)
	cost, costErr := strconv.ParseFloat(fields[6], 64)
	s = Summary{
		ID: fields[1], Task: fields[2], Status: event.Status(fields[3]), Started: time.Unix(0, started).UTC(), Ended: time.Unix(0, ended).UTC(),
		Cost: cost, Grimoire: fields[7], root: root,
	}
	return s, startErr == nil && endErr == nil && costErr == nil && s.indexable()
}

// indexable reports whether the session has ended, so that its view depends only on its journal,
// and whether a line can represent its summary.
func (s Summary) indexable() bool {
	exact := func(t time.Time) bool { return !t.IsZero() && time.Unix(0, t.UnixNano()).Equal(t) }
	plain := func(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }
	return s.IsOver() && (s.Status == Completed || s.Status == Failed || s.Status == Cancelled) &&
		exact(s.Started) && exact(s.Ended) && s.ID != "" && s.Task != "" && plain(s.ID) && plain(s.Task) && plain(s.Grimoire)
}

// valid returns the lines whose journal has not changed. It compares the
// stamps concurrently, because a repository can have many thousands of sessions.
func (x index) valid(root string) index {
	if len(x) == 0 {
		return nil
	}
	parent, err := os.Open(filepath.Join(root, Dir))
	if err != nil {
		return nil
	}
	defer parent.Close() //nolint:errcheck // read only
	found := make(index, len(x))
	fd, parts := int(parent.Fd()), runtime.GOMAXPROCS(0)
	var running sync.WaitGroup
	for part := range parts {
		running.Go(func() {
			for i := part * len(x) / parts; i < (part+1)*len(x)/parts; i++ {
				if isCurrent(fd, x[i]) {
					found[i] = x[i]
				}
			}
		})
	}
	running.Wait()
	return slices.DeleteFunc(found, func(line string) bool { return line == "" })
}

// of returns the line of each entry, or "". Entries must be sorted by name.
func (x index) of(entries []os.DirEntry) []string {
	lines := make([]string, len(entries))
	next := 0
	for i, e := range entries {
		name := e.Name()
		for next < len(x) && idOf(x[next]) < name {
			next++
		}
		if next < len(x) && idOf(x[next]) == name && e.IsDir() {
			lines[i] = x[next]
		}
	}
	return lines
}

// isCurrent reports whether the journal still has the stamp of the line.
func isCurrent(parent int, line string) bool {
	want, err := strconv.ParseUint(line[:hashLength-1], 16, 64)
	now, ok := stampOf(parent, idOf(line))
	return err == nil && ok && now.hash() == want
}

// forget removes the line of an earlier session with an ID, whose record was removed or is replaced.
func forget(root, id string, now time.Time) {
	known := readIndex(root)
	if i, ok := slices.BinarySearchFunc(known, id, func(line, id string) int { return strings.Compare(idOf(line), id) }); ok {
		_ = slices.Delete(known, i, i+1).write(root, now) // the stamp will show the change, too
	}
}

// write replaces the index. If it fails, the next command reads the journals again.
func (x index) write(root string, now time.Time) error {
	if err := regularfile.Directory(root, runDir); err != nil {
		return err
	}
	dir, err := os.OpenRoot(filepath.Join(root, runDir))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // read only
	unfinished := indexFile + ".new"
	if info, err := dir.Lstat(unfinished); err == nil && now.Sub(info.ModTime()) >= leftoverAge {
		_ = dir.Remove(unfinished) // left by a killed process
	}
	f, err := dir.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil // another process is writing the index
	}
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, line := range x {
		text.WriteString(line + "\n")
	}
	failpoint.Point("session.index.begun")
	_, err = f.WriteString(indexHeader(text.String()) + "\n" + text.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, dir.Remove(unfinished))
	}
	failpoint.Point("session.index.written")
	return dir.Rename(unfinished, indexFile)
}
