package process

import (
	"errors"
	"io"
	"math"
	"os"

	"github.com/coven-run/coven/internal/process/memoryfile"
	"github.com/coven-run/coven/internal/process/reads"
)

// Reads is a record of the files that a program and its descendants read: see package reads.
type Reads struct {
	Scope reads.Scope
	To    io.Writer // receives the list when the program has ended; nothing if the kernel refuses
}

// openReads makes the file for the list, if there is to be one.
func (l *link) openReads(b *Boundary, limits *limits) (err error) {
	if limits == nil || limits.Reads == nil {
		return nil
	}
	l.reads, err = memoryfile.New("reads")
	l.readsTo = b.Reads.To
	return err
}

// closeReads passes the list on.
func (l *link) closeReads() error {
	if l.reads == nil {
		return nil
	}
	_, err := io.Copy(l.readsTo, io.NewSectionReader(l.reads, 0, math.MaxInt64))
	return errors.Join(err, l.reads.Close())
}

// recordReads starts the recording of the program. It returns the fence's end of a socket, and a function that writes the list
// when the program's tree has ended.
func (w *wire) recordReads() (*os.File, func(), error) {
	if w.order.Limits == nil || w.order.Limits.Reads == nil {
		return nil, func() {}, nil
	}
	socket, opened, err := w.order.Limits.Reads.Accept()
	return socket, func() {
		_ = w.order.Limits.Reads.Write(os.NewFile(readsFd, "list"), <-opened) // an incomplete list is still one of files that were read
	}, err
}
