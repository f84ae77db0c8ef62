package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxCapture is the maximum number of bytes of output that Run keeps, one half from the
// start and one half from the end.
const MaxCapture = 1 << 20

// Run runs a program to its end, with Spec.Input as its standard input. It returns up to
// MaxCapture bytes of the output. It cuts the middle of longer output and inserts
// a line with the number of missing bytes. Spec.Transcript gets
// the whole output. The error is not nil if the program could not be started or the
// launcher failed; Exit describes how the program ended.
func (l *Launcher) Run(ctx context.Context, spec Spec) (Exit, []byte, error) {
	child, err := l.Start(ctx, spec)
	if err != nil {
		return Exit{}, nil, err
	}
	if spec.OnStart != nil {
		spec.OnStart(child)
	}
	go feed(child, spec.Input)
	kept := &capture{half: MaxCapture / 2}
	if _, err := io.Copy(kept, child.Output()); err != nil {
		child.Stop(err)
	}
	exit := child.Wait()
	if err := child.Close(); err != nil && exit.Err == nil {
		exit.Err = err
	}
	return exit, kept.bytes(), exit.Err
}

// feed writes the program's input. The program need not read all of it.
func feed(child *Child, input []byte) {
	_, err := child.Stdin().Write(input)
	if err == nil || errors.Is(err, syscall.EPIPE) {
		err = child.Stdin().Close()
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		child.Stop(fmt.Errorf("write standard input: %w", err))
	}
}

// capture keeps the first and the last half bytes that are written to it.
type capture struct {
	half       int
	head, tail []byte
	cut        int64
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	size := len(p)
	room := min(c.half-len(c.head), size)
	c.head = append(c.head, p[:room]...)
	c.tail = append(c.tail, p[room:]...)
	if len(c.tail) > 2*c.half { // trim rarely, because it moves bytes
		c.trim()
	}
	return size, nil
}

func (c *capture) trim() {
	if extra := len(c.tail) - c.half; extra > 0 {
		c.cut += int64(extra)
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
}

func (c *capture) bytes() []byte {
	c.trim()
	if c.cut == 0 {
		return append(c.head, c.tail...)
	}
	gap := fmt.Sprintf("\n[... %d bytes cut ...]\n", c.cut)
	return append(append(c.head, gap...), c.tail...)
}
