package accounts

import (
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process/clock"
)

// A fault lasts until the API answers. Patient sessions try again after a time that grows.
func TestFaults(t *testing.T) {
	var f Faults
	if f.Any() || f.Of("a") != nil {
		t.Error("there is a fault")
	}
	f.Met("a", "billing_error", "no credit")
	if got := f.Of("a"); got == nil || got.Error() != "the account a cannot be used: no credit (billing_error)" || f.Of("b") != nil || !f.Any() {
		t.Errorf("%v, %v", got, f.Of("b"))
	}
	f.Patient = true
	first := f.Of("a").Until()
	if wait := first.Sub(clock.Now()); wait <= 0 || wait > time.Minute {
		t.Errorf("waits for %s", wait)
	}
	f.known["a"].limit.Until = clock.Now()
	if got := f.Of("a"); got != nil {
		t.Errorf("does not try again: %v", got)
	}
	f.Met("a", "server_error", "it fails")
	if got := f.Of("a"); got == nil || got.Until().Sub(first) < 30*time.Second {
		t.Errorf("does not wait longer: %v", got)
	}
	f.Answered("a")
	if f.Any() || f.Of("a") != nil {
		t.Error("it has answered")
	}
}
