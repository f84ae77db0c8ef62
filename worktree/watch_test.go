package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/protected"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/tripwire"
)

// watched is a repository with a task, another task, and typical targets of attacks.
type watched struct {
	r           *repo.Repo
	w, sibling  *repo.Worktree
	first, main string // commits
}

// plumbing runs git as an agent does on the repository of its worktree.
func (e watched) plumbing(t testing.TB, args ...string) string {
	t.Helper()
	return gitIn(t, e.w.Path, append([]string{"--git-dir=" + e.r.GitDir}, args...)...)
}

func watchedRepo(t testing.TB, initArgs ...string) watched {
	t.Helper()
	r := sample(t, initArgs...)
	first := gitIn(t, r.Root, "rev-parse", "HEAD")
	gitIn(t, r.Root, "tag", "v1")
	gitIn(t, r.Root, "tag", "-a", "-m", "signed", "v2")
	gitIn(t, r.Root, "commit", "-q", "--allow-empty", "-m", "second")
	gitIn(t, r.Root, "branch", "person")
	gitIn(t, r.Root, "branch", "packed")
	gitIn(t, r.Root, "pack-refs", "--all")
	gitIn(t, r.Root, "branch", "loose")
	gitIn(t, r.Root, "update-ref", "refs/remotes/origin/main", first)
	hook(t, filepath.Join(r.GitDir, "hooks", "pre-commit"), "true\n")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	e := watched{r: r, w: add(t, r, "T"), sibling: add(t, r, "other"), first: first}
	e.main = gitIn(t, r.Root, "rev-parse", "HEAD")
	write(t, filepath.Join(e.sibling.Path, "work.txt"), "half done\n")
	claimFor(t, r, "T")
	value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), e.sibling, "s-other", ""))
	return e
}

func (e watched) watch(t testing.TB, fenced bool, running ...string) *tripwire.Mark {
	t.Helper()
	return value[*tripwire.Mark](t)(tripwire.Watch(t.Context(), e.w, tripwire.WatchOptions{Fenced: fenced, Running: func() []string { return running }}))
}

func lines(changes []tripwire.Change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return strings.Join(all, "\n")
}

// attacks lists the ways in which an agent without a fence can attack the repository of its worktree.
func attacks() []struct {
	name string
	do   func(*testing.T, watched)
	want string // the changes
	is   tripwire.Severity
} {
	return []struct {
		name string
		do   func(*testing.T, watched)
		want string
		is   tripwire.Severity
	}{
		{"branch rewound", func(t *testing.T, e watched) { e.plumbing(t, "update-ref", "refs/heads/main", e.first) }, "branch main was moved from MAIN to FIRST", tripwire.Stops},
		{"branch moved forward", func(t *testing.T, e watched) {
			c := e.plumbing(t, "commit-tree", "-p", "main", "-m", "x", "main^{tree}")
			e.plumbing(t, "update-ref", "refs/heads/loose", c)
		}, "branch loose was moved forward", tripwire.Stops},
		{"branch deleted", func(t *testing.T, e watched) { e.plumbing(t, "update-ref", "-d", "refs/heads/loose") }, "branch loose was deleted", tripwire.Stops},
		{"packed branch deleted", func(t *testing.T, e watched) { e.plumbing(t, "update-ref", "-d", "refs/heads/packed") }, "branch packed was deleted", tripwire.Stops},
		{"packed-refs edited", func(t *testing.T, e watched) {
			path := filepath.Join(e.r.GitDir, "packed-refs")
			write(t, path, strings.Replace(read(t, path), e.main+" refs/heads/packed", e.first+" refs/heads/packed", 1))
		}, "branch packed was moved from MAIN to FIRST", tripwire.Stops},
		{"branch made symbolic", func(t *testing.T, e watched) { e.plumbing(t, "symbolic-ref", "refs/heads/loose", "refs/heads/coven/T") }, "branch loose was changed from MAIN to coven/T", tripwire.Stops},
		{"branch broken", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.GitDir, "refs/heads/loose"), "x") }, `branch loose was moved from MAIN to broken "x"`, tripwire.Stops},
		{"tag moved", func(t *testing.T, e watched) { e.plumbing(t, "tag", "-f", "v1", "main") }, "tag v1 was moved from FIRST to MAIN", tripwire.Stops},
		{"annotated tag deleted", func(t *testing.T, e watched) { e.plumbing(t, "tag", "-d", "v2") }, "tag v2 was deleted", tripwire.Stops},
		{"HEAD switched", func(t *testing.T, e watched) { e.plumbing(t, "symbolic-ref", "HEAD", "refs/heads/person") }, "HEAD was changed from main to person", tripwire.Stops},
		{"HEAD deleted", func(t *testing.T, e watched) { must(t, os.Remove(filepath.Join(e.r.GitDir, "HEAD"))) }, "HEAD was deleted", tripwire.Stops},
		{"claim of the task", func(t *testing.T, e watched) { e.plumbing(t, "update-ref", "-d", claim.Ref("T")) }, "refs/coven/claims/T was deleted", tripwire.Stops},
		{"snapshots deleted", func(t *testing.T, e watched) { e.plumbing(t, "update-ref", "-d", names.SnapshotRef("s-other")) }, "refs/coven/snapshots/s-other was deleted", tripwire.Stops},
		{"branch of another task", func(t *testing.T, e watched) {
			e.plumbing(t, "update-ref", "refs/heads/coven/other", e.first)
		}, "branch coven/other was moved from MAIN to FIRST", tripwire.Stops},
		{"own branch made symbolic", func(t *testing.T, e watched) {
			e.plumbing(t, "symbolic-ref", "refs/heads/coven/T", "refs/heads/main")
		}, "branch coven/T was changed from MAIN to main", tripwire.Stops},
		{"another task's worktree deleted", func(t *testing.T, e watched) {
			must(t, os.RemoveAll(filepath.Join(e.sibling.Path, "dir")))
		}, "file dir/deep/x.txt of task other was deleted", tripwire.Holds},
		{"replacement object", func(t *testing.T, e watched) { e.plumbing(t, "replace", e.main, e.first) }, "refs/replace/MAINFULL was added", tripwire.Stops},
		{"config", func(t *testing.T, e watched) { e.plumbing(t, "config", "core.fsmonitor", "/tmp/x") }, "git configuration config was changed", tripwire.Stops},
		{"config unreadable to git", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.GitDir, "config"), "[broken") }, "git configuration config was changed", tripwire.Stops},
		{"config included", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.GitDir, "more"), "[core]\n\tpager = x\n")
			e.plumbing(t, "config", "include.path", "more")
		}, "git configuration config was changed\ngit configuration more was added", tripwire.Stops},
		{"config.worktree", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.GitDir, "config.worktree"), "") }, "git configuration config.worktree was added", tripwire.Stops},
		{"attributes", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.GitDir, "info", "attributes"), "* filter=x")
		}, "git configuration info/attributes was added", tripwire.Stops},
		{"alternates", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.GitDir, "objects/info/alternates"), e.w.Path)
		}, "git configuration objects/info/alternates was added", tripwire.Stops},
		{"hook added", func(t *testing.T, e watched) { hook(t, filepath.Join(e.r.GitDir, "hooks", "post-commit"), "evil\n") }, "hook hooks/post-commit was added", tripwire.Stops},
		{"hook changed", func(t *testing.T, e watched) { hook(t, filepath.Join(e.r.GitDir, "hooks", "pre-commit"), "evil\n") }, "hook hooks/pre-commit was changed", tripwire.Stops},
		{"hook disabled", func(t *testing.T, e watched) {
			must(t, os.Chmod(filepath.Join(e.r.GitDir, "hooks", "pre-commit"), 0o644))
		}, "hook hooks/pre-commit was changed", tripwire.Stops},
		{"hook replaced by a pipe", func(t *testing.T, e watched) {
			path := filepath.Join(e.r.GitDir, "hooks", "pre-commit")
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o600))
		}, "hook hooks/pre-commit was changed", tripwire.Stops},
		{"file edited", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.Root, "file0.txt"), "evil\n") }, "file file0.txt was changed", tripwire.Holds},
		{"file added", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.Root, "dir", "evil.go"), "evil\n") }, "file dir/evil.go was added", tripwire.Holds},
		{"file deleted", func(t *testing.T, e watched) { must(t, os.Remove(filepath.Join(e.r.Root, "file1.txt"))) }, "file file1.txt was deleted", tripwire.Holds},
		{"file made executable", func(t *testing.T, e watched) { must(t, os.Chmod(filepath.Join(e.r.Root, "file1.txt"), 0o755)) }, "file file1.txt was changed", tripwire.Holds},
		{"index changed", func(t *testing.T, e watched) {
			gitIn(t, e.r.Root, "rm", "-q", "--cached", "file2.txt")
		}, "index entry file2.txt was deleted", tripwire.Holds},
		{"another task's file edited", func(t *testing.T, e watched) { write(t, filepath.Join(e.sibling.Path, "work.txt"), "evil\n") }, "file work.txt of task other was changed", tripwire.Holds},
	}
}

// Every attack by an agent without a fence is found, named and stored, and can be undone. The undo can be
// undone as well.
func TestAttacks(t *testing.T) {
	oneAtATime(t)
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			e := watchedRepo(t)
			m := e.watch(t, false)
			before := everything(t, e)
			a.do(t, e)
			attacked := everything(t, e)
			found := value[tripwire.Found](t)(m.Compare(t.Context()))
			want := strings.NewReplacer("MAINFULL", e.main, "MAIN", e.main[:10], "FIRST", e.first[:10]).Replace(a.want)
			equal(t, "changes", lines(found.Changes), want)
			equal(t, "severity", found.Severity(), a.is)
			equal(t, "everything after Compare", everything(t, e), attacked)

			again, ok := e.watch(t, false).Unreported() // by a coven process after a kill
			if !ok || again.Rescue != found.Rescue {
				t.Fatalf("repeated report: %+v", again)
			}
			must(t, m.Done())
			undo(t, e.r, found.Rescue, before, attacked, func() string { return everything(t, e) })
		})
	}
}

// undo restores the state before a rescue, and then the state after it.
func undo(t *testing.T, r *repo.Repo, ref, before, attacked string, now func() string) {
	t.Helper()
	info := value[rescue.Info](t)(rescue.Find(t.Context(), r, ref))
	undone := value[rescue.Info](t)(tripwire.Undo(t.Context(), r, info))
	equal(t, "everything after Restore", now(), before)
	if strings.Contains(attacked, "PIPE") || strings.Contains(attacked, "not a readable file") {
		return // it cannot be stored
	}
	value[rescue.Info](t)(tripwire.Undo(t.Context(), r, undone))
	equal(t, "everything after undoing Restore", now(), attacked)
}

// everything returns the watched part of a repository, read from the files.
func everything(t testing.TB, e watched) string {
	t.Helper()
	state := value[protected.State](t)(isolation.ReadState(t.Context(), e.r, []string{filepath.Join(e.r.GitDir, "hooks")}))
	var out []string
	for name, oid := range state.Refs {
		if !strings.HasPrefix(name, "refs/coven/rescue/") && !strings.HasPrefix(name, names.KeepPrefix) {
			out = append(out, name+" "+oid)
		}
	}
	for path, f := range state.Files {
		text := f.Text
		if strings.HasPrefix(f.Mode, "p") {
			text = "PIPE"
		}
		out = append(out, fmt.Sprintf("%s %s %s", path, f.Mode, text))
	}
	slices.Sort(out)
	index := gitIn(t, e.r.Root, "--git-dir="+value[string](t)(filepath.EvalSymlinks(copyOfGitDir(t, e.r))), "ls-files", "-s")
	return strings.Join(out, "\n") + "\n" + index + "\n" + contents(t, e.r.Root) + contents(t, e.sibling.Path)
}

// copyOfGitDir creates a git directory with the repository's index that git can always read.
func copyOfGitDir(t testing.TB, r *repo.Repo) string {
	t.Helper()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "--bare", ".")
	gitIn(t, dir, "config", "core.bare", "false")
	must(t, os.WriteFile(filepath.Join(dir, "index"), []byte(read(t, filepath.Join(r.GitDir, "index"))), 0o600))
	return dir
}

// Changes that people, git and other coven processes make during a step do not stop the task.
func TestInnocence(t *testing.T) {
	oneAtATime(t)
	commit := func(t *testing.T, e watched, branch string) string {
		c := gitIn(t, e.r.Root, "commit-tree", "-p", branch, "-m", "work", branch+"^{tree}")
		gitIn(t, e.r.Root, "update-ref", "refs/heads/"+branch, c)
		return c
	}
	for _, tt := range []struct {
		name             string
		running          string
		do               func(*testing.T, watched)
		fenced, unfenced tripwire.Severity // "" for no change
	}{
		{"nothing", "", func(*testing.T, watched) {}, "", ""},
		{"snapshot, commit and claim of the task", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.w.Path, "a"), "a")
			value[snapshot.Snapshot](t)(snapshot.Take(t.Context(), e.w, "s", ""))
			commitAll(t, e.w, "m")
			held := value[claim.Held](t)(claim.Of(t.Context(), e.r, "T"))
			value[claim.Held](t)(claim.Renew(t.Context(), e.r, held, time.Now().Add(time.Hour)))
			value[string](t)(rescue.Take(t.Context(), e.w, "n", false))
		}, "", ""},
		{"the agent commits in isolation", "", func(t *testing.T, e watched) {
			must(t, isolation.Begin(t.Context(), e.w))
			write(t, filepath.Join(e.w.Path, "a"), "a")
			gitIn(t, e.w.Path, "add", "a")
			gitIn(t, e.w.Path, "commit", "-qnm", "mine")
			gitIn(t, e.w.Path, "tag", "private")
			must(t, isolation.TakeCommits(t.Context(), e.w))
		}, "", ""},
		{"the agent commits", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.w.Path, "a"), "a")
			gitIn(t, e.w.Path, "add", "a")
			gitIn(t, e.w.Path, "commit", "-qnm", "mine")
		}, "", ""},
		{"another task lands", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "file3.txt"), "new\n")
			must(t, os.Remove(filepath.Join(e.sibling.Path, "file4.txt")))
			write(t, filepath.Join(e.sibling.Path, "new", "file.txt"), "new\n")
			commitAll(t, e.sibling, "m")
			c := value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t)))
			value[integrate.Landing](t)(landTask(t, e.sibling, c, land.Squash))
			value[string](t)(Remove(t.Context(), e.sibling, RemoveRequest{Landed: c.Tip}))
		}, "", ""},
		{"a file is made executable after it landed", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "file3.txt"), "new\n")
			commitAll(t, e.sibling, "m")
			value[integrate.Landing](t)(landTask(t, e.sibling, value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t))), land.Squash))
			must(t, os.Chmod(filepath.Join(e.r.Root, "file3.txt"), 0o755))
		}, "", tripwire.Holds},
		{"a landed file is staged as a filter shows it", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, ".gitattributes"), "file3.txt text eol=crlf\n")
			write(t, filepath.Join(e.sibling.Path, "file3.txt"), "new\n")
			commitAll(t, e.sibling, "m")
			value[integrate.Landing](t)(landTask(t, e.sibling, value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t))), land.Squash))
			shown := gitIn(t, e.r.Root, "hash-object", "-w", "--no-filters", "file3.txt")
			gitIn(t, e.r.Root, "update-index", "--cacheinfo", "100644,"+shown+",file3.txt")
		}, "", tripwire.Holds},
		{"another process lands a task", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "file3.txt"), "new\n")
			commitAll(t, e.sibling, "m")
			claimFor(t, e.r, "other")
			out, err := actorCommand(e.r.Root, "other", filepath.Join(t.TempDir(), "intent"), land.Squash).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}, "", ""},
		{"another task starts, works and ends", "", func(t *testing.T, e watched) {
			n := add(t, e.r, "new")
			held := claimFor(t, e.r, "new")
			write(t, filepath.Join(n.Path, "a"), "a")
			gitIn(t, n.Path, "add", "a")
			gitIn(t, n.Path, "commit", "-qnm", "by its agent")
			value[string](t)(Remove(t.Context(), n, RemoveRequest{}))
			must(t, claim.Release(t.Context(), e.r, "new", held.Oid))
		}, "", ""},
		{"another task runs without a fence", "other", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "work.txt"), "more\n")
			gitIn(t, e.sibling.Path, "add", "work.txt")
			gitIn(t, e.sibling.Path, "commit", "-qnm", "by its agent")
		}, "", ""},
		{"the branch of a running task is moved elsewhere", "other", func(t *testing.T, e watched) {
			e.plumbing(t, "update-ref", "refs/heads/coven/other", e.first)
		}, tripwire.Noted, tripwire.Stops},
		{"refs are packed", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "pack-refs", "--all", "--prune") }, "", ""},
		{"git gc", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "gc", "-q", "--prune=now") }, "", ""},
		{"git repack", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "repack", "-adq") }, "", ""},
		{"git status", "", func(t *testing.T, e watched) {
			must(t, os.Chtimes(filepath.Join(e.r.Root, "file5.txt"), time.Now(), time.Now()))
			gitIn(t, e.r.Root, "status")
		}, "", ""},
		{"an ignored file", "", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.Root, "x.log"), "x") }, "", ""},
		{"the tracker writes", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.Root, ".beads", "issues.jsonl"), "v2\n")
		}, "", ""},
		{"a fetch", "", func(t *testing.T, e watched) {
			gitIn(t, e.r.Root, "update-ref", "refs/remotes/origin/main", e.main)
			gitIn(t, e.r.Root, "update-ref", "refs/remotes/origin/new", e.first)
		}, tripwire.Noted, tripwire.Noted},
		{"a fetched tag", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "tag", "v3") }, tripwire.Noted, tripwire.Stops},
		{"a person's commit", "", func(t *testing.T, e watched) { commit(t, e, "person") }, tripwire.Noted, tripwire.Stops},
		{"a person's new branch", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "branch", "topic") }, tripwire.Noted, tripwire.Stops},
		{"a person's rebase", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "update-ref", "refs/heads/person", e.first) }, tripwire.Noted, tripwire.Stops},
		{"a person amends the target", "", func(t *testing.T, e watched) {
			gitIn(t, e.r.Root, "commit", "-q", "--amend", "--allow-empty", "-m", "amended")
		}, tripwire.Noted, tripwire.Stops},
		{"a person adds a remote", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "remote", "add", "new", "../new") }, tripwire.Noted, tripwire.Stops},
		{"a person commits in the worktree of a waiting task", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "work.txt"), "more\n")
			gitIn(t, e.sibling.Path, "add", "work.txt")
			gitIn(t, e.sibling.Path, "commit", "-qnm", "by hand")
		}, "", tripwire.Stops},
		{"a person switches", "", func(t *testing.T, e watched) { gitIn(t, e.r.Root, "switch", "-q", "person") }, tripwire.Noted, tripwire.Stops},
		{"a person's worktree", "", func(t *testing.T, e watched) {
			gitIn(t, e.r.Root, "worktree", "add", "-q", "-b", "topic", filepath.Join(t.TempDir(), "tree"))
		}, tripwire.Noted, tripwire.Stops},
		{"a person's stash", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.Root, "file6.txt"), "mine\n")
			gitIn(t, e.r.Root, "stash", "-q")
		}, tripwire.Noted, tripwire.Stops},
		{"a person edits", "", func(t *testing.T, e watched) { write(t, filepath.Join(e.r.Root, "file6.txt"), "mine\n") }, "", tripwire.Holds},
		{"a person edits another task", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.sibling.Path, "file6.txt"), "mine\n")
		}, "", tripwire.Holds},
		{"a person stages", "", func(t *testing.T, e watched) {
			write(t, filepath.Join(e.r.Root, "x"), "x")
			gitIn(t, e.r.Root, "add", "x")
		}, "", tripwire.Holds},
	} {
		for fenced, want := range map[bool]tripwire.Severity{true: tt.fenced, false: tt.unfenced} {
			t.Run(fmt.Sprintf("%s/fenced=%v", tt.name, fenced), func(t *testing.T) {
				t.Parallel()
				e := watchedRepo(t)
				var running []string
				if tt.running != "" {
					running = []string{tt.running}
				}
				m := e.watch(t, fenced, running...)
				tt.do(t, e)
				found := value[tripwire.Found](t)(m.Compare(t.Context()))
				if found.Severity() != want {
					t.Fatalf("got %q, want %q: %s", found.Severity(), want, lines(found.Changes))
				}
				if stored := found.Rescue != ""; stored != (want == tripwire.Stops || want == tripwire.Holds) {
					t.Errorf("rescue %q", found.Rescue)
				}
				must(t, m.Done())
			})
		}
	}
}

// Changes after coven was killed may have been made by a person, so they stop nothing.
func TestWatchAfterKill(t *testing.T) {
	e := watchedRepo(t)
	e.watch(t, false) // its coven is killed
	gitIn(t, e.r.Root, "commit", "-q", "--allow-empty", "-m", "a person's")
	m := e.watch(t, false)
	found, ok := m.Unreported()
	if !ok || found.Severity() != tripwire.Holds || len(found.Of(tripwire.Holds)) != 1 || found.Rescue == "" || !found.Interrupted {
		t.Fatalf("got %+v", found)
	}
	must(t, m.Done())
	if again, ok := e.watch(t, true).Unreported(); ok { // it is killed again, with a fence
		t.Fatalf("reported twice: %+v", again)
	}
	gitIn(t, e.r.Root, "commit", "-q", "--allow-empty", "-m", "a person's")
	if found, ok := e.watch(t, true).Unreported(); ok {
		t.Fatalf("got %+v", found)
	}
}

// If coven is killed between two effects, it finds the same changes again, stored once. A restore that was
// killed can be repeated.
func TestWatchSurvivesKill(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"watch.stored", "rescue.stored", "rescue.each", "rescue.each:2"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			e := watchedRepo(t)
			e.watch(t, false)
			before := everything(t, e)
			hook(t, filepath.Join(e.r.GitDir, "hooks", "post-commit"), "evil\n")
			e.plumbing(t, "update-ref", "refs/heads/main", e.first)
			e.plumbing(t, "config", "core.pager", "evil")
			killAt(t, actorCommand(e.r.Root, "T", "rescue.", land.Squash), point)

			m := e.watch(t, false)
			found := value[tripwire.Found](t)(m.Compare(t.Context()))
			must(t, m.Done())
			if len(found.Changes) == 0 && point == "watch.stored" {
				t.Fatal("the changes were forgotten")
			}
			all := value[[]rescue.Info](t)(rescue.All(t.Context(), e.r))
			value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, all[0]))
			equal(t, "everything", everything(t, e), before)
		})
	}
}

// Undo refuses changes that have changed again, and then changes nothing.
func TestRestoreRefuses(t *testing.T) {
	e := watchedRepo(t)
	m := e.watch(t, true)
	e.plumbing(t, "config", "core.pager", "evil")
	e.plumbing(t, "update-ref", "refs/heads/main", e.first)
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	e.plumbing(t, "config", "core.pager", "mine")
	info := value[rescue.Info](t)(rescue.Find(t.Context(), e.r, found.Rescue))
	_, err := tripwire.Undo(t.Context(), e.r, info)
	refused := wantError[*tripwire.UnrestorableError](t, err)
	equal(t, "changed again", lines(refused.Again), "git configuration config was changed")
	equal(t, "main", gitIn(t, e.r.Root, "rev-parse", "main"), e.first)

	gitIn(t, e.r.Root, "config", "core.pager", "evil")
	undone := value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, info))
	equal(t, "main", gitIn(t, e.r.Root, "rev-parse", "main"), e.main)
	again := value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, info))
	equal(t, "rescue of a second restore", again.Ref, "")
	if undone.Ref == "" || !undone.Changes || undone.Task != "T" {
		t.Errorf("undo: %+v", undone)
	}
}

// The patch of a rescue contains the changes, up to a limit.
func TestRescuedPatch(t *testing.T) {
	e := watchedRepo(t)
	m := e.watch(t, true)
	hook(t, filepath.Join(e.r.GitDir, "hooks", "post-commit"), "evil\n")
	must(t, os.Remove(filepath.Join(e.r.GitDir, "hooks", "pre-commit")))
	info := value[rescue.Info](t)(rescue.Find(t.Context(), e.r, value[tripwire.Found](t)(m.Compare(t.Context())).Rescue))
	whole, cut, err := tripwire.RescuedPatch(t.Context(), e.r, info, 1<<20)
	must(t, err)
	if text := string(whole); cut || !strings.Contains(text, "\n+evil\n") || !strings.Contains(text, "\n-true\n") {
		t.Errorf("cut %v: %s", cut, text)
	}
	for limit, want := range map[int]bool{len(whole): false, len(whole) - 1: true} {
		part, cut, err := tripwire.RescuedPatch(t.Context(), e.r, info, int64(limit))
		must(t, err)
		if string(part) != string(whole[:limit]) || cut != want {
			t.Errorf("limit %d: %d bytes, cut %v", limit, len(part), cut)
		}
	}
}

// The objects of a deleted ref survive git gc.
func TestRescueKeepsObjects(t *testing.T) {
	oneAtATime(t)
	e := watchedRepo(t)
	c := gitIn(t, e.r.Root, "commit-tree", "-m", "alone", "main^{tree}")
	gitIn(t, e.r.Root, "update-ref", "refs/heads/lonely", c)
	gitIn(t, e.r.Root, "tag", "-a", "-m", "annotated", "v9", c)
	var many strings.Builder
	for i := range 450 {
		fmt.Fprintf(&many, "create refs/heads/many/%d %s\n", i, gitIn(t, e.r.Root, "commit-tree", "-m", fmt.Sprint(i), "main^{tree}"))
	}
	value[[]byte](t)(e.r.Git().Feed(t.Context(), []byte(many.String()), "update-ref", "--stdin"))
	refs := gitIn(t, e.r.Root, "for-each-ref", "refs/heads", "refs/tags")
	m := e.watch(t, false)
	e.plumbing(t, "update-ref", "-d", "refs/heads/lonely")
	e.plumbing(t, "tag", "-d", "v9")
	value[[]byte](t)(e.r.Git().Feed(t.Context(), []byte(strings.ReplaceAll(many.String(), "create", "delete")), "update-ref", "--stdin"))
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "changes", len(found.Changes), 452)
	gitIn(t, e.r.Root, "reflog", "expire", "--expire=now", "--all")
	gitIn(t, e.r.Root, "gc", "-q", "--prune=now")
	value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, value[rescue.Info](t)(rescue.Find(t.Context(), e.r, found.Rescue))))
	equal(t, "refs", gitIn(t, e.r.Root, "for-each-ref", "refs/heads", "refs/tags"), refs)
	gitIn(t, e.r.Root, "fsck", "--connectivity-only")
}

// If a user undoes a landing, the target is as before the step.
func TestUndoneLanding(t *testing.T) {
	e := watchedRepo(t)
	m := e.watch(t, false)
	write(t, filepath.Join(e.sibling.Path, "file3.txt"), "new\n")
	commitAll(t, e.sibling, "m")
	done := value[integrate.Landing](t)(landTask(t, e.sibling, value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t))), land.Squash))
	e.plumbing(t, "update-ref", "refs/heads/main", e.main)
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "changes", lines(found.Changes), fmt.Sprintf("branch main was moved from %.10s to %.10s", done.New, e.main))
	value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, value[rescue.Info](t)(rescue.Find(t.Context(), e.r, found.Rescue))))
	equal(t, "main", gitIn(t, e.r.Root, "rev-parse", "main"), done.New)
}

// Repositories with SHA-256 objects, and with refs that git must list.
func TestWatchOtherFormats(t *testing.T) {
	e := watchedRepo(t, "--object-format=sha256")
	m := e.watch(t, false)
	e.plumbing(t, "update-ref", "refs/heads/main", e.first)
	write(t, filepath.Join(e.r.Root, "file0.txt"), "evil\n")
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "changes", lines(found.Changes), fmt.Sprintf("branch main was moved from %.10s to %.10s\nfile file0.txt was changed", e.main, e.first))
	value[rescue.Info](t)(tripwire.Undo(t.Context(), e.r, value[rescue.Info](t)(rescue.Find(t.Context(), e.r, found.Rescue))))
	equal(t, "main", gitIn(t, e.r.Root, "rev-parse", "main"), e.main)

	gitIn(t, e.r.Root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	for _, head := range []string{"main", e.first} {
		gitIn(t, e.r.Root, "checkout", "-q", "-f", head)
		state := value[protected.State](t)(isolation.ReadState(t.Context(), e.r, nil))
		equal(t, "refs", fmt.Sprint(value[map[string]string](t)(isolation.ListedRefs(t.Context(), e.r))), fmt.Sprint(state.Refs))
	}
}

// With a relative core.hooksPath, hooks are in the checkout, where landings change them.
func TestHooksInCheckout(t *testing.T) {
	e := watchedRepo(t)
	hook(t, filepath.Join(e.r.Root, ".hooks", "pre-push"), "true\n")
	gitIn(t, e.r.Root, "config", "core.hooksPath", ".hooks")
	gitIn(t, e.r.Root, "add", ".hooks")
	gitIn(t, e.r.Root, "commit", "-qm", "hooks")
	commitAll(t, e.sibling, "m")
	m := e.watch(t, true)
	value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t)))
	hook(t, filepath.Join(e.sibling.Path, ".hooks", "pre-push"), "landed\n")
	commitAll(t, e.sibling, "m")
	value[integrate.Landing](t)(landTask(t, e.sibling, value[integrate.Landing](t)(integrate.Merge(t.Context(), e.sibling, targetOf(e.r, t))), land.Squash))
	equal(t, "landed hook", lines(value[tripwire.Found](t)(m.Compare(t.Context())).Changes), "")
	hook(t, filepath.Join(e.r.Root, ".hooks", "pre-push"), "evil\n")
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "planted hook", lines(found.Changes), "hook .hooks/pre-push was changed")
	equal(t, "severity", found.Severity(), tripwire.Stops)
}

// A rescue can be listed and exported.
func TestExport(t *testing.T) {
	e := watchedRepo(t)
	write(t, filepath.Join(e.w.Path, "new.txt"), "a\r\n")
	must(t, os.Remove(filepath.Join(e.w.Path, "file0.txt")))
	ref := value[string](t)(rescue.Take(t.Context(), e.w, "note", false))
	info := value[rescue.Info](t)(rescue.Find(t.Context(), e.r, ref))
	if info.Task != "T" || info.Changes || info.Note != "note" || info.N != 1 {
		t.Errorf("got %+v", info)
	}
	var changed []string
	for _, f := range value[[]rescue.File](t)(rescue.Files(t.Context(), e.r, info)) {
		if f.Status != ' ' {
			changed = append(changed, string(f.Status)+" "+f.Path)
		}
	}
	equal(t, "changed", strings.Join(changed, "\n"), "D file0.txt\nA new.txt")
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, rescue.Export(t.Context(), e.r, info, dir))
	equal(t, "files", contents(t, dir), contents(t, e.w.Path))
	wantIs(t, rescue.Export(t.Context(), e.r, info, dir), rescue.ErrNotEmpty)
	_, err := rescue.Find(t.Context(), e.r, "refs/heads/main")
	wantIs(t, err, rescue.ErrNone)
}

// BenchmarkWatch compares Watch and Compare with the cheapest git command that reads refs, in a repository
// with 200 files and 1,000 refs.
func BenchmarkWatch(b *testing.B) {
	for _, loose := range []int{0, 1000} {
		r := sample(b)
		var refs strings.Builder
		main := gitIn(b, r.Root, "rev-parse", "main")
		for i := range 1000 {
			fmt.Fprintf(&refs, "create refs/tags/v%d %s\n", i, main)
		}
		value[[]byte](b)(r.Git().Feed(b.Context(), []byte(refs.String()), "update-ref", "--stdin"))
		if loose == 0 {
			gitIn(b, r.Root, "pack-refs", "--all")
		}
		for i := range 200 {
			write(b, filepath.Join(r.Root, fmt.Sprintf("many/%d.txt", i)), "x\n")
		}
		gitIn(b, r.Root, "add", "-A")
		gitIn(b, r.Root, "commit", "-qm", "many")
		w := add(b, r, "T")
		for _, fenced := range []bool{true, false} {
			b.Run(fmt.Sprintf("loose=%d/fenced=%v/watch", loose, fenced), func(b *testing.B) {
				for b.Loop() {
					must(b, value[*tripwire.Mark](b)(tripwire.Watch(b.Context(), w, tripwire.WatchOptions{Fenced: fenced})).Done())
				}
			})
			b.Run(fmt.Sprintf("loose=%d/fenced=%v/compare", loose, fenced), func(b *testing.B) {
				m := value[*tripwire.Mark](b)(tripwire.Watch(b.Context(), w, tripwire.WatchOptions{Fenced: fenced}))
				for b.Loop() {
					if found := value[tripwire.Found](b)(m.Compare(b.Context())); len(found.Changes) > 0 {
						b.Fatal(lines(found.Changes))
					}
				}
				must(b, m.Done())
			})
		}
		b.Run(fmt.Sprintf("loose=%d/git for-each-ref", loose), func(b *testing.B) {
			for b.Loop() {
				value[[]byte](b)(r.Git().Output(b.Context(), "for-each-ref"))
			}
		})
	}
}

// The log explains moves that were begun or completed. After a move that was completed between the two
// positions, the previous value is no longer explained.
func TestRefLog(t *testing.T) {
	const made = "a b r\n=a b r\n"
	for _, tt := range []struct {
		log           string
		from, to      int // range of completed moves; -1 means the end
		before, after string
		want          bool
	}{
		{"a b r\n", 0, -1, "a", "b", true},
		{"a b r\n", 0, -1, "a", "a", true},
		{"a b r\n", 0, -1, "c", "b", false},
		{"? b r\n", 0, -1, "c", "b", true},
		{"- b r\n", 0, -1, "", "b", true},
		{"a - r\n", 0, -1, "a", "", true},
		{"a b other\n", 0, -1, "a", "b", false},
		{"a b", 0, -1, "a", "b", false},
		{"=a b r\n", 0, -1, "c", "b", true},
		{made, 0, -1, "a", "b", true},
		{made, 0, -1, "a", "a", false},
		{made, 0, len(made) - 1, "a", "a", true},
		{made, len(made), -1, "a", "a", true},
	} {
		log, to := ref.Moves{}, tt.to
		if to < 0 {
			to = len(tt.log)
		}
		log.Read(tt.log, tt.from, to)
		if got := log.Explains("r", tt.before, tt.after); got != tt.want {
			t.Errorf("%q explains %q to %q: %v", tt.log, tt.before, tt.after, got)
		}
	}
	r := sample(t)
	must(t, os.RemoveAll(filepath.Dir(string(r.RefLog())))) // the first change creates the log
	must(t, r.RefLog().Begin(ref.Create("refs/x", "a")))
	equal(t, "log", read(t, string(r.RefLog())), "- a refs/x\n")
}

// A change of a sibling that is in progress when the step begins, and is not logged as completed when it
// ends, is coven's own.
func TestChangeInFlight(t *testing.T) {
	e := watchedRepo(t)
	branch := ref.Create("refs/heads/coven/late", e.main)
	must(t, e.r.RefLog().Begin(ref.Create("refs/heads/coven/killed", e.first))) // by a coven process that was killed
	must(t, e.r.RefLog().Begin(branch))
	undone := ref.Move("refs/heads/main", e.first, e.main) // moved back before the step
	must(t, e.r.RefLog().Begin(undone))
	e.r.RefLog().Done([]ref.Edit{undone})
	m := e.watch(t, true)
	e.plumbing(t, "update-ref", "refs/heads/coven/late", e.main)
	found := value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "changes", lines(found.Changes), "")

	e.r.RefLog().Done([]ref.Edit{branch})
	m = e.watch(t, true)
	e.plumbing(t, "update-ref", "-d", "refs/heads/coven/late")
	found = value[tripwire.Found](t)(m.Compare(t.Context()))
	equal(t, "changes", lines(found.Changes), "branch coven/late was deleted")
}

// A landing by another coven process that is in progress when a step without a fence begins or ends is not
// reported, neither if its files have moved and its branch has not, nor the other way around.
func TestLandingMeanwhile(t *testing.T) {
	e := watchedRepo(t)
	other := value[*repo.Repo](t)(repo.Open(t.Context(), e.r.Root))
	tasks := []string{"one", "two", "three", "four", "five", "six", "seven", "eight"}
	landed := make(chan struct{})
	go func() {
		defer close(landed)
		for _, task := range tasks {
			if err := wholeRun(t.Context(), other, task, fileJournal{filepath.Join(t.TempDir(), "intent")}); err != nil {
				t.Errorf("%s: %v", task, err)
			}
		}
	}()
	for over := false; !over; {
		select {
		case <-landed:
			over = true
		default:
		}
		m := e.watch(t, false, tasks...)
		found := value[tripwire.Found](t)(m.Compare(t.Context()))
		if got := lines(found.Changes); got != "" {
			t.Errorf("changes: %s", got)
		}
		must(t, m.Done())
	}
}

// The files of the main checkout move before its branch and after it. A move in progress when a step begins
// is explained like later ones.
func TestCheckoutInFlight(t *testing.T) {
	e := watchedRepo(t)
	write(t, filepath.Join(e.sibling.Path, "landed.txt"), "landed\n")
	next := commitAll(t, e.sibling, "to land").Oid
	c := &land.Checkout{Repo: e.r, Ref: "refs/heads/main"}
	for _, begun := range []bool{true, false} {
		var m *tripwire.Mark
		if !begun {
			m = e.watch(t, false)
		}
		moved := value[func()](t)(c.LogMove(e.main, next))
		if begun {
			m = e.watch(t, false)
		}
		write(t, filepath.Join(e.r.Root, "landed.txt"), "landed\n")
		gitIn(t, e.r.Root, "add", "landed.txt")
		equal(t, "a file of a landing", lines(value[tripwire.Found](t)(m.Compare(t.Context())).Changes), "")
		moved()
		must(t, m.Done())
		gitIn(t, e.r.Root, "rm", "-q", "-f", "landed.txt")
	}
	m := e.watch(t, false)
	write(t, filepath.Join(e.r.Root, "landed.txt"), "landed\n")
	equal(t, "after the landing", lines(value[tripwire.Found](t)(m.Compare(t.Context())).Changes), "file landed.txt was added")
}
