package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// withSubmodule creates a repository with the submodule lib, and a task that has checked it out in its
// worktree.
func withSubmodule(t *testing.T) (r *repo.Repo, w *repo.Worktree, lib string) {
	t.Helper()
	upstream := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	gitIn(t, upstream, "init", "-q", "-b", "main")
	write(t, filepath.Join(upstream, "lib.c"), "1\n")
	gitIn(t, upstream, "add", "-A")
	gitIn(t, upstream, "commit", "-qm", "lib")
	gitIn(t, upstream, "config", "receive.denyCurrentBranch", "ignore")
	r = sample(t)
	local := []string{"-c", "protocol.file.allow=always"}
	gitIn(t, r.Root, append(local, "submodule", "--quiet", "add", upstream, "lib")...)
	gitIn(t, r.Root, "commit", "-qm", "add lib")
	w = add(t, r, "T")
	gitIn(t, w.Path, append(local, "submodule", "--quiet", "update", "--init")...)
	lib = filepath.Join(w.Path, "lib")
	write(t, filepath.Join(lib, "lib.c"), "2\n")
	gitIn(t, lib, "commit", "-qam", "change lib")
	commitAll(t, w, "use it")
	return r, w, lib
}

func runShell(t *testing.T, command string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// A submodule's commit that exists only in the worktree does not land.
func TestGitlinkOnlyInTheWorktree(t *testing.T) {
	r, w, lib := withSubmodule(t)
	commit := gitIn(t, lib, "rev-parse", "HEAD")
	tip := targetOf(r, t).Tip
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	refused := wantError[*integrate.GitlinkError](t, err)
	equal(t, "path", refused.Path, "lib")
	equal(t, "commit", refused.Commit, commit)
	equal(t, "target", targetOf(r, t).Tip, tip)
	runShell(t, refused.Next)
	c := value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t)))
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	value[string](t)(Remove(t.Context(), w, RemoveRequest{Landed: landedTip(t, w)}))
	gitIn(t, filepath.Join(r.Root, "lib"), "cat-file", "-e", commit+"^{commit}")
}

// A commit that the agent has pushed lands.
func TestGitlinkPushed(t *testing.T) {
	r, w, lib := withSubmodule(t)
	gitIn(t, lib, "push", "-q", "origin", "HEAD:refs/heads/feature")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
}

// A commit on a remote branch lands, even if it is below the branch's tip or in a submodule that the main
// checkout does not have.
func TestGitlinkOfTheRemote(t *testing.T) {
	r, w, lib := withSubmodule(t)
	gitIn(t, lib, "commit", "-q", "--allow-empty", "-m", "later")
	gitIn(t, lib, "push", "-q", "origin", "HEAD:refs/heads/feature")
	gitIn(t, lib, "checkout", "-q", "HEAD~")
	gitIn(t, w.Path, "mv", "lib", "moved")
	gitIn(t, w.Path, "commit", "-qam", "move it")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
}

// A submodule that is only moved to another path lands, regardless of its remote.
func TestGitlinkMoved(t *testing.T) {
	r, w, lib := withSubmodule(t)
	gitIn(t, lib, "checkout", "-q", "HEAD~")
	gitIn(t, lib, "update-ref", "-d", "refs/remotes/origin/main")
	gitIn(t, w.Path, "mv", "lib", "moved")
	gitIn(t, w.Path, "commit", "-qam", "move it")
	value[integrate.Landing](t)(landTask(t, w, value[integrate.Landing](t)(integrate.Merge(t.Context(), w, targetOf(r, t))), land.Squash))
}

// git never uses a git directory that an agent created: it can name programs to run. The agent controls the
// path of a gitlink, which may lead back into its worktree, directly or through a link in the repository.
func TestGitlinkIntoTheWorktree(t *testing.T) {
	for name, path := range map[string]string{"direct": ".coven/worktrees/T/evil", "through a link": "link/evil"} {
		t.Run(name, func(t *testing.T) {
			r := sample(t)
			if name == "direct" {
				r.WorktreeDir = ".coven/worktrees/{task}"
			}
			w := add(t, r, "T")
			ran := filepath.Join(t.TempDir(), "ran")
			evil := filepath.Join(w.Path, "evil")
			gitIn(t, w.Path, "init", "-q", "evil")
			for key, setting := range map[string]string{
				"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
				"remote.origin.url": w.Path, "remote.origin.uploadpack": "touch " + ran + "; git-upload-pack",
			} {
				gitIn(t, evil, "config", key, setting)
			}
			must(t, os.Symlink(w.Path, filepath.Join(r.Root, "link")))
			gitIn(t, w.Path, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+","+path)
			gitIn(t, w.Path, "commit", "-qm", "name a submodule")
			must(t, os.MkdirAll(filepath.Join(w.Path, path), 0o755))
			_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
			if _, missed := os.Lstat(ran); missed == nil {
				t.Fatalf("git ran a program of the agent's: %v", err)
			}
			equal(t, "advice", wantError[*integrate.GitlinkError](t, err).Next, "")
		})
	}
}

// A submodule below the directory of worktrees does not land, regardless of the remote refs in the agent's
// repository: git in the main checkout would use the next task's files.
func TestGitlinkAmongTheWorktrees(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	const path = ".coven/worktrees/T/evil"
	oid := strings.Repeat("12", 20)
	gitIn(t, w.Path, "init", "-q", path)
	write(t, filepath.Join(w.Path, path, ".git", "refs", "remotes", "origin", "main"), oid+"\n")
	gitIn(t, w.Path, "update-index", "--add", "--cacheinfo", "160000,"+oid+","+path)
	gitIn(t, w.Path, "commit", "-qm", "name a submodule")
	write(t, filepath.Join(w.Path, path, ".git", "HEAD"), oid+"\n")
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	equal(t, "path", wantError[*integrate.GitlinkError](t, err).Path, path)
}

func TestIntegrateUnrelated(t *testing.T) {
	r := sample(t)
	w, _ := ready(t, r, "T")
	orphan := gitIn(t, r.Root, "commit-tree", "-m", "again from nothing", "main^{tree}")
	gitIn(t, r.Root, "reset", "-q", "--hard", orphan)
	_, err := integrate.Merge(t.Context(), w, targetOf(r, t))
	refused := wantError[*integrate.UnrelatedError](t, err)
	if !strings.Contains(refused.Error(), "coven/T and main have no common commit") {
		t.Fatal(refused)
	}
	_, err = integrate.MergeConflicted(t.Context(), w, targetOf(r, t), "s")
	equal(t, "target", wantError[*integrate.UnrelatedError](t, err).Target, "main")
}
