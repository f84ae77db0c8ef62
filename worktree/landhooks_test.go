package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

func hookIn(t *testing.T, r *repo.Repo, name, script string) {
	t.Helper()
	hook(t, filepath.Join(r.GitDir, "hooks", name), script)
}

func landWithHooks(t *testing.T, w *repo.Worktree, c integrate.Landing, strategy land.Strategy) (integrate.Landing, error) {
	t.Helper()
	return land.Land(t.Context(), w, land.Request{
		Landing: c, Strategy: strategy, Message: "land " + w.TaskID + "\n\nCoven-Task: " + w.TaskID + "\n", Hooks: runHook,
		ClaimOid: claimFor(t, w.Repo, w.TaskID).Oid, Journal: fileJournal{filepath.Join(t.TempDir(), "intent")},
	})
}

// The commit that lands passes commit-msg. The commits of a rebase keep their messages, as in git.
func TestLandCommitMsg(t *testing.T) {
	for strategy, want := range map[land.Strategy]string{land.Squash: "land T [checked]", land.Merge: "land T [checked]", land.Rebase: "work of T"} {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			hookIn(t, r, commit.CommitMsg, `sed -i '1s/$/ [checked]/' "$1" && git diff --cached --quiet "$(git write-tree)"`)
			hookIn(t, r, commit.PrepareMsg, `exit 1`)
			hookIn(t, r, commit.PreCommit, `exit 1`)
			value[integrate.Landing](t)(landWithHooks(t, w, c, strategy))
			equal(t, "subject", gitIn(t, r.Root, "log", "-1", "--format=%s", "main"), want)
		})
	}
}

func TestLandHookRefuses(t *testing.T) {
	for _, name := range []string{commit.CommitMsg, land.RefTransaction} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			hookIn(t, r, name, "echo no ticket named; exit 1")
			before, tip := status(t, r.Root), targetOf(r, t).Tip
			_, err := landWithHooks(t, w, c, land.Squash)
			refused := wantError[*commit.HookError](t, err)
			equal(t, "hook", refused.Name, name)
			equal(t, "output", strings.TrimSpace(refused.Output), "no ticket named")
			equal(t, "target", targetOf(r, t).Tip, tip)
			equal(t, "checkout", status(t, r.Root), before)
			must(t, os.Remove(filepath.Join(r.GitDir, "hooks", name)))
			value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
		})
	}
}

// If the hooks are in the checkout, those of the main checkout are used for the landing: the agent may have
// changed its own, or the worktree may have none because git ignores them.
func TestLandHookOfTheMainCheckout(t *testing.T) {
	for _, name := range []string{commit.CommitMsg, land.RefTransaction} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			gitIn(t, r.Root, "config", "core.hooksPath", ".hooks")
			write(t, filepath.Join(r.GitDir, "info", "exclude"), ".hooks\n")
			hook(t, filepath.Join(r.Root, ".hooks", name), "exit 1")
			hook(t, filepath.Join(w.Path, ".hooks", name), "exit 0")
			_, err := landWithHooks(t, w, c, land.Squash)
			equal(t, "hook", wantError[*commit.HookError](t, err).Name, name)
		})
	}
}

// reference-transaction gets the target's move, once prepared and once committed, and no changes of coven's
// own refs.
func TestLandReferenceTransaction(t *testing.T) {
	r := sample(t)
	seen := filepath.Join(t.TempDir(), "seen")
	hookIn(t, r, land.RefTransaction, `sed "s/^/$1 /" >>`+seen)
	w, c := ready(t, r, "T")
	landed := value[integrate.Landing](t)(landWithHooks(t, w, c, land.Squash))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	line := " " + c.Old + " " + landed.New + " refs/heads/main\n"
	equal(t, "seen", read(t, seen), "prepared"+line+"committed"+line)
}

// If the transaction fails, the hook is notified.
func TestLandReferenceTransactionAborted(t *testing.T) {
	r := sample(t)
	seen := filepath.Join(t.TempDir(), "seen")
	hookIn(t, r, land.RefTransaction, `echo "$1" >>`+seen)
	w, c := ready(t, r, "T")
	held := claimFor(t, r, "T")
	_, err := land.Land(t.Context(), w, land.Request{
		Landing: c, Message: "m", Hooks: runHook, ClaimOid: held.Oid,
		Journal: journalFunc(func(integrate.Landing) error { return claim.Release(t.Context(), r, "T", held.Oid) }),
	})
	wantIs(t, err, claim.ErrClaimLost)
	equal(t, "seen", read(t, seen), "prepared\naborted\n")
}

// commit.gpgSign applies to every commit that lands, and git creates the signature.
func TestLandSigns(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Skip("ssh-keygen is not here")
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, strategy := range []land.Strategy{land.Squash, land.Merge, land.Rebase} {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			gitIn(t, r.Root, "config", "gpg.format", "ssh")
			gitIn(t, r.Root, "config", "user.signingKey", key+".pub")
			w, c := ready(t, r, "T")
			gitIn(t, r.Root, "config", "commit.gpgSign", "true")
			value[integrate.Landing](t)(landTask(t, w, c, strategy))
			if raw := gitIn(t, r.Root, "cat-file", "commit", "main"); !strings.Contains(raw, "gpgsig -----BEGIN SSH SIGNATURE-----") {
				t.Fatalf("not signed:\n%s", raw)
			}
		})
	}
}

func TestLandCannotSign(t *testing.T) {
	r := sample(t)
	w, c := ready(t, r, "T")
	gitIn(t, r.Root, "config", "commit.gpgSign", "yes")
	program := filepath.Join(t.TempDir(), "gpg")
	hook(t, program, "exit 2\n")
	gitIn(t, r.Root, "config", "gpg.program", program)
	tip := targetOf(r, t).Tip
	_, err := landTask(t, w, c, land.Squash)
	refused := wantError[*land.SignError](t, err)
	if !strings.Contains(refused.Output, "gpg failed to sign the data") {
		t.Fatalf("output %q", refused.Output)
	}
	equal(t, "target", targetOf(r, t).Tip, tip)
	gitIn(t, r.Root, "config", "commit.gpgSign", "off")
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
}
