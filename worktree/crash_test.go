package worktree

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/internal/process/failpoint"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

func actorCommand(root, task, intent string, strategy land.Strategy) *exec.Cmd {
	request, err := json.Marshal(map[string]string{
		"Root": root, "Task": task, "Intent": intent, "Strategy": string(strategy),
	})
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return exec.Command(os.Args[0], "actor", string(request))
}

// A landing that is killed at any point, recovered, and repeated lands once and does not change the user's
// work.
func TestLandSurvivesKill(t *testing.T) {
	oneAtATime(t)
	points := []string{
		"integrate.locked", "integrate.merged", "integrate.commit", "integrate.journal",
		"integrate.worktree", "integrate.ref", "integrate.return",
		"land.locked", "land.merged", "land.commit", "land.intent", "land.checkout.before",
		"checkout.begun", "checkout.locked", "checkout.staged", "checkout.recorded",
		"checkout.step.before", "checkout.step.before:2", "checkout.exchanged", "checkout.step.before:3", "checkout.step.after:3",
		"checkout.index.before", "checkout.index.after",
		"land.checkout.each", "land.others.locked", "land.checkout.after", "land.ref.before", "land.ref.after",
		"checkout.settle", "checkout.unlocked", "checkout.ended", "land.return",
	}
	landedAt := []string{"land.ref.after", "checkout.settle", "checkout.unlocked", "checkout.ended", "land.return"}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := sample(t)
			w, _ := ready(t, r, "T")
			onMain(t, r, "file7.txt", "meanwhile\n")
			personWorks(t, r.Root)
			claimFor(t, r, "T")
			before, tip := status(t, r.Root), targetOf(r, t).Tip
			intentPath := filepath.Join(t.TempDir(), "intent")
			killAt(t, actorCommand(r.Root, "T", intentPath, land.Squash), point)

			landed := recoverFrom(t, r, intentPath)
			wantLanded := slices.Contains(landedAt, point)
			equal(t, "landed", landed, wantLanded)
			if !landed {
				equal(t, "target", targetOf(r, t).Tip, tip)
				equal(t, "checkout", status(t, r.Root), before)
				must(t, integrateAndLand(t.Context(), w, land.Squash, fileJournal{intentPath}))
			}
			equal(t, "second recovery", recoverFrom(t, r, intentPath), true)
			equal(t, "landings", gitIn(t, r.Root, "rev-list", "--count", tip+"..main"), "1")
			equal(t, "worktree", gitIn(t, w.Path, "status", "--porcelain"), "")
			wantAfter := strings.NewReplacer("\"one\\ntwo\\nthree 0\\n\"", "\"landed T\\n\"").Replace(personPart(before))
			equal(t, "the person's work", personPart(status(t, r.Root)), wantAfter)
			noLocks(t, r.GitDir)
		})
	}
}

func personWorks(t *testing.T, root string) {
	t.Helper()
	write(t, filepath.Join(root, "file3.txt"), "dirty\r\n")
	write(t, filepath.Join(root, "file4.txt"), "staged\n")
	gitIn(t, root, "add", "file4.txt")
	write(t, filepath.Join(root, "file4.txt"), "staged and dirty\n")
	write(t, filepath.Join(root, "untracked.txt"), "untracked\n")
	write(t, filepath.Join(root, "x.log"), "ignored\n")
}

// personPart returns a status without the landing's changes.
func personPart(status string) string {
	var out strings.Builder
	for line := range strings.Lines(status) {
		if !strings.Contains(line, "file0.txt") && !strings.Contains(line, "file1.txt") && !strings.Contains(line, "new.txt") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// killAt runs a command that must be killed at the failpoint.
func killAt(t *testing.T, cmd *exec.Cmd, point string) {
	t.Helper()
	cmd.Env = append(os.Environ(), failpoint.Env+"="+point)
	out, err := cmd.CombinedOutput()
	if err == nil || err.Error() != "signal: killed" {
		t.Fatalf("the process did not die at %s: %v: %s", point, err, out)
	}
}

func recoverFrom(t *testing.T, r *repo.Repo, intentPath string) bool {
	t.Helper()
	var intent integrate.Landing
	if err := file.ReadJSON(intentPath, &intent); os.IsNotExist(err) {
		return false
	}
	must(t, file.ReadJSON(intentPath, &intent))
	return value[bool](t)(land.RecoverLanding(t.Context(), r, intent))
}

// noLocks fails if a lock file of git or a temporary file is left.
func noLocks(t *testing.T, gitDir string) {
	t.Helper()
	must(t, filepath.WalkDir(gitDir, func(name string, entry os.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(name, ".lock") || filepath.Dir(name) == filepath.Join(gitDir, "coven", "moves")) {
			t.Errorf("left behind: %s", name)
		}
		return err
	}))
}

// movePathOf returns the path of the record of a move of the main checkout.
func movePathOf(r *repo.Repo) string {
	return r.StatePath("moves", land.CheckoutOf(r, r.GitDir, r.Root).Key()+".json")
}

// Without a record, coven has not started to move anything: a user's change that equals the landing's is
// not reverted.
func TestRecoverLeavesEqualChangesAlone(t *testing.T) {
	r := sample(t)
	_, c := ready(t, r, "T")
	commit := gitIn(t, r.Root, "commit-tree", "-p", "main", "-m", "m", c.Tree)
	write(t, filepath.Join(r.Root, "file0.txt"), "landed T\n")
	before := status(t, r.Root)
	intent := integrate.Landing{Task: "T", Target: repo.Target{Ref: "refs/heads/main"}, Old: c.Old, New: commit, Tree: c.Tree}
	equal(t, "landed", value[bool](t)(land.RecoverLanding(t.Context(), r, intent)), false)
	equal(t, "checkout", status(t, r.Root), before)
}

// A commit that the user made of the half-landed index is not reverted.
func TestRecoverAfterPersonCommitted(t *testing.T) {
	r := sample(t)
	w, _ := ready(t, r, "T")
	claimFor(t, r, "T")
	intentPath := filepath.Join(t.TempDir(), "intent")
	killAt(t, actorCommand(r.Root, "T", intentPath, land.Squash), "land.ref.before")
	must(t, os.Remove(filepath.Join(r.GitDir, "index.lock"))) // as git advises
	gitIn(t, r.Root, "commit", "-qm", "the person's")
	equal(t, "landed", recoverFrom(t, r, intentPath), false)
	equal(t, "status", gitIn(t, r.Root, "status", "--porcelain"), "?? .coven/")
	landed := value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
	equal(t, "already there", landed.New == landed.Old, true)
}

// The git process of a killed coven continues to run. Recovery waits for it, because it inherited the lock.
func TestRecoverWaitsForOrphanedGit(t *testing.T) {
	r := sample(t)
	dir := t.TempDir()
	started, gate := filepath.Join(dir, "started"), filepath.Join(dir, "gate")
	must(t, syscall.Mkfifo(gate, 0o600))
	gitIn(t, r.Root, "config", "filter.slow.smudge", "touch "+started+"; cat "+gate+" >/dev/null; cat")
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, ".gitattributes"), "slow.txt filter=slow\n")
	write(t, filepath.Join(w.Path, "slow.txt"), "slow\n")
	write(t, filepath.Join(w.Path, "file0.txt"), "landed T\n")
	commitAll(t, w, "work")
	claimFor(t, r, "T")
	personWorks(t, r.Root)
	before := status(t, r.Root)
	intentPath := filepath.Join(dir, "intent")
	cmd := actorCommand(r.Root, "T", intentPath, land.Squash)
	must(t, cmd.Start())
	waitFor(t, started)
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Fatal("the lander was not killed")
	}

	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := r.Lock(short, names.TargetLock(targetOf(r, t).Branch), "test")
	wantIs(t, err, context.DeadlineExceeded)

	must(t, os.WriteFile(gate, []byte("go\n"), 0)) // returns when the filter reads
	equal(t, "landed", recoverFrom(t, r, intentPath), false)
	equal(t, "checkout", status(t, r.Root), before)
	noLocks(t, r.GitDir)
}

func waitFor(t *testing.T, name string) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !exists(name) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not appear", name)
		}
		runtime.Gosched()
	}
}
