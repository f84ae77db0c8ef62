package fleet_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/control/fleet"
)

// newWorker returns a Worker, the end that answers it, and a func that checks its next line.
func newWorker(t *testing.T) (w *fleet.Worker, answer *io.PipeWriter, expect func(string)) {
	t.Helper()
	in, answer := io.Pipe()
	asked, out := io.Pipe()
	w = &fleet.Worker{In: in, Print: func(line string) error {
		_, err := out.Write([]byte(line + "\n"))
		return err
	}}
	lines := bufio.NewScanner(asked)
	return w, answer, func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("it writes %q, not %q", lines.Text(), want)
		}
	}
}

func TestTurn(t *testing.T) {
	w, answer, expect := newWorker(t)
	came := make(chan func())
	take := func(ctx context.Context, want error) {
		release, err := w.Turn(ctx, "origin/main")
		if !errors.Is(err, want) {
			t.Errorf("got %v, not %v", err, want)
		}
		came <- release
	}
	go take(t.Context(), nil)
	expect(`{"turn":"origin/main"}`)
	if _, err := answer.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	go (<-came)()
	expect(`{"turn":""}`)

	// A person interrupts the session while it waits.
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	go take(ctx, interrupted)
	expect(`{"turn":"origin/main"}`)
	cancel(interrupted)
	expect(`{"turn":""}`)
	<-came

	// A coven-worker that knows no turns.
	answer.Close() //nolint:errcheck // it returns no error
	go take(t.Context(), nil)
	expect(`{"turn":"origin/main"}`)
	<-came
}

// write writes an answer.
func write(t *testing.T, answer io.Writer, line string) {
	t.Helper()
	if _, err := io.WriteString(answer, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func TestLimit(t *testing.T) {
	w, answer, expect := newWorker(t)
	until := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	go w.Limited("0a1b", until)
	expect(`{"account":"0a1b","until":"2030-01-02T03:04:05Z"}`)
	w.Limited("", until)
	if got := w.Limit(t.Context(), ""); !got.IsZero() {
		t.Errorf("an unknown account is limited until %s", got)
	}
	got := make(chan time.Time)
	ask := func(ctx context.Context) { got <- w.Limit(ctx, "0a1b") }
	go ask(t.Context())
	expect(`{"account":"0a1b"}`)
	write(t, answer, `{"until":"2030-01-02T03:04:05Z"}`)
	if got := <-got; !got.Equal(until) {
		t.Errorf("limited until %s", got)
	}
	go ask(t.Context())
	expect(`{"account":"0a1b"}`)
	write(t, answer, `{}`)
	if got := <-got; !got.IsZero() {
		t.Errorf("limited until %s", got)
	}

	// A turn that comes while it asks.
	came := make(chan func(), 1)
	go func() {
		release, _ := w.Turn(t.Context(), "origin/main")
		came <- release
	}()
	expect(`{"turn":"origin/main"}`)
	go ask(t.Context())
	expect(`{"account":"0a1b"}`)
	write(t, answer, "")
	<-came
	write(t, answer, `{"until":"2030-01-02T03:04:05Z"}`)
	if got := <-got; !got.Equal(until) {
		t.Errorf("limited until %s", got)
	}

	// The coven-worker has ended.
	answer.Close() //nolint:errcheck // it returns no error
	go ask(t.Context())
	expect(`{"account":"0a1b"}`)
	if got := <-got; !got.IsZero() {
		t.Errorf("limited until %s", got)
	}
}

// A coven-worker that knows no limits is asked once. Others that wait for its answer do not wait longer.
func TestNoLimits(t *testing.T) {
	w, answer, expect := newWorker(t)
	got := make(chan time.Time)
	for range 3 {
		go func() { got <- w.Limit(t.Context(), "0a1b") }()
	}
	expect(`{"account":"0a1b"}`)
	for range 3 {
		if got := <-got; !got.IsZero() {
			t.Errorf("limited until %s", got)
		}
	}
	write(t, answer, `{"until":"2030-01-02T03:04:05Z"}`) // late
	if got := w.Limit(t.Context(), "0a1b"); !got.IsZero() {
		t.Errorf("limited until %s", got)
	}
	go w.Limited("0a1b", time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)) // its next line is no question
	expect(`{"account":"0a1b","until":"2030-01-02T03:04:05Z"}`)
}
