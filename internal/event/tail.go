package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Tail reads a journal incrementally while another process may write it.
type Tail struct {
	file  string
	read  int64 // size of the complete lines that were read
	lines int64
}

// NewTail returns a tail of the journal in file, which need not exist yet.
func NewTail(file string) *Tail { return &Tail{file: file} }

// Next returns the events that were written since the last call. It ignores an incomplete
// line until it is complete.
func (t *Tail) Next() ([]Event, error) {
	f, err := openToRead(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	if _, err := f.Seek(t.read, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	data, err := readLines(f, t.file, int(t.lines))
	if err != nil {
		return nil, err
	}
	var events []Event
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return events, nil
		}
		e, err := parse(line, t.lines+1)
		if err != nil {
			return events, &DamageError{File: t.file, Line: int(t.lines + 1), Err: err}
		}
		events, data = append(events, e), rest
		t.read, t.lines = t.read+int64(len(line))+1, t.lines+1
	}
}
