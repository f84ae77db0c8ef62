package ref

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
)

// The log of coven's ref changes is GitDir/coven/refs.log. Before coven changes a ref, it writes a line
// "OLD NEW NAME", so that none of its changes lacks a line, and afterwards "=OLD NEW NAME". A first line
// without the second means that coven was killed or that git refused the change. The name "checkout:REF"
// stands for the files in the main checkout that a landing on REF moves; its second line follows when all
// of them are moved.
//
// The tripwire attributes the changes in the log to coven. A fence prevents agents from writing the log.
// An agent without a fence can forge a line.
const (
	noRef  = "-" // the ref does not exist
	anyRef = "?" // coven required no value
	done   = "="

	MovedCheckout = "checkout:"
	maxLog        = 4 << 20
)

// A Log is the path of the log of coven's ref changes.
type Log string

// Begin logs edits before they are made.
func (l Log) Begin(edits ...Edit) error { return l.add("", edits) }

// Done logs edits after they are made. If that fails, the log merely permits more values than necessary.
func (l Log) Done(edits []Edit) { _ = l.add(done, edits) }

func (l Log) add(mark string, edits []Edit) error {
	var lines strings.Builder
	for _, e := range edits {
		before, after, known, ok := e.Values()
		if !ok {
			continue
		}
		if !known {
			before = anyRef
		}
		fmt.Fprintf(&lines, "%s%s %s %s\n", mark, orNoRef(before), orNoRef(after), e.Ref())
	}
	if lines.Len() == 0 {
		return nil
	}
	file, err := l.Open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(string(l)), 0o755); err == nil {
			file, err = l.Open()
		}
	}
	if err != nil {
		return fmt.Errorf("log the change of refs: %w", err)
	}
	_, err = file.WriteString(lines.String()) // a single write, because other processes append concurrently
	return errors.Join(err, file.Close())
}

// Open opens the log for appending, and creates it if necessary.
func (l Log) Open() (*os.File, error) {
	return os.OpenFile(string(l), os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
}

func orNoRef(oid string) string {
	if oid == "" {
		return noRef
	}
	return oid
}

// A Position is a position in the log.
type Position struct {
	Inode  uint64 `json:"inode"` // inode of the file, or 0 if it did not exist
	Offset int64  `json:"offset"`
	// End is the end of the log if it is after Offset, or 0. Edits before End count as about to be made,
	// even if they were already logged as made.
	End int64 `json:"end,omitempty"`
}

// End returns the end of the log. It renames a log that has become too long; earlier positions remain
// valid.
func (l Log) End() (Position, error) {
	info, err := os.Stat(string(l))
	if err == nil && info.Size() > maxLog {
		err = os.Rename(string(l), string(l)+".old")
		if err == nil {
			return Position{}, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, nil
	}
	if err != nil {
		return Position{}, fmt.Errorf("read the log of refs: %w", err)
	}
	return Position{Inode: file.InodeOf(info), Offset: info.Size()}, nil
}

// pendingTail is the length of the end of the log that is searched for pending changes, in bytes.
const pendingTail = 64 << 10

// Position returns the position from which the log explains all later changes: its end, or the beginning of
// the first change that is still being made.
func (l Log) Position() (Position, error) {
	at, err := l.End()
	if err != nil || at.Offset == 0 {
		return at, err
	}
	from := at
	from.Offset = max(0, at.Offset-pendingTail)
	text, start, _, err := readLog(string(l), from)
	if err != nil {
		return at, err
	}
	if start > 0 { // may be in the middle of a line
		_, whole, _ := strings.Cut(text, "\n")
		start, text = start+int64(len(text)-len(whole)), whole
	}
	if offset, found := firstPending(text); found {
		at.Offset, at.End = start+int64(offset), at.Offset
	}
	return at, nil
}

// firstPending returns the offset of the first change in text that is not logged as made.
func firstPending(text string) (offset int, found bool) {
	open, at := map[string][]int{}, 0 // the offsets at which each line was logged as about to be made
	for line := range strings.Lines(text) {
		if made, ok := strings.CutPrefix(line, done); !ok {
			open[line] = append(open[line], at)
		} else if begun := open[made]; len(begun) > 0 {
			open[made] = begun[1:]
		}
		at += len(line)
	}
	offset = at
	for _, begun := range open {
		if len(begun) > 0 {
			offset, found = min(offset, begun[0]), true
		}
	}
	return offset, found
}

// A loggedMove is one line of the log.
type loggedMove struct {
	old, New string // empty for no ref; old may be anyRef
	done     bool
}

// Moves maps the names of refs to their logged moves.
type Moves map[string][]loggedMove

// Since reads the log from a position to its end. Edits that were logged as made after the position
// until count as about to be made, because until is the position at which the refs were read.
func (l Log) Since(from, until Position) (Moves, error) {
	now, start, at, err := readLog(string(l), from)
	if err != nil {
		return nil, err
	}
	moves := Moves{}
	if !at && from.Inode != 0 { // it was renamed since
		old, _, found, err := readLog(string(l)+".old", from)
		if err != nil {
			return nil, err
		}
		if found {
			moves.Read(old, int(max(from.End-from.Offset, 0)), len(old))
		}
	}
	since := int64(0)
	if at {
		since = max(from.End-start, 0)
	}
	moves.Read(now, int(since), int(until.Offset-start))
	return moves, nil
}

// Read adds the lines of text. Moves whose second line ends after from and at or before to count as made.
func (m Moves) Read(text string, from, to int) {
	at := 0
	for line := range strings.Lines(text) {
		at += len(line)
		words := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		if len(words) != 3 {
			continue // a line that is being written
		}
		old, isDone := strings.CutPrefix(words[0], done)
		move := loggedMove{strings.TrimPrefix(old, noRef), strings.TrimPrefix(words[1], noRef), isDone && at > from && at <= to}
		m[words[2]] = append(m[words[2]], move)
	}
}

// readLog reads a log from a position in it. If the position is in another file, it reads the whole log.
// start is the offset of the returned text.
func readLog(path string, from Position) (text string, start int64, at bool, err error) {
	log, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", 0, false, nil
	}
	if err != nil {
		return "", 0, false, fmt.Errorf("read the log of refs: %w", err)
	}
	defer log.Close() //nolint:errcheck // read only
	info, err := log.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", 0, false, errors.Join(fmt.Errorf("%s is not a file", path), err)
	}
	if file.InodeOf(info) == from.Inode {
		if _, err := log.Seek(from.Offset, io.SeekStart); err != nil {
			return "", 0, true, err
		}
		start, at = from.Offset, true
	}
	raw, err := io.ReadAll(io.LimitReader(log, 16*maxLog))
	return string(raw), start, at, err
}

// Explains reports whether the logged moves lead from one value of a ref to another. After a completed
// move, the value before that move is no longer possible.
func (m Moves) Explains(name, before, after string) bool {
	possible := map[string]bool{before: true}
	for _, move := range m[name] {
		if move.done {
			delete(possible, move.old)
		}
		if move.done || move.old == anyRef || possible[move.old] {
			possible[move.New] = true
		}
	}
	return possible[after]
}

// Last returns the value of a ref after its last completed move. ok is false if there was none.
func (m Moves) Last(name string) (value string, ok bool) {
	for _, move := range m[name] {
		if move.done {
			value, ok = move.New, true
		}
	}
	return value, ok
}

// Before lists the earlier values of a ref from which its completed moves lead to value, the last one first.
func (m Moves) Before(name, value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, move := range slices.Backward(m[name]) {
			if !move.done || move.New != value {
				continue
			}
			if value = move.old; value == "" || value == anyRef || !yield(value) {
				return
			}
		}
	}
}

// Mentions reports whether the log contains a change of the claim of the task with this name, or of its branch.
func (m Moves) Mentions(name, branch string) bool {
	return m[names.ClaimsPrefix+name] != nil || m[branch] != nil
}
