package event

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Tail reads a journal incrementally while another process may write it.
type Tail struct {
	file  string
	read  int64 // size of the complete lines that were read
	lines int
}

// NewTail returns a tail of the journal in file, which need not exist yet.
func NewTail(file string) *Tail { return &Tail{file: file} }

// Next calls see for the events that were written since the last call, in order. It ignores an incomplete
// line until it is complete. It stops at the first error of see, which it returns.
func (t *Tail) Next(see func(Event) error) error {
	f, err := openToRead(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	if _, err := f.Seek(t.read, io.SeekStart); err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	size, err := scan(f, t.file, t.lines, func(e Event) error {
		err := see(e)
		if err == nil {
			t.lines++
		}
		return err
	})
	t.read += size
	return err
}
