package fleet_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/coven-run/coven/internal/control/fleet"
)

func TestTurn(t *testing.T) {
	in, answer := io.Pipe()
	asked, out := io.Pipe()
	w := &fleet.Worker{In: in, Print: func(line string) error {
		_, err := out.Write([]byte(line + "\n"))
		return err
	}}
	lines := bufio.NewScanner(asked)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("it writes %q, not %q", lines.Text(), want)
		}
	}
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
