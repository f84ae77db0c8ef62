package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// whileItLands lands a task, and runs a script after the landing has listed the checkouts and before it moves
// main: as the filter of a file in a checkout that moves. ROOT is the main checkout, SIDE the one that moves.
func whileItLands(t *testing.T, r *repo.Repo, task, side, script string) integrate.Landing {
	t.Helper()
	return value[integrate.Landing](t)(meanwhile(t, r, task, side, script))
}

func meanwhile(t *testing.T, r *repo.Repo, task, side, script string) (integrate.Landing, error) {
	t.Helper()
	once := filepath.Join(t.TempDir(), "once")
	tool := filepath.Join(t.TempDir(), "tool")
	text := "#!/bin/sh\nif mkdir '" + once + "' 2>/dev/null; then (\n" +
		"unset $(git rev-parse --local-env-vars)\nROOT='" + r.Root + "' SIDE='" + side + "'\n" + script + ") >&2 || exit 1\nfi\nexec cat\n"
	must(t, os.WriteFile(tool, []byte(text), 0o755))
	w := add(t, r, task)
	gitIn(t, r.Root, "config", "filter.pause.smudge", tool)
	gitIn(t, r.Root, "config", "filter.pause.clean", "cat")
	gitIn(t, r.Root, "config", "filter.pause.required", "true")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	w.Repo = r
	write(t, filepath.Join(w.Path, "file0.txt"), "landed "+task+"\n")
	write(t, filepath.Join(w.Path, "new/"+task), "landed "+task+"\n")
	write(t, filepath.Join(w.Path, ".gitattributes"), "new/"+task+" filter=pause\n")
	commitAll(t, w, "work of "+task)
	must(t, os.RemoveAll(once))
	landed, err := landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash)
	equal(t, "the script ran", exists(once), true)
	return landed, err
}

// besides makes a repository with main in a linked checkout and another branch in the main checkout.
func besides(t *testing.T) (r *repo.Repo, side string) {
	t.Helper()
	r = sample(t)
	gitIn(t, r.Root, "checkout", "-q", "-b", "other")
	write(t, filepath.Join(r.Root, "own.txt"), "other\n")
	gitIn(t, r.Root, "add", "own.txt")
	gitIn(t, r.Root, "commit", "-qm", "other")
	side = filepath.Join(t.TempDir(), "side")
	gitIn(t, r.Root, "worktree", "add", "-q", side, "main")
	return r, side
}

// The user checks the target out while it moves.
func TestLandCheckedOutMeanwhile(t *testing.T) {
	r, side := besides(t)
	write(t, filepath.Join(r.Root, "file4.txt"), "edited\n")
	landed := whileItLands(t, r, "T", side, `git -C "$ROOT" checkout -q --ignore-other-worktrees main`)
	for _, top := range []string{r.Root, side} {
		equal(t, "tip", gitIn(t, top, "rev-parse", "HEAD"), landed.New)
		equal(t, "landed", read(t, filepath.Join(top, "file0.txt")), "landed T\n")
	}
	equal(t, "side", gitIn(t, side, "status", "--porcelain"), "")
	equal(t, "main checkout", gitIn(t, r.Root, "status", "--porcelain"), " M file4.txt\n?? .coven/")
}

// git writes HEAD last. If it was stopped before that, the next landing moves the checkout.
func TestLandCheckedOutLater(t *testing.T) {
	r, side := besides(t)
	before := targetOf(r, t).Tip
	whileItLands(t, r, "T", side, "")
	gitIn(t, r.Root, "checkout", "-q", "--detach", before)
	gitIn(t, r.Root, "symbolic-ref", "HEAD", "refs/heads/main")
	equal(t, "behind", gitIn(t, r.Root, "diff", "--cached", "--name-only"), ".gitattributes\nfile0.txt\nnew/T")
	found := value[[]Stale](t)(FindStale(t.Context(), r, func(string) bool { return false }))
	if len(found) != 1 || found[0].Path != r.Root || found[0].Kind != StaleLanding {
		t.Errorf("stale: %+v", found)
	}
	landed := whileItLands(t, r, "U", side, "")
	equal(t, "tip", gitIn(t, r.Root, "rev-parse", "HEAD"), landed.New)
	equal(t, "main checkout", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
	equal(t, "landed", read(t, filepath.Join(r.Root, "new/T"))+read(t, filepath.Join(r.Root, "new/U")), "landed T\nlanded U\n")
}

// If a checkout that has just come to the target cannot move, nothing moves.
func TestLandCheckedOutEdited(t *testing.T) {
	r, side := besides(t)
	write(t, filepath.Join(r.Root, "file0.txt"), "edited\n")
	before, tip := status(t, side), targetOf(r, t).Tip
	_, err := meanwhile(t, r, "T", side, `git -C "$ROOT" checkout -q --ignore-other-worktrees main`)
	refused := wantError[*land.CheckoutError](t, err)
	equal(t, "checkout", refused.Path, r.Root)
	equal(t, "files", strings.Join(refused.Files, " "), "file0.txt")
	equal(t, "side", status(t, side), before)
	equal(t, "target", targetOf(r, t).Tip, tip)
	equal(t, "edit", gitIn(t, r.Root, "status", "--porcelain"), " M file0.txt\n?? .coven/")
}

// A checkout that is behind and has an edit in the way stops the next landing, until the user has decided. coven
// doctor --fix moves it, too.
func TestLandBehindAndEdited(t *testing.T) {
	r, side := besides(t)
	before := targetOf(r, t).Tip
	whileItLands(t, r, "T", side, "")
	gitIn(t, r.Root, "checkout", "-q", "--detach", before)
	write(t, filepath.Join(r.Root, "file0.txt"), "edited\n")
	gitIn(t, r.Root, "symbolic-ref", "HEAD", "refs/heads/main")
	w, c := ready(t, r, "U")
	for range 2 {
		_, err := landTask(t, w, c, land.Squash)
		refused := wantError[*land.CheckoutError](t, err)
		equal(t, "files", strings.Join(refused.Files, " "), "file0.txt")
		equal(t, "next", refused.Next, "copy them, and run: git -C "+shellword.Quote(r.Root)+" checkout "+before[:10]+" -- file0.txt")
		equal(t, "edit", read(t, filepath.Join(r.Root, "file0.txt")), "edited\n")
		gitIn(t, r.Root, "status") // may write the index
	}
	gitIn(t, r.Root, "checkout", before[:10], "--", "file0.txt")
	found := value[[]Stale](t)(FindStale(t.Context(), r, func(string) bool { return false }))
	equal(t, "stale", len(found), 1)
	_, err := Clear(t.Context(), r, found[0])
	must(t, err)
	equal(t, "main checkout", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
	equal(t, "landed", read(t, filepath.Join(r.Root, "new/T")), "landed T\n")
	noLocks(t, r.GitDir)
}

// git writes HEAD while the landing has locked the index of the checkout.
func TestLandCheckedOutInTheLastMoment(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"land.others.locked", "land.ref.before", "land.ref.after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r, side := besides(t)
			gitIn(t, r.Root, "checkout", "-q", "--detach", "main")
			ready(t, r, "T")
			claimFor(t, r, "T")
			cmd := actorCommand(r.Root, "T", filepath.Join(t.TempDir(), "intent"), land.Squash)
			cmd.Env = append(os.Environ(), failpoint.Env+"="+point+":1:stop")
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			must(t, cmd.Start())
			var state syscall.WaitStatus
			_, err := syscall.Wait4(cmd.Process.Pid, &state, syscall.WUNTRACED, nil)
			if err != nil || !state.Stopped() {
				t.Fatalf("not stopped: %v: %s", err, out.String())
			}
			expectFailure(t, r.Root, "commit", "-qam", "undo") // the index is locked
			gitIn(t, r.Root, "symbolic-ref", "HEAD", "refs/heads/main")
			must(t, cmd.Process.Signal(syscall.SIGCONT))
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			for _, top := range []string{r.Root, side} {
				equal(t, top, strings.TrimPrefix(gitIn(t, top, "status", "--porcelain"), "?? .coven/"), "")
				equal(t, "landed", read(t, filepath.Join(top, "file0.txt")), "landed T\n")
			}
			noLocks(t, r.GitDir)
		})
	}
}

// A landing that is killed while it has locked the indexes of other checkouts leaves no lock after the recovery, nor
// after coven doctor --fix.
func TestLandKilledWithOtherCheckouts(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"land.others.locked", "land.ref.before", "land.ref.after", "checkout.settle"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r, side := besides(t)
			gitIn(t, r.Root, "checkout", "-q", "main", "--ignore-other-worktrees")
			gitIn(t, side, "checkout", "-q", "other")
			third := filepath.Join(t.TempDir(), "third")
			gitIn(t, r.Root, "worktree", "add", "-q", "--detach", third)
			ready(t, r, "T")
			claimFor(t, r, "T")
			intent := filepath.Join(t.TempDir(), "intent")
			killAt(t, actorCommand(r.Root, "T", intent, land.Squash), point)
			gitIn(t, third, "symbolic-ref", "HEAD", "refs/heads/third") // no commits
			for _, s := range value[[]Stale](t)(FindStale(t.Context(), r, func(string) bool { return false })) {
				if s.Kind == StaleLanding && s.Path == side {
					_, err := Clear(t.Context(), r, s)
					must(t, err)
				}
			}
			equal(t, "unlocked", exists(filepath.Join(r.GitDir, "worktrees/side/index.lock")), false)
			recoverFrom(t, r, intent)
			noLocks(t, r.GitDir)
			equal(t, "side", gitIn(t, side, "status", "--porcelain"), "")
			equal(t, "main checkout", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
		})
	}
}

// A reversal that the user has staged stays.
func TestLandReversalStaged(t *testing.T) {
	r, side := besides(t)
	before := targetOf(r, t).Tip
	whileItLands(t, r, "T", side, "")
	gitIn(t, r.Root, "checkout", "-q", "--ignore-other-worktrees", "main")
	gitIn(t, r.Root, "rm", "-q", "-r", "new", ".gitattributes")
	gitIn(t, r.Root, "checkout", before, "--", "file0.txt")
	want := status(t, r.Root)
	w, c := ready(t, r, "U")
	_, err := landTask(t, w, c, land.Squash)
	equal(t, "files", strings.Join(wantError[*land.CheckoutError](t, err).Files, " "), "file0.txt")
	equal(t, "main checkout", status(t, r.Root), want)
}

// git was switching a checkout of the target to another branch: it has written the index, and writes HEAD after
// the landing has moved the files.
func TestLandSwitchedAwayMeanwhile(t *testing.T) {
	for name, head := range map[string]string{"branch": "symbolic-ref HEAD refs/heads/topic", "commit": "update-ref --no-deref HEAD main"} {
		t.Run(name, func(t *testing.T) {
			r, side := besides(t)
			gitIn(t, r.Root, "branch", "topic", "main")
			before := status(t, side)
			whileItLands(t, r, "T", side, `git -C "$SIDE" `+head)
			equal(t, "side", status(t, side), before)
		})
	}
}
