package worktree

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/failpoint"
	"github.com/coven-run/coven/worktree/internal/git"
)

// Errors about claims.
var (
	// ErrClaimed is what a *ClaimedError is.
	ErrClaimed = exit.Sentinel(exit.Person, "coven status", "the task is claimed")
	// ErrNoClaim means that nobody holds the task.
	ErrNoClaim = errors.New("the task is not claimed")
)

// A Claim says who works on a task. It is a JSON blob that
// refs/coven/claims/<name> points to; its oid is the fence of a landing.
type Claim struct {
	Task    string    `json:"task"`
	Holder  string    `json:"holder"`
	Session string    `json:"session"`
	Attempt int       `json:"attempt"`
	Expires time.Time `json:"expires"`
	// Nonce makes each claim an object of its own; Claim sets it.
	Nonce string `json:"nonce"`
}

// Held is a claim with the oid that fences it.
type Held struct {
	Claim
	Oid string
}

// A ClaimedError carries the claim that is in the way.
type ClaimedError struct{ Present Held }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("task %s is claimed by %s (session %s) until %s", e.Present.Task,
		e.Present.Holder, e.Present.Session, e.Present.Expires.Format(time.RFC3339))
}

// Is makes a ClaimedError an ErrClaimed.
func (e *ClaimedError) Is(target error) bool { return target == ErrClaimed }

// Claim takes a task that nobody holds, or, when replaces is the oid of the
// present claim, takes it over. It fails with a *ClaimedError when another
// claim is there, and with ErrNoClaim when the one to replace is gone.
func (r *Repo) Claim(ctx context.Context, claim Claim, replaces string) (Held, error) {
	return r.claim(ctx, claim, replaces, "claim.take")
}

// claim moves the claim's ref. point is the name of the crash points around that.
func (r *Repo) claim(ctx context.Context, claim Claim, replaces, point string) (Held, error) {
	claim.Expires = claim.Expires.UTC().Truncate(time.Second)
	claim.Nonce = rand.Text()
	content, err := json.Marshal(claim)
	if err != nil {
		return Held{}, fmt.Errorf("claim %s: %w", claim.Task, err)
	}
	oid, err := r.git().Blob(ctx, append(content, '\n'))
	if err != nil {
		return Held{}, fmt.Errorf("claim %s: %w", claim.Task, err)
	}
	edit := git.Create(claimRef(claim.Task), oid)
	if replaces != "" {
		edit = git.Move(claimRef(claim.Task), oid, replaces)
	}
	failpoint.Point(point + ".before")
	for range claimTries {
		if err = r.transact(ctx, r.git(), "coven: claim", edit); err == nil {
			failpoint.Point(point + ".after")
			return Held{Claim: claim, Oid: oid}, nil
		}
		err = r.claimRefused(ctx, claim.Task, replaces, err)
		if !errors.Is(err, errGivenBack) {
			break
		}
	}
	return Held{}, err
}

// claimTries is how often a task is claimed again whose claim was in the way and
// is gone.
const claimTries = 10

// errGivenBack means that a claim could not be made, and none is there now.
var errGivenBack = errors.New("the claim that was in the way is gone")

// ClaimOf returns the present claim of a task, or ErrNoClaim.
func (r *Repo) ClaimOf(ctx context.Context, taskID string) (Held, error) {
	var held Held
	oid, err := r.git().Ref(ctx, claimRef(taskID))
	if errors.Is(err, git.ErrNoRef) {
		return held, fmt.Errorf("task %s: %w", taskID, ErrNoClaim)
	}
	if err != nil {
		return held, fmt.Errorf("read the claim of %s: %w", taskID, err)
	}
	held.Oid = oid
	err = r.git().Objects(ctx, []string{oid}, func(_ git.Object, body io.Reader) error {
		return json.NewDecoder(body).Decode(&held.Claim)
	})
	if err != nil {
		return held, fmt.Errorf("read the claim of %s: %w", taskID, err)
	}
	return held, nil
}

// Claims lists all present claims, by task.
func (r *Repo) Claims(ctx context.Context) ([]Held, error) {
	refs, err := r.git().Refs(ctx, claimsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	var oids []string
	for _, ref := range refs {
		oids = append(oids, ref.Oid)
	}
	var all []Held
	err = r.git().Objects(ctx, oids, func(o git.Object, body io.Reader) error {
		held := Held{Oid: o.Oid}
		if err := json.NewDecoder(body).Decode(&held.Claim); err != nil {
			return fmt.Errorf("%s: %w", refs[len(all)].Name, err)
		}
		all = append(all, held)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	slices.SortFunc(all, func(a, b Held) int { return strings.Compare(a.Task, b.Task) })
	return all, nil
}

// Renew gives a claim another expiry. What it returns has a new oid, and only
// that one lands the task from then on: a landing under way with the old oid
// ends with ErrClaimLost. A claim that is no longer there is ErrClaimLost, one
// that another run holds a *ClaimedError; neither changes anything.
func (r *Repo) Renew(ctx context.Context, held Held, expires time.Time) (Held, error) {
	if held.Oid == "" {
		return Held{}, fmt.Errorf("renew the claim of %s: %w", held.Task, ErrClaimLost)
	}
	claim := held.Claim
	claim.Expires = expires
	renewed, err := r.claim(ctx, claim, held.Oid, "claim.renew")
	if errors.Is(err, ErrNoClaim) {
		err = fmt.Errorf("renew the claim of %s: %w", held.Task, ErrClaimLost)
	}
	return renewed, err
}

// Unclaim gives a task back. It fails like Claim when oid is not the present
// claim.
func (r *Repo) Unclaim(ctx context.Context, taskID, oid string) error {
	failpoint.Point("claim.release.before")
	err := r.transact(ctx, r.git(), "coven: unclaim", git.Delete(claimRef(taskID), oid))
	if err != nil {
		return r.claimRefused(ctx, taskID, oid, err)
	}
	failpoint.Point("claim.release.after")
	return nil
}

// claimRefused finds out why a claim ref did not change.
func (r *Repo) claimRefused(ctx context.Context, taskID, expected string, err error) error {
	present, readErr := r.ClaimOf(ctx, taskID)
	switch {
	case errors.Is(readErr, ErrNoClaim) && expected != "":
		return readErr
	case readErr == nil && present.Oid != expected:
		return &ClaimedError{Present: present}
	case errors.Is(readErr, ErrNoClaim):
		return fmt.Errorf("claim %s: %w: %w", taskID, errGivenBack, err)
	default:
		return fmt.Errorf("claim %s: %w", taskID, err)
	}
}

const claimsPrefix = "refs/coven/claims/"

func claimRef(taskID string) string { return claimsPrefix + SafeName(taskID) }
