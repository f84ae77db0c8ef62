package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/internal/repo"
)

func hookIn(t *testing.T, r *repo.Repo, name, script string) {
	t.Helper()
	hook(t, filepath.Join(r.GitDir, "hooks", name), script)
}

func landWithHooks(t *testing.T, w *repo.Worktree, c Landing, strategy Strategy) (Landing, error) {
	t.Helper()
	return Land(t.Context(), w, LandRequest{
		Landing: c, Strategy: strategy, Message: "land " + w.TaskID + "\n\nCoven-Task: " + w.TaskID + "\n", Hooks: runHook,
		ClaimOid: claimFor(t, w.Repo, w.TaskID).Oid, Journal: fileJournal{filepath.Join(t.TempDir(), "intent")},
	})
}

// The commit that lands passes commit-msg; the commits of a rebase keep their
// messages, as in git.
func TestLandCommitMsg(t *testing.T) {
	for strategy, want := range map[Strategy]string{Squash: "land T [checked]", Merge: "land T [checked]", Rebase: "work of T"} {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			hookIn(t, r, commitMsg, `sed -i '1s/$/ [checked]/' "$1" && git diff --cached --quiet "$(git write-tree)"`)
			hookIn(t, r, prepareMsg, `exit 1`)
			hookIn(t, r, preCommit, `exit 1`)
			value[Landing](t)(landWithHooks(t, w, c, strategy))
			equal(t, "subject", gitIn(t, r.Root, "log", "-1", "--format=%s", "main"), want)
		})
	}
}

func TestLandHookRefuses(t *testing.T) {
	for _, name := range []string{commitMsg, refTransaction} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			hookIn(t, r, name, "echo no ticket named; exit 1")
			before, tip := status(t, r.Root), targetOf(r, t).Tip
			_, err := landWithHooks(t, w, c, Squash)
			refused := wantError[*HookError](t, err)
			equal(t, "hook", refused.Name, name)
			equal(t, "output", strings.TrimSpace(refused.Output), "no ticket named")
			equal(t, "target", targetOf(r, t).Tip, tip)
			equal(t, "checkout", status(t, r.Root), before)
			must(t, os.Remove(filepath.Join(r.GitDir, "hooks", name)))
			value[Landing](t)(land(t, w, c, Squash))
		})
	}
}

// Where the hooks are in the checkout, those of the main one guard the landing: the
// agent has changed its own, or git ignores them and it has none.
func TestLandHookOfTheMainCheckout(t *testing.T) {
	for _, name := range []string{commitMsg, refTransaction} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			w, c := ready(t, r, "T")
			gitIn(t, r.Root, "config", "core.hooksPath", ".hooks")
			write(t, filepath.Join(r.GitDir, "info", "exclude"), ".hooks\n")
			hook(t, filepath.Join(r.Root, ".hooks", name), "exit 1")
			hook(t, filepath.Join(w.Path, ".hooks", name), "exit 0")
			_, err := landWithHooks(t, w, c, Squash)
			equal(t, "hook", wantError[*HookError](t, err).Name, name)
		})
	}
}

// reference-transaction sees the target's move, once prepared and once committed,
// and nothing of coven's own refs.
func TestLandReferenceTransaction(t *testing.T) {
	r := sample(t)
	seen := filepath.Join(t.TempDir(), "seen")
	hookIn(t, r, refTransaction, `sed "s/^/$1 /" >>`+seen)
	w, c := ready(t, r, "T")
	landed := value[Landing](t)(landWithHooks(t, w, c, Squash))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	line := " " + c.Old + " " + landed.New + " refs/heads/main\n"
	equal(t, "seen", read(t, seen), "prepared"+line+"committed"+line)
}

// When the transaction fails after all, the hook hears of that.
func TestLandReferenceTransactionAborted(t *testing.T) {
	r := sample(t)
	seen := filepath.Join(t.TempDir(), "seen")
	hookIn(t, r, refTransaction, `echo "$1" >>`+seen)
	w, c := ready(t, r, "T")
	held := claimFor(t, r, "T")
	_, err := Land(t.Context(), w, LandRequest{
		Landing: c, Message: "m", Hooks: runHook, ClaimOid: held.Oid,
		Journal: journalFunc(func(Landing) error { return claim.Release(t.Context(), r, "T", held.Oid) }),
	})
	wantIs(t, err, claim.ErrClaimLost)
	equal(t, "seen", read(t, seen), "prepared\naborted\n")
}

// commit.gpgSign holds for every commit that lands, and git makes the signature.
func TestLandSigns(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Skip("ssh-keygen is not here")
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, strategy := range []Strategy{Squash, Merge, Rebase} {
		t.Run(string(strategy), func(t *testing.T) {
			r := sample(t)
			gitIn(t, r.Root, "config", "gpg.format", "ssh")
			gitIn(t, r.Root, "config", "user.signingKey", key+".pub")
			w, c := ready(t, r, "T")
			gitIn(t, r.Root, "config", "commit.gpgSign", "true")
			value[Landing](t)(land(t, w, c, strategy))
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
	_, err := land(t, w, c, Squash)
	refused := wantError[*SignError](t, err)
	if !strings.Contains(refused.Output, "gpg failed to sign the data") {
		t.Fatalf("output %q", refused.Output)
	}
	equal(t, "target", targetOf(r, t).Tip, tip)
	gitIn(t, r.Root, "config", "commit.gpgSign", "off")
	value[Landing](t)(land(t, w, c, Squash))
}
