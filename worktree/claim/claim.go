// Package claim assigns a task to one session at a time: a ref of the repository names the session, and a
// landing verifies the ref in the transaction that moves the target.
package claim

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
	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/object"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// Errors about claims.
var (
	// ErrClaimed matches a *ClaimedError.
	ErrClaimed = exit.Sentinel(exit.Person, "coven status", "task is claimed")
	// ErrNoClaim means that the task is not claimed.
	ErrNoClaim = errors.New("task is not claimed")
	// ErrClaimLost means that another run has claimed the task.
	ErrClaimLost = errors.New("claim of the task was lost")
)

// A Claim records the session that works on a task. It is a JSON blob that refs/coven/claims/<name> points
// to. A landing verifies the blob's object ID.
type Claim struct {
	Task    string    `json:"task"`
	Holder  string    `json:"holder"`
	Session string    `json:"session"`
	Attempt int       `json:"attempt"`
	Expires time.Time `json:"expires"`
	// Nonce makes each claim a distinct object. Acquire sets it.
	Nonce string `json:"nonce"`
}

// Held is a claim and its object ID.
type Held struct {
	Claim
	Oid string
}

// A ClaimedError means that another claim exists.
type ClaimedError struct{ Present Held }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("task %s is claimed by %s (session %s) until %s", e.Present.Task,
		e.Present.Holder, e.Present.Session, e.Present.Expires.Format(time.RFC3339))
}

// Is reports whether target is ErrClaimed.
func (e *ClaimedError) Is(target error) bool { return target == ErrClaimed }

// Acquire claims a task. If replaces is empty, the task must not be claimed; otherwise Acquire replaces the
// claim with that object ID. It fails with a *ClaimedError if there is another claim, and with ErrNoClaim
// if the claim to replace does not exist.
func Acquire(ctx context.Context, r *repo.Repo, claim Claim, replaces string) (Held, error) {
	return setClaim(ctx, r, claim, replaces, "claim.take")
}

// setClaim sets the claim's ref. point is the prefix of the failpoints before and after.
func setClaim(ctx context.Context, r *repo.Repo, claim Claim, replaces, point string) (Held, error) {
	claim.Expires = claim.Expires.UTC().Truncate(time.Second)
	claim.Nonce = rand.Text()
	content, err := json.Marshal(claim)
	if err != nil {
		return Held{}, fmt.Errorf("claim %s: %w", claim.Task, err)
	}
	oid, err := r.Git().Blob(ctx, append(content, '\n'))
	if err != nil {
		return Held{}, fmt.Errorf("claim %s: %w", claim.Task, err)
	}
	edit := ref.Create(Ref(claim.Task), oid)
	if replaces != "" {
		edit = ref.Move(Ref(claim.Task), oid, replaces)
	}
	failpoint.Point(point + ".before")
	for range claimTries {
		if err = r.Transact(ctx, r.Git(), "coven: claim", edit); err == nil {
			failpoint.Point(point + ".after")
			return Held{Claim: claim, Oid: oid}, nil
		}
		err = claimRefused(ctx, r, claim.Task, replaces, err)
		if !errors.Is(err, errClaimGone) {
			break
		}
	}
	return Held{}, err
}

// claimTries limits the attempts to claim a task when the conflicting claim keeps disappearing.
const claimTries = 10

var errClaimGone = errors.New("conflicting claim has disappeared")

// Of returns the current claim of a task, or ErrNoClaim.
func Of(ctx context.Context, r *repo.Repo, taskID string) (Held, error) {
	var held Held
	oid, err := r.Git().Ref(ctx, Ref(taskID))
	if errors.Is(err, ref.ErrNoRef) {
		return held, fmt.Errorf("task %s: %w", taskID, ErrNoClaim)
	}
	if err != nil {
		return held, fmt.Errorf("read the claim of %s: %w", taskID, err)
	}
	held.Oid = oid
	err = r.Git().Objects(ctx, []string{oid}, func(_ object.Object, body io.Reader) error {
		return json.NewDecoder(body).Decode(&held.Claim)
	})
	if err != nil {
		return held, fmt.Errorf("read the claim of %s: %w", taskID, err)
	}
	return held, nil
}

// List lists all current claims, sorted by task.
func List(ctx context.Context, r *repo.Repo) ([]Held, error) {
	refs, err := r.Git().Refs(ctx, names.ClaimsPrefix)
	if err != nil {
		return nil, fmt.Errorf("list the claims: %w", err)
	}
	var oids []string
	for _, ref := range refs {
		oids = append(oids, ref.Oid)
	}
	var all []Held
	err = r.Git().Objects(ctx, oids, func(o object.Object, body io.Reader) error {
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

// Renew changes the expiry of a claim. The returned claim has a new object ID, which is required to land
// from then on: a landing in progress with the old one fails with ErrClaimLost. The error is ErrClaimLost
// if the claim does not exist, and a *ClaimedError if another run holds the task.
func Renew(ctx context.Context, r *repo.Repo, held Held, expires time.Time) (Held, error) {
	if held.Oid == "" {
		return Held{}, fmt.Errorf("renew the claim of %s: %w", held.Task, ErrClaimLost)
	}
	claim := held.Claim
	claim.Expires = expires
	renewed, err := setClaim(ctx, r, claim, held.Oid, "claim.renew")
	if errors.Is(err, ErrNoClaim) {
		err = fmt.Errorf("renew the claim of %s: %w", held.Task, ErrClaimLost)
	}
	return renewed, err
}

// Release releases a task. The errors are those of Acquire if oid is not the current claim.
func Release(ctx context.Context, r *repo.Repo, taskID, oid string) error {
	failpoint.Point("claim.release.before")
	err := r.Transact(ctx, r.Git(), "coven: unclaim", ref.Delete(Ref(taskID), oid))
	if err != nil {
		return claimRefused(ctx, r, taskID, oid, err)
	}
	failpoint.Point("claim.release.after")
	return nil
}

// claimRefused returns the reason why a claim's ref could not be changed.
func claimRefused(ctx context.Context, r *repo.Repo, taskID, expected string, err error) error {
	present, readErr := Of(ctx, r, taskID)
	switch {
	case errors.Is(readErr, ErrNoClaim) && expected != "":
		return readErr
	case readErr == nil && present.Oid != expected:
		return &ClaimedError{Present: present}
	case errors.Is(readErr, ErrNoClaim):
		return fmt.Errorf("claim %s: %w: %w", taskID, errClaimGone, err)
	default:
		return fmt.Errorf("claim %s: %w", taskID, err)
	}
}

// Ref returns the ref of a task's claim.
func Ref(taskID string) string { return names.ClaimsPrefix + names.SafeName(taskID) }

// CommandExit returns exit.Person.
func (e *ClaimedError) CommandExit() int { return exit.Person }

// NextCommand returns the command that lists sessions.
func (e *ClaimedError) NextCommand() string { return "coven status" }
