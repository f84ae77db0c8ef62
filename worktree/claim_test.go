package worktree

import (
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/land"
)

func TestClaims(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	equal(t, "none", len(value[[]claim.Held](t)(claim.List(ctx, r))), 0)
	b, c, a := claimFor(t, r, "b"), claimFor(t, r, "c / odd"), claimFor(t, r, "a")
	got := value[[]claim.Held](t)(claim.List(ctx, r))
	if want := []claim.Held{a, b, c}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	must(t, claim.Release(ctx, r, "b", b.Oid))
	if got := value[[]claim.Held](t)(claim.List(ctx, r)); !slices.Equal(got, []claim.Held{a, c}) {
		t.Fatalf("got %v", got)
	}
	gitIn(t, r.Root, "update-ref", claim.Ref("broken"), "main")
	if got, err := claim.List(ctx, r); err == nil {
		t.Fatalf("a commit was taken for a claim: %v", got)
	}
}

func TestRenew(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	first := claimFor(t, r, "T")
	later := first.Expires.Add(time.Hour)
	second := value[claim.Held](t)(claim.Renew(ctx, r, first, later))
	equal(t, "expiry", second.Expires.Equal(later), true)
	equal(t, "holder", second.Holder, first.Holder)
	equal(t, "attempt", second.Attempt, first.Attempt)
	equal(t, "another object", second.Oid == first.Oid, false)
	equal(t, "present", value[claim.Held](t)(claim.Of(ctx, r, "T")), second)

	_, err := claim.Renew(ctx, r, first, later)
	equal(t, "in the way", wantError[*claim.ClaimedError](t, err).Present, second)
	must(t, claim.Release(ctx, r, "T", second.Oid))
	_, err = claim.Renew(ctx, r, second, later)
	wantIs(t, err, claim.ErrClaimLost)
	_, err = claim.Renew(ctx, r, claim.Held{Claim: claim.Claim{Task: "T"}}, later)
	wantIs(t, err, claim.ErrClaimLost)
	_, err = claim.Of(ctx, r, "T")
	wantIs(t, err, claim.ErrNoClaim)
}

// A claim with which a landing began is no longer valid after Renew.
func TestRenewedClaimIsTheFence(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	old := claimFor(t, r, "T")
	fresh := value[claim.Held](t)(claim.Renew(t.Context(), r, old, time.Now().Add(time.Hour)))
	request := land.Request{Landing: c, Message: "m", ClaimOid: old.Oid, Journal: fileJournal{t.TempDir() + "/intent"}}
	_, err := land.Land(t.Context(), w, request)
	wantIs(t, err, claim.ErrClaimLost)
	request.ClaimOid = fresh.Oid
	value[integrate.Landing](t)(land.Land(t.Context(), w, request))
}

// If the holder is killed during Renew, the claim is the old or the new one, and both states can be
// recovered.
func TestRenewSurvivesKill(t *testing.T) {
	for point, renewed := range map[string]bool{"claim.renew.before": false, "claim.renew.after": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			old := claimFor(t, r, "T")
			killAt(t, actorCommand(r.Root, "T", point, land.Squash), point)
			now := value[claim.Held](t)(claim.Of(t.Context(), r, "T"))
			equal(t, "renewed", now.Oid != old.Oid && now.Expires.After(old.Expires), renewed)
			noLocks(t, r.GitDir)
			again := value[claim.Held](t)(claim.Renew(t.Context(), r, now, old.Expires.Add(2*time.Hour)))
			must(t, claim.Release(t.Context(), r, "T", again.Oid))
		})
	}
}

// Many goroutines claim and release a task. Those that fail get the name of the holder, even if it releases
// the task at that moment.
func TestClaimsComeAndGo(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	var all sync.WaitGroup
	for n := range 6 {
		all.Go(func() {
			for range 30 {
				held, err := claim.Acquire(ctx, r, claim.Claim{Task: "T", Holder: strconv.Itoa(n), Expires: time.Now().Add(time.Hour)}, "")
				if err == nil {
					err = claim.Release(ctx, r, "T", held.Oid)
				} else if errors.Is(err, claim.ErrClaimed) {
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
