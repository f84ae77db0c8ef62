package worktree

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

func TestClaims(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	equal(t, "none", len(value[[]Held](t)(r.Claims(ctx))), 0)
	b, c, a := claimFor(t, r, "b"), claimFor(t, r, "c / odd"), claimFor(t, r, "a")
	got := value[[]Held](t)(r.Claims(ctx))
	if want := []Held{a, b, c}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	must(t, r.Unclaim(ctx, "b", b.Oid))
	if got := value[[]Held](t)(r.Claims(ctx)); !slices.Equal(got, []Held{a, c}) {
		t.Fatalf("got %v", got)
	}
	gitIn(t, r.Root, "update-ref", claimRef("broken"), "main")
	if got, err := r.Claims(ctx); err == nil {
		t.Fatalf("a commit was taken for a claim: %v", got)
	}
}

func TestRenew(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	first := claimFor(t, r, "T")
	later := first.Expires.Add(time.Hour)
	second := value[Held](t)(r.Renew(ctx, first, later))
	equal(t, "expiry", second.Expires.Equal(later), true)
	equal(t, "holder", second.Holder, first.Holder)
	equal(t, "attempt", second.Attempt, first.Attempt)
	equal(t, "another object", second.Oid == first.Oid, false)
	equal(t, "present", value[Held](t)(r.ClaimOf(ctx, "T")), second)

	_, err := r.Renew(ctx, first, later)
	equal(t, "in the way", wantError[*ClaimedError](t, err).Present, second)
	must(t, r.Unclaim(ctx, "T", second.Oid))
	_, err = r.Renew(ctx, second, later)
	wantIs(t, err, ErrClaimLost)
	_, err = r.Renew(ctx, Held{Claim: Claim{Task: "T"}}, later)
	wantIs(t, err, ErrClaimLost)
	_, err = r.ClaimOf(ctx, "T")
	wantIs(t, err, ErrNoClaim)
}

// The claim that a landing began with does not land any more.
func TestRenewedClaimIsTheFence(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	old := claimFor(t, r, "T")
	fresh := value[Held](t)(r.Renew(t.Context(), old, time.Now().Add(time.Hour)))
	request := LandRequest{Landing: c, Message: "m", ClaimOid: old.Oid, Journal: fileJournal{t.TempDir() + "/intent"}}
	_, err := w.Land(t.Context(), request)
	wantIs(t, err, ErrClaimLost)
	request.ClaimOid = fresh.Oid
	value[Landing](t)(w.Land(t.Context(), request))
}

// A holder that is killed while it renews has the old claim or the new one, and both
// states can be recovered.
func TestRenewSurvivesKill(t *testing.T) {
	for point, renewed := range map[string]bool{"claim.renew.before": false, "claim.renew.after": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			old := claimFor(t, r, "T")
			killAt(t, actorCommand(r.Root, "T", point, Squash), point)
			now := value[Held](t)(r.ClaimOf(t.Context(), "T"))
			equal(t, "renewed", now.Oid != old.Oid && now.Expires.After(old.Expires), renewed)
			noLocks(t, r.GitDir)
			again := value[Held](t)(r.Renew(t.Context(), now, old.Expires.Add(2*time.Hour)))
			must(t, r.Unclaim(t.Context(), "T", again.Oid))
		})
	}
}

// Many claim a task and give it back: who does not get it is told who has it,
// also when that one gave it back just then.
func TestClaimsComeAndGo(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			for range 30 {
				held, err := r.Claim(ctx, Claim{Task: "T", Holder: strconv.Itoa(n), Expires: time.Now().Add(time.Hour)}, "")
				if err == nil {
					err = r.Unclaim(ctx, "T", held.Oid)
				} else if errors.Is(err, ErrClaimed) {
					err = nil
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
