package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// stacked creates n tasks that each change a different file, and their candidates, each stacked on the
// previous one.
func stacked(t *testing.T, r *repo.Repo, n int) []land.Part {
	t.Helper()
	var parts []land.Part
	below := integrate.Landing{}
	for i := range n {
		name := string(rune('A' + i))
		w := value[*repo.Worktree](t)(Add(t.Context(), r, AddRequest{TaskID: name, Base: targetOf(r, t).Tip}))
		write(t, filepath.Join(w.Path, name+".txt"), name+"\n")
		value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{Message: name, TargetTip: targetOf(r, t).Tip}))
		c, err := integrate.Merge(t.Context(), w, targetOf(r, t))
		if i > 0 {
			c, err = land.Stack(t.Context(), w, below)
		}
		must(t, err)
		below = c
		parts = append(parts, land.Part{Worktree: w, Request: land.Request{Landing: c, Message: name + "\n", ClaimOid: claimFor(t, r, name).Oid}})
	}
	return parts
}

// The target moves once, by one commit for each task, to the tree of the last candidate. All intents are
// recorded before anything moves, and neither branches nor worktrees change before that.
func TestLandStack(t *testing.T) {
	for _, strategy := range []land.Strategy{land.Squash, land.Merge} {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			old := targetOf(r, t).Tip
			parts := stacked(t, r, 3)
			top := parts[2].Request.Landing
			var intents []integrate.Landing
			for i := range parts {
				parts[i].Request.Strategy = strategy
				parts[i].Request.Journal = journalFunc(func(l integrate.Landing) error {
					equal(t, "target", targetOf(r, t).Tip, old)
					intents = append(intents, l)
					return nil
				})
				w := parts[i].Worktree
				equal(t, "tip", value[string](t)(w.Tip(t.Context())), parts[i].Request.Landing.Tip)
				equal(t, "worktree", gitIn(t, w.Path, "status", "--porcelain"), "")
			}
			landed := value[[]integrate.Landing](t)(land.LandStack(t.Context(), parts...))
			tip := targetOf(r, t).Tip
			equal(t, "tree", gitIn(t, r.Root, "rev-parse", tip+"^{tree}"), top.Tree)
			equal(t, "history", gitIn(t, r.Root, "log", "--first-parent", "--format=%s", old+".."+tip), "C\nB\nA")
			equal(t, "moves", gitIn(t, r.Root, "reflog", "main", "--format=%gs", "-1"), "coven: land A, B, C")
			equal(t, "checkout", gitIn(t, r.Root, "status", "--porcelain", "--", ".", ":!.coven"), "")
			for i, l := range landed {
				equal(t, "intent", intents[i], l)
				equal(t, "files", gitIn(t, r.Root, "diff", "--name-only", l.New+"^1", l.New), l.Task+".txt")
				equal(t, "tree of "+l.Task, gitIn(t, r.Root, "rev-parse", l.New+"^{tree}"), l.Tree)
				equal(t, "recovered", value[bool](t)(land.RecoverLanding(t.Context(), r, l)), true)
				if i < 2 {
					equal(t, "head", l.Head, tip)
				}
			}
			equal(t, "last", landed[2].New+landed[2].Head, tip)
		})
	}
}

// A candidate that conflicts does not become part of a stack, and a part that cannot land stops all others.
func TestLandStackRefuses(t *testing.T) {
	r := sample(t)
	old := targetOf(r, t).Tip
	parts := stacked(t, r, 2)
	w := value[*repo.Worktree](t)(Add(t.Context(), r, AddRequest{TaskID: "X", Base: old}))
	write(t, filepath.Join(w.Path, "A.txt"), "another A\n")
	_, err := land.Stack(t.Context(), w, parts[0].Request.Landing)
	_ = wantError[*integrate.DirtyError](t, err)
	value[commit.Commit](t)(commit.Create(t.Context(), w, commit.Request{Message: "x", TargetTip: old}))
	_, err = land.Stack(t.Context(), w, parts[0].Request.Landing)
	conflict := wantError[*integrate.ConflictError](t, err)
	equal(t, "files", strings.Join(conflict.Files, " "), "A.txt")

	recorded := 0
	for i := range parts {
		parts[i].Request.Journal = journalFunc(func(integrate.Landing) error { recorded++; return nil })
	}
	try := func(change func(p []land.Part)) error {
		changed := slices.Clone(parts)
		change(changed)
		_, err := land.LandStack(t.Context(), changed...)
		equal(t, "target", targetOf(r, t).Tip, old)
		return err
	}
	wantIs(t, try(func(p []land.Part) { p[1].Request.ClaimOid = old }), claim.ErrClaimLost)
	wantIs(t, try(func(p []land.Part) { p[1].Request.Landing.Tip = old }), land.ErrBranchMoved)
	if try(func(p []land.Part) { p[1].Request.Strategy = land.Rebase }) == nil {
		t.Error("a rebase landed in a stack")
	}
	equal(t, "intents", recorded, 0)
	gone := errors.New("disk full")
	wantIs(t, try(func(p []land.Part) { p[1].Request.Journal = journalFunc(func(integrate.Landing) error { return gone }) }), gone)
	equal(t, "intents", recorded, 1)
	equal(t, "checkout", gitIn(t, r.Root, "status", "--porcelain", "--", ".", ":!.coven"), "")
}

// A landing whose checkout has moved but whose target has not is undone completely by the first recovery.
func TestRecoverStack(t *testing.T) {
	r := sample(t)
	parts := stacked(t, r, 3)
	var intents []integrate.Landing
	for i := range parts {
		parts[i].Request.Journal = journalFunc(func(l integrate.Landing) error {
			intents = append(intents, l)
			return nil
		})
	}
	parts[2].Request.Journal = journalFunc(func(l integrate.Landing) error {
		intents = append(intents, l)
		return errors.New("killed")
	})
	if _, err := land.LandStack(t.Context(), parts...); err == nil {
		t.Fatal("it landed")
	}
	checkouts := value[[]land.Checkout](t)(land.CheckoutsOf(t.Context(), r, intents[0].Target.Ref, nil))
	must(t, checkouts[0].Follow(t.Context(), intents[0].Old, intents[0].Head))
	checkouts[0].Release() // as after a kill
	equal(t, "moved", gitIn(t, r.Root, "diff", "--cached", "--name-only"), "A.txt\nB.txt\nC.txt")
	equal(t, "landed", value[bool](t)(land.RecoverLanding(t.Context(), r, intents[1])), false)
	equal(t, "checkout", gitIn(t, r.Root, "status", "--porcelain", "--", ".", ":!.coven"), "")
	for _, intent := range intents {
		equal(t, "landed", value[bool](t)(land.RecoverLanding(t.Context(), r, intent)), false)
	}
	if _, err := os.Stat(filepath.Join(r.Root, "A.txt")); !os.IsNotExist(err) {
		t.Errorf("A.txt: %v", err)
	}
}
