package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// A Worker is the coven-worker that started this process, as coven resume --worker. The two exchange lines: a JSON object asks for the turn to land on a
// branch, {"turn":"origin/main"}, an empty line answers when it has come, and {"turn":""} gives it back. A coven-worker that answers nothing, but closes its end, knows
// no turns.
//
// {"account":"HASH","until":TIME} tells it that an account is limited, for the other machines. {"account":"HASH"} asks it until when one is, and the answer is
// {"until":TIME}, or {} if it is not.
type Worker struct {
	In    io.Reader               // is read by a goroutine from the first question on
	Print func(line string) error // without its end

	reading sync.Once
	answers chan struct{}
	limits  chan time.Time
	asking  chan struct{} // has an element while Limit asks
	silent  bool          // Limit got no answer; held by the one that asks
}

// A turn is the line for a turn.
type turn struct {
	Turn string `json:"turn"`
}

// A limit is the line for a limit, and its answer.
type limit struct {
	Account string    `json:"account,omitempty"`
	Until   time.Time `json:"until,omitzero"`
}

// patience is how long an answer about a limit may take. A coven-worker that knows limits answers earlier, even without its server.
const patience = 2 * time.Second

// Turn waits until no other machine lands on a branch, as far as the workers know. The push of the landing excludes others.
func (w *Worker) Turn(ctx context.Context, branch string) (release func(), err error) {
	w.start()
	if err := w.write(turn{branch}); err != nil {
		return nil, err
	}
	select {
	case <-w.answers:
		return func() { _ = w.write(turn{}) }, nil // at the end of this process it is given back, too
	case <-ctx.Done():
		_ = w.write(turn{})
		return nil, context.Cause(ctx)
	}
}

// Limited lets the other machines know until when the API limits an account. An account without a name is not known there.
func (w *Worker) Limited(account string, until time.Time) {
	if account != "" {
		_ = w.write(limit{account, until}) // they meet the limit themselves
	}
}

// Limit returns until when an account is limited, as far as the other machines know. The time is zero if it is not, or if no answer comes. After that, Limit asks no
// more.
func (w *Worker) Limit(ctx context.Context, account string) time.Time {
	if account == "" {
		return time.Time{}
	}
	w.start()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case w.asking <- struct{}{}:
		defer func() { <-w.asking }()
	case <-ctx.Done():
		return time.Time{}
	}
	if w.silent || w.write(limit{Account: account}) != nil {
		return time.Time{}
	}
	select {
	case until := <-w.limits:
		return until
	case <-ctx.Done():
		w.silent = true // a late answer would be that of the next question
		return time.Time{}
	}
}

// start starts to read.
func (w *Worker) start() {
	w.reading.Do(func() {
		w.answers, w.limits, w.asking = make(chan struct{}), make(chan time.Time, 1), make(chan struct{}, 1)
		go w.read()
	})
}

// read reads the answers. At the end of the input, it is always this session's turn, and no account is limited.
func (w *Worker) read() {
	lines := bufio.NewScanner(w.In)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			w.answers <- struct{}{}
			continue
		}
		var l limit
		_ = json.Unmarshal(lines.Bytes(), &l) // another answer says nothing about a limit
		select {
		case w.limits <- l.Until:
		default: // not asked for
		}
	}
	close(w.answers)
	close(w.limits)
}

func (w *Worker) write(question any) error {
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	return w.Print(string(line))
}
