package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
)

// A Worker is the coven-worker that started this process, as coven resume --worker. The two exchange lines: a JSON object asks for the turn to land on a
// branch, {"turn":"origin/main"}, an empty line answers when it has come, and {"turn":""} gives it back. A coven-worker that answers nothing, but closes its end, knows
// no turns.
type Worker struct {
	In    io.Reader               // is read by a goroutine from the first turn on
	Print func(line string) error // without its end

	reading sync.Once
	answers chan struct{}
}

// A turn is the line for a turn.
type turn struct {
	Turn string `json:"turn"`
}

// Turn waits until no other machine lands on a branch, as far as the workers know. The push of the landing excludes others.
func (w *Worker) Turn(ctx context.Context, branch string) (release func(), err error) {
	w.reading.Do(func() {
		w.answers = make(chan struct{})
		go w.read()
	})
	if err := w.write(branch); err != nil {
		return nil, err
	}
	select {
	case <-w.answers:
		return func() { _ = w.write("") }, nil // at the end of this process it is given back, too
	case <-ctx.Done():
		_ = w.write("")
		return nil, context.Cause(ctx)
	}
}

// read reads the answers. At the end of the input, it is always this session's turn.
func (w *Worker) read() {
	lines := bufio.NewScanner(w.In)
	for lines.Scan() {
		w.answers <- struct{}{}
	}
	close(w.answers)
}

func (w *Worker) write(branch string) error {
	line, err := json.Marshal(turn{branch})
	if err != nil {
		return err
	}
	return w.Print(string(line))
}
