package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/internal/process/failpoint"
)

// DamageError reports damage of a journal that a crash of coven cannot
// cause. Nothing is appended to such a journal.
type DamageError struct {
	File string
	Line int // 1-based
	Err  error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s:%d: damaged event: %v (a program other than coven changed the file)", e.File, e.Line, e.Err)
}

// NextCommand returns the command for repairs.
func (e *DamageError) NextCommand() string { return "coven doctor --fix" }

func (e *DamageError) Unwrap() error { return e.Err }

// ErrVersion reports an event whose version this coven does not support.
var ErrVersion = errors.New("unknown version")

// Size limits of a journal. Larger data are treated as damage, and are never written.
const (
	maxJournal = 512 << 20 // bytes
	maxLine    = 32 << 20  // bytes of one event
)

// Journal is an open journal and its only writer.
type Journal struct {
	// Redact removes secrets from the data of an event. It may be nil. It must be set
	// before the first Append.
	Redact func(data []byte) []byte

	now func() time.Time

	mu     sync.Mutex
	file   *os.File
	size   int64 // bytes of the file that are on disk
	index  *Index
	watch  []func(Event)
	broken error // the first write error; nothing is appended after it
}

// Open opens the journal in file, or creates it. It removes an incomplete last line,
// which a crash may leave. Any other damage is a *DamageError. The caller must hold
// the session's lock.
func Open(file string, now func() time.Time) (*Journal, error) {
	f, err := regularfile.OpenFileIn(filepath.Dir(file), filepath.Base(file), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", file, err)
	}
	events, whole, err := read(f, file)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	_ = f.Chmod(fileMode) // fails if another user owns the file; doctor reports it
	return &Journal{now: now, file: f, size: whole, index: NewIndex(events)}, nil
}

// fileMode makes a journal readable only by its owner.
const fileMode = 0o600

// openToRead opens a journal. It does not follow links out of the journal's directory.
func openToRead(file string) (*os.File, error) {
	f, err := regularfile.OpenIn(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return nil, fmt.Errorf("read journal %s: %w", file, err)
	}
	return f, nil
}

// Read returns the complete events in file: those of the given types, or all.
func Read(file string, types ...Type) ([]Event, error) {
	var events []Event
	err := Each(file, func(e Event) error {
		if len(types) == 0 || slices.Contains(types, e.Type) {
			events = append(events, e)
		}
		return nil
	})
	return events, err
}

// Each calls see for the complete events in file, in order. It ignores an incomplete last line, and stops at the first
// error of see, which it returns.
func Each(file string, see func(Event) error) error {
	f, err := openToRead(file)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	_, err = scan(f, file, 0, see)
	return err
}

// First returns the first event in file, or the zero Event if there is none yet.
func First(file string) (Event, error) {
	f, err := openToRead(file)
	if err != nil {
		return Event{}, err
	}
	defer f.Close() //nolint:errcheck // read only
	line, err := bufio.NewReader(io.LimitReader(f, maxLine)).ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(line) == maxLine {
		return Event{}, &DamageError{File: file, Line: 1, Err: errLine}
	}
	if errors.Is(err, io.EOF) {
		return Event{}, nil // empty, or an incomplete line
	}
	if err != nil {
		return Event{}, fmt.Errorf("read journal: %w", err)
	}
	e, err := parse(bytes.TrimSuffix(line, []byte("\n")), 1)
	if err != nil {
		return Event{}, &DamageError{File: file, Line: 1, Err: err}
	}
	return e, nil
}

// errLine reports a line that is too long for an event.
var errLine = fmt.Errorf("it is longer than %d bytes", maxLine)

// read returns the events of f and their total size in bytes.
func read(f *os.File, name string) (events []Event, whole int64, err error) {
	whole, err = scan(f, name, 0, func(e Event) error {
		events = append(events, e)
		return nil
	})
	return events, whole, err
}

// batch is the minimum size, in bytes, of the parts in which a journal is read.
const batch = 1 << 20

// scan reads a journal from the current position, after the given number of events, and calls see for each event in
// order. It returns the size of the lines that see took, in bytes. Its memory use is limited, even if the file is large or
// damaged.
func scan(f *os.File, name string, before int, see func(Event) error) (whole int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	tooLarge := &DamageError{File: name, Line: before + 1, Err: &regularfile.SizeError{Max: maxJournal}}
	if info.Size() > maxJournal {
		return 0, tooLarge
	}
	buffer := make([]byte, 0, min(info.Size()+1, batch))
	for ended := false; !ended; {
		if len(buffer) == cap(buffer) { // one line fills it
			buffer = slices.Grow(buffer, len(buffer))
		}
		n, err := f.Read(buffer[len(buffer):cap(buffer)])
		buffer = buffer[:len(buffer)+n]
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return whole, fmt.Errorf("read journal: %w", err)
		}
		if whole+int64(len(buffer)) > maxJournal {
			return whole, tooLarge
		}
		if len(buffer) < cap(buffer) && !ended {
			continue
		}
		end := bytes.LastIndexByte(buffer, '\n') + 1
		lines, size, err := seeAll(buffer[:end], name, before, see)
		before, whole = before+lines, whole+int64(size)
		if err != nil {
			return whole, err
		}
		if buffer = buffer[:copy(buffer, buffer[end:])]; len(buffer) > maxLine {
			return whole, &DamageError{File: name, Line: before + 1, Err: errLine}
		}
	}
	return whole, nil
}

// seeAll calls see for the events of a part of a journal. It returns the number and the size of those that see
// took.
func seeAll(part []byte, name string, before int, see func(Event) error) (taken, size int, err error) {
	if len(part) == 0 {
		return 0, 0, nil
	}
	lines := bytes.Split(part[:len(part)-1], []byte("\n"))
	events := make([]Event, len(lines))
	line, damage := parseAll(lines, before, events)
	if damage != nil {
		damage = &DamageError{File: name, Line: before + line, Err: damage}
		events = events[:line-1]
	}
	for i, e := range events {
		if err := see(e); err != nil {
			return i, size, err
		}
		size += len(lines[i]) + 1
	}
	return len(events), size, damage
}

// Parse returns the events of the content of a journal, of which name is shown in errors. Its last line must be complete.
func Parse(name string, content []byte) (events []Event, err error) {
	_, _, err = seeAll(content, name, 0, func(e Event) error {
		events = append(events, e)
		return nil
	})
	return events, err
}

// parseAll parses the lines of a journal after the given number of events concurrently. It returns the number, starting
// at 1, and the error of the first damaged line.
func parseAll(lines [][]byte, before int, events []Event) (line int, err error) {
	const part = 512
	failed := make([]error, (len(lines)+part-1)/part)
	at := make([]int, len(failed))
	var parts sync.WaitGroup
	for n := range failed {
		parts.Go(func() {
			for i := n * part; i < min((n+1)*part, len(lines)) && failed[n] == nil; i++ {
				events[i], failed[n] = parse(lines[i], int64(before+i+1))
				at[n] = i + 1
			}
		})
	}
	parts.Wait()
	for n, err := range failed {
		if err != nil {
			return at[n], err
		}
	}
	return 0, nil
}

func parse(line []byte, seq int64) (Event, error) {
	if len(line) > maxLine {
		return Event{}, errLine
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, err
	}
	switch {
	case e.V != Version:
		return Event{}, fmt.Errorf("%w %d, this coven reads version %d", ErrVersion, e.V, Version)
	case e.Seq != seq:
		return Event{}, fmt.Errorf("sequence number %d, want %d", e.Seq, seq)
	}
	return e, nil
}

// Append adds data, a sequence number and the time to e, writes it, and returns when
// the line is on disk. Watchers then see the event, in order.
func (j *Journal) Append(e Event, data any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	e, line, err := j.encode(e, data)
	if err != nil {
		return err
	}
	if j.size+int64(len(line)) > maxJournal || len(line) > maxLine {
		return fmt.Errorf("append %s to the journal: it is too large (%d bytes after %d)", e.Type, len(line), j.size)
	}
	failpoint.Point("event.before." + string(e.Type))
	if err := j.write(e.Type, line); err != nil {
		j.broken = fmt.Errorf("append %s to the journal: %w", e.Type, err)
		return j.broken
	}
	failpoint.Point("event.after." + string(e.Type))
	j.index.add(e)
	for _, see := range j.watch {
		see(e)
	}
	return nil
}

// Preview returns the events as they would be after Append. It writes nothing.
func (j *Journal) Preview(e Event, data any) ([]Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e, _, err := j.encode(e, data)
	return append(slices.Clone(j.index.events), e), err
}

func (j *Journal) encode(e Event, data any) (Event, []byte, error) {
	e.V, e.Seq, e.Time = Version, int64(len(j.index.events))+1, j.now().UTC()
	if data != nil {
		raw, err := json.Marshal(data)
		if err != nil {
			return e, nil, fmt.Errorf("encode %s: %w", e.Type, err)
		}
		if j.Redact != nil {
			raw = j.Redact(raw)
		}
		e.Data = raw
	}
	line, err := json.Marshal(e)
	if err != nil {
		return e, nil, fmt.Errorf("encode %s: %w", e.Type, err)
	}
	return e, append(line, '\n'), nil
}

// write adds a line to the file. fdatasync is sufficient for an append: it waits for
// everything that is needed to read the data back, including the new size. It omits
// only the times of the inode, which are not used.
func (j *Journal) write(t Type, line []byte) error {
	if _, err := j.file.Write(line); err != nil {
		return err
	}
	failpoint.Unsynced("event.written."+string(t), j.file, j.size)
	if err := datasync(j.file); err != nil {
		return err
	}
	j.size += int64(len(line))
	return nil
}

// Events returns the current events.
func (j *Journal) Events() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.events[:len(j.index.events):len(j.index.events)]
}

// Of returns the events of the given types, in order.
func (j *Journal) Of(types ...Type) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.Of(types...)
}

// Has reports whether there is an event of one of the types.
func (j *Journal) Has(types ...Type) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.Has(types...)
}

// Last returns the last event of the given types.
func (j *Journal) Last(types ...Type) (Event, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.Last(types...)
}

// Since returns the last event of the given types and all events after it.
func (j *Journal) Since(types ...Type) []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.index.Since(types...)
}

// Watch makes Append call see for each event from now on. see must not block or
// append.
func (j *Journal) Watch(see func(Event)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watch = append(j.watch, see)
}

// Close closes the journal.
func (j *Journal) Close() error { return j.file.Close() }
