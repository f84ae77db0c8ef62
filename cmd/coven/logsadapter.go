package main

import (
	"io"

	"github.com/coven-run/coven/internal/session"
)

// logs holds the raw terminal bytes of steps: runner's interface.
type logs struct{ *session.Session }

// Open implements runner's logs.
func (l logs) Open(path string) (io.WriteCloser, int64, error) { return l.OpenLog(path) }

// Read implements runner's logs.
func (l logs) Read(path string, from int64) (io.ReadCloser, error) {
	return session.ReadTranscript(l.Dir, path, from)
}
