package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/rescue"
)

// Content that may be secret is in no object of the repository, so that `git push --mirror` does not publish it: ignored
// files, files that are left out of a change by their names, staged files, the configuration in git directories, and
// commits that are on no branch, of which a stash has ignored files.
func TestRescuePublishesNoSecrets(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := sample(t, "--object-format="+format)
			ctx := t.Context()
			w := isolated(t, r, "T")
			key := "SECRET -----BEGIN RSA " + "PRIVATE KEY-----\nMIIE"
			commits := strayCommits(t, w)
			for name, secret := range secretFiles() {
				write(t, filepath.Join(w.Path, name), secret)
			}
			gitIn(t, w.Path, "init", "-q", "nested")
			gitIn(t, filepath.Join(w.Path, "nested"), "config", "http.extraHeader", "SECRET nested")
			write(t, filepath.Join(w.Path, "open"), "for all")
			write(t, filepath.Join(w.Path, "file1.txt"), key)

			ref := value[string](t)(Remove(ctx, w, RemoveRequest{Note: "rejected"}))
			equal(t, "changed", rescued(t, r, ref, "file1.txt"), key)
			equal(t, "open", rescued(t, r, ref, "open"), "for all")
			for name, secret := range secretFiles() {
				equal(t, name, rescued(t, r, ref, name), secret)
			}
			equal(t, "nested", strings.Contains(rescued(t, r, ref, "nested/"+rescue.GitDirName+"/config"), "SECRET nested"), true)
			equal(t, "commits", unbundled(t, r, ref), commits)
			mirror := filepath.Join(t.TempDir(), "mirror")
			gitIn(t, r.Root, "init", "-q", "--bare", "--object-format="+format, mirror)
			gitIn(t, r.Root, "push", "-q", "--mirror", mirror)
			equal(t, "pushed", strings.Count(objectsIn(t, mirror), "SECRET"), 0)
			equal(t, "mode", value[os.FileInfo](t)(os.Stat(r.StatePath("private"))).Mode().Perm(), 0o700)
		})
	}
}

// strayCommits makes commits with secrets that are on no branch, by stashing and by detaching HEAD, and returns them.
func strayCommits(t *testing.T, w *repo.Worktree) string {
	t.Helper()
	write(t, filepath.Join(w.Path, "x.log"), "SECRET stashed")
	gitIn(t, w.Path, "stash", "-q", "--all")
	write(t, filepath.Join(w.Path, "untracked"), "SECRET untracked")
	gitIn(t, w.Path, "stash", "-q", "-u")
	gitIn(t, w.Path, "checkout", "-q", "--detach")
	write(t, filepath.Join(w.Path, "id_rsa"), "SECRET detached")
	gitIn(t, w.Path, "add", "id_rsa")
	gitIn(t, w.Path, "commit", "-qm", "off the branch")
	commits := strings.Fields(gitIn(t, w.Path, "rev-parse", "HEAD", "stash", "stash@{1}"))
	slices.Sort(commits)
	return strings.Join(commits, "\n")
}

// unbundled returns the sorted commits in a rescue that are on no branch, a line each. It reads them into a clone.
func unbundled(t *testing.T, r *repo.Repo, ref string) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	gitIn(t, r.Root, "clone", "-q", "--mirror", "--no-local", r.Root, clone)
	heads := gitIn(t, clone, "bundle", "unbundle", filepath.Join(exported(t, r, ref), rescue.BundleName))
	var commits []string
	for line := range strings.Lines(heads) {
		commit, _, _ := strings.Cut(line, " ")
		gitIn(t, clone, "rev-list", "--objects", commit)
		commits = append(commits, commit)
	}
	slices.Sort(commits)
	return strings.Join(commits, "\n")
}

// secretFiles returns files that an agent leaves, with their contents.
func secretFiles() map[string]string {
	return map[string]string{
		"x.log": "SECRET ignored", "build/token": "SECRET below an ignored directory",
		".env": "SECRET by its name", "deploy/.env.production.local": "SECRET by its pattern", "deploy/id_ed25519": "SECRET key",
	}
}

// A rescue of an earlier version has everything in one commit.
func TestRescueOfEarlierVersion(t *testing.T) {
	r := sample(t)
	gitIn(t, r.Root, "checkout", "-q", "--orphan", "old")
	write(t, filepath.Join(r.Root, ".env"), "old")
	gitIn(t, r.Root, "add", "-f", ".env")
	gitIn(t, r.Root, "commit", "-qm", "coven rescue of T\n\nnote\n\nPrivate-part: is not a trailer of this note")
	gitIn(t, r.Root, "update-ref", "refs/coven/rescue/T/1", "HEAD")
	equal(t, "old", rescued(t, r, "refs/coven/rescue/T/1", ".env"), "old")
}

// Private parts last as long as their rescues.
func TestDropUnusedPrivateParts(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	for _, task := range []string{"A", "B"} {
		w := add(t, r, task)
		write(t, filepath.Join(w.Path, "x.log"), "SECRET of "+task)
		value[string](t)(Remove(ctx, w, RemoveRequest{}))
	}
	gitIn(t, r.Root, "update-ref", "-d", "refs/coven/rescue/A/1")
	must(t, rescue.DropUnused(ctx, r))
	equal(t, "new parts stay", strings.Count(objectsIn(t, r.StatePath("private")), "SECRET of"), 2)
	age(t, r)
	must(t, rescue.DropUnused(ctx, r))
	equal(t, "of a deleted rescue", strings.Contains(objectsIn(t, r.StatePath("private")), "SECRET of A"), false)
	equal(t, "of the other", rescued(t, r, "refs/coven/rescue/B/1", "x.log"), "SECRET of B")
	must(t, os.RemoveAll(r.StatePath("private")))
	wantIs(t, rescue.Export(ctx, r, value[rescue.Info](t)(rescue.Find(ctx, r, "refs/coven/rescue/B/1")), t.TempDir()), rescue.ErrPartGone)
}

// age makes the parts of task A old.
func age(t *testing.T, r *repo.Repo) {
	t.Helper()
	private := "--git-dir=" + r.StatePath("private")
	for line := range strings.Lines(gitIn(t, r.Root, private, "for-each-ref", "--format=%(objectname)")) {
		oid := strings.TrimSpace(line)
		if !strings.Contains(gitIn(t, r.Root, private, "grep", "-h", "SECRET", oid), "of A") {
			continue
		}
		t.Setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
		old := gitIn(t, r.Root, private, "-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "old", oid+"^{tree}")
		gitIn(t, r.Root, private, "update-ref", "refs/parts/"+old, old)
		gitIn(t, r.Root, private, "update-ref", "-d", "refs/parts/"+oid)
	}
	past := time.Now().Add(-48 * time.Hour)
	must(t, filepath.WalkDir(r.StatePath("private", "objects"), func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(name, past, past)
	}))
}
