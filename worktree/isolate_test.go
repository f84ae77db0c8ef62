package worktree

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// state describes everything in a repository that a program of the task w must not change: all files of its
// git directory except w's own, and of its main checkout except the worktree.
func state(t *testing.T, w *repo.Worktree) string {
	t.Helper()
	var lines []string
	for _, top := range []string{w.Repo.GitDir, w.Repo.Root} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case path == w.Admin || path == w.Path || path == w.Repo.StatePath() || top == w.Repo.Root && path == w.Repo.GitDir:
				return filepath.SkipDir
			case entry.Type().IsRegular():
				lines = append(lines, fmt.Sprintf("%s %x", path, sha256.Sum256([]byte(read(t, path)))))
			default:
				lines = append(lines, path)
			}
			return nil
		})
		must(t, err)
	}
	return strings.Join(lines, "\n")
}

func isolated(t *testing.T, r *repo.Repo, task string) *repo.Worktree {
	t.Helper()
	w := add(t, r, task)
	must(t, isolation.Begin(t.Context(), w))
	return w
}

// In an isolated worktree git works as in an ordinary one, but changes nothing outside the worktree and its
// git directory.
func TestIsolatedGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			r := sample(t, "--object-format="+format)
			gitIn(t, r.Root, "tag", "v1")
			gitIn(t, r.Root, "branch", "side")
			gitIn(t, r.Root, "update-ref", "refs/remotes/origin/main", "main")
			gitIn(t, r.Root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
			write(t, filepath.Join(r.Root, "dir", "more.config"), "[alias]\n\thi = log --oneline\n")
			gitIn(t, r.Root, "config", "include.path", "../dir/more.config")
			hook(t, filepath.Join(r.GitDir, "hooks", "pre-commit"), "test -f file0.txt\n")
			w := isolated(t, r, "T")
			before := state(t, w)
			for _, line := range []string{
				"status --porcelain", "log --oneline", "hi", "show v1", "diff side", "branch -a", "rev-parse --abbrev-ref origin/HEAD",
				"add -A", "commit -qm one --allow-empty", "commit --amend --allow-empty -qm once", "tag -a v2 -m two", "tag -d v1", "branch mine", "branch -D side",
				"config user.nick ada", "config --unset user.nick", "stash list", "notes add -m n", "update-ref refs/x HEAD", "switch -q mine",
				"commit -q --allow-empty -m two", "switch -q -", "merge -q --no-ff -m merged mine", "cherry-pick --allow-empty mine", "revert --no-edit HEAD",
				"rebase -q HEAD~1", "pack-refs --all", "gc -q --prune=now", "reflog expire --expire=now --all", "repack -qad", "fsck", "remote add o /x", "remote remove o",
				"worktree list", "sparse-checkout list", "bisect start", "bisect reset", "archive -o a.tar HEAD", "describe --always", "prune", "maintenance run --task=gc --quiet",
			} {
				cmd := exec.Command("git", strings.Fields(line)...)
				cmd.Dir = w.Path
				out, err := cmd.CombinedOutput()
				if err != nil && line != "sparse-checkout list" && line != "cherry-pick --allow-empty mine" && line != "revert --no-edit HEAD" {
					t.Errorf("git %s: %v: %s", line, err, out)
				}
				if line == "cherry-pick --allow-empty mine" || line == "revert --no-edit HEAD" {
					gitIn(t, w.Path, "reset", "-q", "--hard")
				}
			}
			write(t, filepath.Join(w.Path, "file1.txt"), "stashed\n")
			gitIn(t, w.Path, "stash", "-q")
			equal(t, "what is outside of W", state(t, w), before)
			tip := gitIn(t, w.Path, "rev-parse", w.Branch)
			must(t, isolation.TakeCommits(t.Context(), w))
			equal(t, "the branch", gitIn(t, r.Root, "rev-parse", w.Branch), tip)
			equal(t, "the repository", gitIn(t, r.Root, "fsck", "--strict"), "")
			equal(t, "W's git directory", gitIn(t, w.Path, "rev-parse", "--git-common-dir"), r.GitDir)
			equal(t, "other refs", gitIn(t, r.Root, "for-each-ref", "--format=%(refname)", "refs/tags", "refs/x", "refs/notes", "refs/heads/mine", "refs/coven/in"), "refs/tags/v1")
			must(t, isolation.Begin(t.Context(), w)) // its private refs are available again
			equal(t, "the stash", gitIn(t, w.Path, "stash", "list", "--format=%gd"), "stash@{0}")
			gitIn(t, w.Path, "stash", "pop", "-q")
			equal(t, "the stashed file", read(t, filepath.Join(w.Path, "file1.txt")), "stashed\n")
		})
	}
}

// coven's own operations continue in between: its commits are in the isolated worktree afterwards, and both
// kinds of commits form one history.
func TestIsolateAgain(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	for n := range 3 {
		must(t, isolation.Begin(t.Context(), w))
		equal(t, "the branch in W", gitIn(t, w.Path, "rev-parse", "HEAD"), gitIn(t, r.Root, "rev-parse", w.Branch))
		write(t, filepath.Join(w.Path, "agent.txt"), fmt.Sprint(n))
		gitIn(t, w.Path, "add", "-A")
		gitIn(t, w.Path, "commit", "-qm", "agent")
		write(t, filepath.Join(w.Path, "left.txt"), fmt.Sprint(n))
		must(t, isolation.TakeCommits(t.Context(), w))
		commitAll(t, w, "coven")
		must(t, isolation.TakeCommits(t.Context(), w)) // nothing to do
	}
	equal(t, "the history", gitIn(t, w.Path, "log", "--format=%s", "main.."+w.Branch), "coven\nagent\ncoven\nagent\ncoven\nagent")
	equal(t, "W", gitIn(t, w.Path, "status", "--porcelain"), "")
}

// When an agent is started again, it finds the current refs, except those that it has changed itself. Files
// that it put in the way of a ref stay, and are not followed.
func TestIsolateUpdatesRefs(t *testing.T) {
	r := sample(t)
	first := gitIn(t, r.Root, "rev-parse", "main")
	for _, name := range []string{"theirs", "both", "gone", "old", "packed"} {
		gitIn(t, r.Root, "branch", name)
	}
	gitIn(t, r.Root, "update-ref", "refs/remotes/origin/main", "main")
	gitIn(t, r.Root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	w := isolated(t, r, "T")
	gitIn(t, w.Path, "pack-refs", "--all")
	mine := gitIn(t, w.Path, "commit-tree", "-m", "mine", "HEAD^{tree}")
	gitIn(t, w.Path, "update-ref", "refs/heads/both", mine)
	gitIn(t, w.Path, "update-ref", "refs/heads/own", mine)
	gitIn(t, w.Path, "branch", "-D", "old")
	gitIn(t, w.Path, "update-ref", "refs/heads/way", mine)
	outside := t.TempDir()
	must(t, os.Symlink(outside, isolation.PrivatePath(w, "refs", "heads", "link")))
	must(t, isolation.TakeCommits(t.Context(), w))

	gitIn(t, r.Root, "commit", "-q", "--allow-empty", "-m", "second")
	second := gitIn(t, r.Root, "rev-parse", "main")
	for _, name := range []string{"theirs", "both", "old", "new", "way/new", "link/new", "deep/er/new"} {
		gitIn(t, r.Root, "update-ref", "refs/heads/"+name, second)
	}
	gitIn(t, r.Root, "tag", "-a", "v2", "-m", "two")
	gitIn(t, r.Root, "branch", "-D", "gone")
	gitIn(t, r.Root, "update-ref", "refs/remotes/origin/next", "main")
	gitIn(t, r.Root, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/next")
	gitIn(t, r.Root, "update-ref", "refs/coven/claims/x", "main")
	must(t, isolation.Begin(t.Context(), w))
	for name, want := range map[string]string{
		"main": second, "theirs": second, "new": second, "deep/er/new": second, "packed": first, "gone": first, "both": mine, "own": mine, "way": mine,
	} {
		equal(t, name, gitIn(t, w.Path, "rev-parse", "refs/heads/"+name), want)
	}
	equal(t, "the tag", gitIn(t, w.Path, "rev-parse", "v2"), gitIn(t, r.Root, "rev-parse", "v2"))
	equal(t, "the remote's HEAD", gitIn(t, w.Path, "symbolic-ref", "refs/remotes/origin/HEAD"), "refs/remotes/origin/next")
	equal(t, "what must not be there", gitIn(t, w.Path, "for-each-ref", "refs/heads/old", "refs/heads/way/new", "refs/heads/link", "refs/coven"), "")
	if entries := value[[]os.DirEntry](t)(os.ReadDir(outside)); len(entries) > 0 {
		t.Errorf("a ref was written outside: %v", entries)
	}
	must(t, os.Remove(isolation.PrivatePath(w, "refs", "heads", "link"))) // newer versions of git report it
	equal(t, "the refs in W", gitIn(t, w.Path, "fsck"), "")

	// Unchanged refs are not written again, and from then on the agent's changes take precedence.
	before := value[os.FileInfo](t)(os.Stat(isolation.CopiedRefsPath(w)))
	must(t, isolation.TakeCommits(t.Context(), w))
	must(t, isolation.Begin(t.Context(), w))
	if now := value[os.FileInfo](t)(os.Stat(isolation.CopiedRefsPath(w))); !os.SameFile(before, now) {
		t.Error("the record was written again")
	}
	gitIn(t, w.Path, "update-ref", "refs/heads/theirs", mine)
	must(t, isolation.TakeCommits(t.Context(), w))
	gitIn(t, r.Root, "update-ref", "refs/heads/theirs", first)
	must(t, isolation.Begin(t.Context(), w))
	equal(t, "a branch that the agent has moved", gitIn(t, w.Path, "rev-parse", "theirs"), mine)
}

// While nothing is committed, Begin and TakeCommits do not run git.
func TestIsolateWithoutGit(t *testing.T) {
	r := sample(t)
	w := add(t, r, "T")
	must(t, isolation.Begin(t.Context(), w)) // runs git for the hooks directories
	must(t, isolation.TakeCommits(t.Context(), w))
	t.Setenv("PATH", t.TempDir())
	must(t, isolation.Begin(t.Context(), w))
	write(t, filepath.Join(w.Path, "file1.txt"), "changed\n")
	must(t, isolation.TakeCommits(t.Context(), w))
	must(t, isolation.SetAsidePrivate(w, isolation.PrivatePath(w)))
	must(t, isolation.Begin(t.Context(), w))
	must(t, isolation.TakeCommits(t.Context(), w))
}

// Begin and TakeCommits can be repeated after a kill at any point, and lose nothing.
func TestIsolateSurvivesKill(t *testing.T) {
	oneAtATime(t)
	for _, point := range []string{"isolate.made", "isolate.recorded", "isolate.closed", "collect.fetched", "collect.moved", "collect.disarmed", "collect.linked"} {
		for _, first := range []string{"isolate", "collect"} {
			t.Run(point+" then "+first, func(t *testing.T) {
				t.Parallel()
				r := sample(t)
				w := add(t, r, "T")
				agent := func() {
					write(t, filepath.Join(w.Path, "agent.txt"), "agent\n")
					gitIn(t, w.Path, "add", "-A")
					gitIn(t, w.Path, "commit", "-qm", "agent")
				}
				verb, _, _ := strings.Cut(point, ".")
				if verb == "collect" {
					must(t, isolation.Begin(t.Context(), w))
					agent()
				}
				killAt(t, actorCommand(r.Root, "T", verb, ""), point)
				if first == "isolate" {
					must(t, isolation.Begin(t.Context(), w))
				}
				must(t, isolation.TakeCommits(t.Context(), w))
				if verb == "isolate" {
					must(t, isolation.Begin(t.Context(), w))
					agent()
					must(t, isolation.TakeCommits(t.Context(), w))
				}
				equal(t, "the branch", gitIn(t, r.Root, "log", "--format=%s", "main.."+w.Branch), "agent")
				equal(t, "W", gitIn(t, w.Path, "status", "--porcelain"), "")
				equal(t, "W's common directory", gitIn(t, w.Path, "rev-parse", "--git-common-dir"), r.GitDir)
				equal(t, "refs that remain", gitIn(t, r.Root, "for-each-ref", "refs/coven/in"), "")
				equal(t, "the repository", gitIn(t, r.Root, "fsck", "--strict"), "")
				noLocks(t, r.GitDir)
			})
		}
	}
}

// Nothing that an agent plants in its git directory is run or lets anything else into the repository. If
// commits cannot be taken, there is an error, the branch does not move, and the worktree is usable.
func TestCollectRefuses(t *testing.T) {
	oneAtATime(t)
	r := sample(t)
	other := sample(t) // another repository of the user
	write(t, filepath.Join(other.Root, "private.txt"), "private\n")
	gitIn(t, other.Root, "add", "-A")
	gitIn(t, other.Root, "commit", "-qm", "private")
	private := gitIn(t, other.Root, "rev-parse", "HEAD")
	gitIn(t, other.Root, "repack", "-q", "-a") // the loose objects also stay
	sprung := filepath.Join(t.TempDir(), "sprung")
	for name, test := range map[string]struct {
		plant   func(t *testing.T, w *repo.Worktree)
		refused bool
	}{
		"nothing": {func(*testing.T, *repo.Worktree) {}, false},
		"hooks and settings": {func(t *testing.T, w *repo.Worktree) {
			trap := isolation.PrivatePath(w, "trap")
			hook(t, trap, "echo sprung >>'"+sprung+"'\ncat\n")
			for _, key := range []string{"core.fsmonitor", "core.sshCommand", "uploadpack.packObjectsHook", "core.alternateRefsCommand", "core.pager", "gc.recentObjectsHook", "credential.helper"} {
				gitIn(t, w.Path, "config", key, trap)
			}
			gitIn(t, w.Path, "config", "core.hooksPath", filepath.Dir(trap))
			for _, name := range hookNames() {
				hook(t, isolation.PrivatePath(w, "hooks", name), "echo "+name+" >>'"+sprung+"'\n")
			}
		}, false},
		"alternates": {func(t *testing.T, w *repo.Worktree) {
			write(t, isolation.PrivatePath(w, "objects/info/alternates"), filepath.Join(r.GitDir, "objects")+"\n"+filepath.Join(other.GitDir, "objects")+"\n")
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), private+"\n")
		}, true},
		"a link to another repository's objects": {func(t *testing.T, w *repo.Worktree) {
			must(t, os.RemoveAll(isolation.PrivatePath(w, "objects")))
			must(t, os.Symlink(filepath.Join(other.GitDir, "objects"), isolation.PrivatePath(w, "objects")))
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), private+"\n")
		}, true},
		"a link to a pack": {func(t *testing.T, w *repo.Worktree) {
			must(t, os.RemoveAll(isolation.PrivatePath(w, "objects/pack")))
			must(t, os.Symlink(filepath.Join(other.GitDir, "objects/pack"), isolation.PrivatePath(w, "objects/pack")))
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), private+"\n")
		}, true},
		"a few trees with millions of files": {func(t *testing.T, w *repo.Worktree) {
			tree := gitIn(t, w.Path, "rev-parse", "HEAD^{tree}")
			for range 8 {
				var entries strings.Builder
				for i := range 10 {
					fmt.Fprintf(&entries, "040000 tree %s\t%d\n", tree, i)
				}
				cmd := exec.CommandContext(t.Context(), "git", "mktree")
				cmd.Dir, cmd.Stdin = w.Path, strings.NewReader(entries.String())
				out, err := cmd.Output()
				must(t, err)
				tree = strings.TrimSpace(string(out))
			}
			gitIn(t, w.Path, "reset", "-q", "--soft", gitIn(t, w.Path, "commit-tree", "-p", "HEAD", "-m", "many", tree))
		}, true},
		"links to objects": {func(t *testing.T, w *repo.Worktree) {
			for _, object := range value[[]string](t)(filepath.Glob(filepath.Join(other.GitDir, "objects", "[0-9a-f][0-9a-f]", "*"))) {
				link := isolation.PrivatePath(w, "objects", filepath.Base(filepath.Dir(object)), filepath.Base(object))
				must(t, os.MkdirAll(filepath.Dir(link), 0o755))
				_ = os.Symlink(object, link) // it may exist
			}
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), private+"\n")
		}, true},
		"a common directory of the common directory": {func(t *testing.T, w *repo.Worktree) {
			write(t, isolation.PrivatePath(w, "commondir"), other.GitDir+"\n")
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), private+"\n")
		}, true},
		"a branch that is a ref": {func(t *testing.T, w *repo.Worktree) {
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), "ref: refs/heads/main\n")
		}, true},
		"a branch that is a link": {func(t *testing.T, w *repo.Worktree) {
			relink(t, "/etc/hostname", isolation.PrivatePath(w, "refs/heads", w.Branch))
		}, true},
		"a branch that is a pipe": {func(t *testing.T, w *repo.Worktree) {
			must(t, os.RemoveAll(isolation.PrivatePath(w, "refs/heads", w.Branch)))
			must(t, syscall.Mkfifo(isolation.PrivatePath(w, "refs/heads", w.Branch), 0o600))
		}, true},
		"a branch without objects": {func(t *testing.T, w *repo.Worktree) {
			write(t, isolation.PrivatePath(w, "refs/heads", w.Branch), strings.Repeat("1", 40)+"\n")
		}, true},
		"a commit whose files are missing": {func(t *testing.T, w *repo.Worktree) {
			blob := gitIn(t, w.Path, "rev-parse", "HEAD:agent.txt")
			must(t, os.Remove(isolation.PrivatePath(w, "objects", blob[:2], blob[2:])))
		}, true},
		"a damaged object": {func(t *testing.T, w *repo.Worktree) {
			blob := gitIn(t, w.Path, "rev-parse", "HEAD:agent.txt")
			must(t, os.Chmod(isolation.PrivatePath(w, "objects", blob[:2], blob[2:]), 0o600))
			write(t, isolation.PrivatePath(w, "objects", blob[:2], blob[2:]), "damage")
		}, true},
		"a tree that writes into .git": {func(t *testing.T, w *repo.Worktree) {
			blob := gitIn(t, w.Path, "rev-parse", "HEAD:agent.txt")
			cmd := exec.Command("git", "mktree", "-z")
			cmd.Dir, cmd.Stdin = w.Path, strings.NewReader("100644 blob "+blob+"\thooks\x00")
			inner, err := cmd.Output()
			must(t, err)
			cmd = exec.Command("git", "mktree", "-z")
			cmd.Dir, cmd.Stdin = w.Path, strings.NewReader("040000 tree "+strings.TrimSpace(string(inner))+"\t.git\x00")
			outer, err := cmd.Output()
			must(t, err)
			commit := gitIn(t, w.Path, "commit-tree", "-p", "HEAD", "-m", "evil", strings.TrimSpace(string(outer)))
			gitIn(t, w.Path, "update-ref", "refs/heads/"+w.Branch, commit)
		}, true},
		"replaced objects": {func(t *testing.T, w *repo.Worktree) {
			gitIn(t, w.Path, "replace", gitIn(t, w.Path, "rev-parse", "main"), "HEAD")
		}, false},
		"no branch":    {func(t *testing.T, w *repo.Worktree) { gitIn(t, w.Path, "update-ref", "-d", "refs/heads/"+w.Branch) }, false},
		"packed refs":  {func(t *testing.T, w *repo.Worktree) { gitIn(t, w.Path, "pack-refs", "--all") }, false},
		"packed":       {func(t *testing.T, w *repo.Worktree) { gitIn(t, w.Path, "gc", "-q") }, false},
		"no directory": {func(t *testing.T, w *repo.Worktree) { must(t, os.RemoveAll(isolation.PrivatePath(w))) }, false},
		"a file as directory": {func(t *testing.T, w *repo.Worktree) {
			must(t, os.RemoveAll(isolation.PrivatePath(w)))
			write(t, isolation.PrivatePath(w), "x")
		}, true},
		"no links": {func(t *testing.T, w *repo.Worktree) {
			for _, file := range []string{filepath.Join(w.Path, ".git"), filepath.Join(w.Admin, "commondir"), filepath.Join(w.Admin, "gitdir")} {
				must(t, os.Remove(file))
				must(t, os.Mkdir(file, 0o755))
			}
			write(t, filepath.Join(w.Path, ".git", "config"), "the agent's")
		}, false},
		"pipes": {func(t *testing.T, w *repo.Worktree) {
			for _, file := range []string{filepath.Join(w.Path, ".git"), filepath.Join(w.Admin, "commondir"), filepath.Join(w.Admin, "gitdir"), filepath.Join(w.Admin, "HEAD")} {
				must(t, os.Remove(file))
				must(t, syscall.Mkfifo(file, 0o600))
			}
		}, false},
		"links that are links": {func(t *testing.T, w *repo.Worktree) {
			for _, file := range []string{filepath.Join(w.Path, ".git"), filepath.Join(w.Admin, "commondir")} {
				relink(t, filepath.Join(other.GitDir, "config"), file)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := isolated(t, r, name)
			write(t, filepath.Join(w.Path, "agent.txt"), "by the agent of "+name+"\n")
			gitIn(t, w.Path, "add", "-A")
			gitIn(t, w.Path, "commit", "-qm", "agent")
			made, base := gitIn(t, w.Path, "rev-parse", "HEAD"), gitIn(t, r.Root, "rev-parse", w.Branch)
			config := read(t, filepath.Join(other.GitDir, "config"))
			test.plant(t, w)
			err := isolation.TakeCommits(t.Context(), w)
			refused := (*isolation.CommitsError)(nil)
			if errors.As(err, &refused) != test.refused || (err != nil) != test.refused {
				t.Fatalf("%v, want refused: %v", err, test.refused)
			}
			want := made
			if test.refused || name == "no branch" || name == "no directory" {
				want = base
			}
			equal(t, "the branch", gitIn(t, r.Root, "rev-parse", w.Branch), want)
			equal(t, "the repository", gitIn(t, r.Root, "fsck", "--strict", "--connectivity-only"), "")
			if exists(sprung) {
				t.Fatal("the agent's code ran: " + read(t, sprung))
			}
			if out, err := exec.Command("git", "-C", r.Root, "cat-file", "-e", private).CombinedOutput(); err == nil {
				t.Fatalf("a commit of another repository is in this one: %s", out)
			}
			equal(t, "refs that remain", gitIn(t, r.Root, "for-each-ref", "refs/coven/in"), "")
			equal(t, "the other repository", read(t, filepath.Join(other.GitDir, "config")), config)
			equal(t, "W's common directory", gitIn(t, w.Path, "rev-parse", "--git-common-dir"), r.GitDir)
			equal(t, "the agent's file", read(t, filepath.Join(w.Path, "agent.txt")), "by the agent of "+name+"\n")
			must(t, isolation.Begin(t.Context(), w))
			equal(t, "the branch in W", gitIn(t, w.Path, "rev-parse", "refs/heads/"+w.Branch), want)
			must(t, isolation.TakeCommits(t.Context(), w))
		})
	}
}

func relink(t *testing.T, target, path string) {
	t.Helper()
	must(t, os.RemoveAll(path))
	must(t, os.Symlink(target, path))
}

// coven does not follow links with which an agent replaced directories of the worktree's git directory.
func TestCollectBehindLinks(t *testing.T) {
	r := sample(t)
	for name, plant := range map[string]func(t *testing.T, w *repo.Worktree, outside string){
		"logs": func(t *testing.T, w *repo.Worktree, outside string) {
			relink(t, outside, filepath.Join(w.Admin, "logs"))
		},
		"logs of a directory": func(t *testing.T, w *repo.Worktree, outside string) {
			must(t, os.Remove(filepath.Join(outside, "HEAD")))
			write(t, filepath.Join(outside, "HEAD", "theirs"), "x")
			relink(t, outside, filepath.Join(w.Admin, "logs"))
		},
		"heads": func(t *testing.T, w *repo.Worktree, outside string) {
			relink(t, outside, isolation.PrivatePath(w, "refs", "heads"))
		},
		"refs": func(t *testing.T, w *repo.Worktree, outside string) {
			relink(t, outside, isolation.PrivatePath(w, "refs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := isolated(t, r, name)
			outside := t.TempDir()
			write(t, filepath.Join(outside, "HEAD"), "ref: refs/heads/theirs\n")
			write(t, filepath.Join(outside, "coven"), "a program of the user\n")
			write(t, filepath.Join(outside, "heads"), "a file of the user\n")
			plant(t, w, outside)
			before := outline(t, outside)
			_ = isolation.TakeCommits(t.Context(), w) // it may refuse the commits
			for range 2 {
				must(t, isolation.Begin(t.Context(), w))
				equal(t, "the branch in W", gitIn(t, w.Path, "rev-parse", "HEAD"), gitIn(t, r.Root, "rev-parse", w.Branch))
				must(t, isolation.TakeCommits(t.Context(), w))
			}
			equal(t, "the directory outside", outline(t, outside), before)
		})
	}
}

// A program of the task that removes permissions from its directories does not prevent coven from using
// them.
func TestCollectWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root needs no rights")
	}
	r := sample(t)
	w := isolated(t, r, "T")
	write(t, filepath.Join(w.Path, "agent.txt"), "x")
	gitIn(t, w.Path, "add", "-A")
	gitIn(t, w.Path, "commit", "-qm", "agent")
	made := gitIn(t, w.Path, "rev-parse", "HEAD")
	for _, file := range []string{filepath.Join(w.Path, ".git"), filepath.Join(w.Admin, "commondir")} {
		must(t, os.Remove(file))
		must(t, os.Mkdir(file, 0))
	}
	for _, dir := range []string{filepath.Join(w.Admin, "logs"), isolation.PrivatePath(w, "refs", "heads"), isolation.PrivatePath(w), w.Admin, w.Path} {
		must(t, os.Chmod(dir, 0o500))
	}
	t.Cleanup(func() { must(t, os.Chmod(isolation.PrivatePath(w, "refs", "heads"), 0o700)) })
	must(t, isolation.TakeCommits(t.Context(), w))
	equal(t, "the branch", gitIn(t, r.Root, "rev-parse", w.Branch), made)
	must(t, isolation.Begin(t.Context(), w))
	must(t, isolation.TakeCommits(t.Context(), w))
}

func outline(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			path += " " + read(t, path)
		}
		text.WriteString(path + "\n")
		return err
	}))
	return text.String()
}

// Locks that a killed git process left in an isolated worktree do not block the next one. If a person works
// in the worktree, a lock may be theirs and stays.
func TestLeftLocks(t *testing.T) {
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		t.Skip("without /proc, locks stay")
	}
	r := sample(t)
	w := isolated(t, r, "T")
	locks := []string{
		filepath.Join(w.Admin, "index.lock"), filepath.Join(w.Admin, "HEAD.lock"),
		isolation.PrivatePath(w, "packed-refs.lock"), isolation.PrivatePath(w, "config.lock"), isolation.PrivatePath(w, "refs", "heads", w.Branch+".lock"), isolation.PrivatePath(w, "refs", "stash.lock"),
	}
	left := func() (there int) {
		for _, lock := range locks {
			if exists(lock) {
				there++
			}
		}
		return there
	}
	leave := func() {
		for _, lock := range locks {
			write(t, lock, "")
		}
	}
	theirs := filepath.Join(r.GitDir, "refs", "heads", "main.lock")
	write(t, theirs, "")
	leave()
	must(t, isolation.Begin(t.Context(), w)) // coven was killed, too
	equal(t, "locks after Isolate", left(), 0)
	leave()
	must(t, isolation.TakeCommits(t.Context(), w))
	equal(t, "locks after Collect", left(), 0)
	equal(t, "the lock of another process", exists(theirs), true)

	must(t, isolation.Begin(t.Context(), w))
	leave()
	person := exec.Command("sleep", "1000")
	person.Dir = filepath.Join(w.Path, "dir")
	must(t, person.Start())
	err := isolation.TakeCommits(t.Context(), w)
	equal(t, "locks while a person works in W", left(), len(locks))
	must(t, errors.Join(err, person.Process.Kill()))
	_ = person.Wait() // it was killed
	must(t, isolation.Begin(t.Context(), w))
	must(t, isolation.TakeCommits(t.Context(), w))
	equal(t, "locks afterwards", left(), 0)
}

// An agent finds the users' refs, but none that coven or another checkout uses.
func TestSharedRefs(t *testing.T) {
	oid := strings.Repeat("1", 40)
	refs := map[string]string{"HEAD": "ref: refs/heads/main", "refs/heads/broken": "x", "refs/heads/to a space": oid, "refs/heads/odd": "ref: a b"}
	for _, name := range []string{
		"refs/heads/coven/T", "refs/stash", "refs/coven/claims/T", "refs/bisect/bad", "refs/worktree/x", "refs/rewritten/x",
		"refs/heads/main", "refs/heads/coven/other", "refs/tags/v1",
	} {
		refs[name] = oid
	}
	refs["refs/remotes/origin/HEAD"] = "ref: refs/remotes/origin/main"
	got := isolation.Shared((&repo.Worktree{Branch: "coven/T"}), refs)
	want := "refs/heads/coven/other " + oid + "\nrefs/heads/main " + oid + "\nrefs/remotes/origin/HEAD ref: refs/remotes/origin/main\nrefs/tags/v1 " + oid + "\n"
	equal(t, "shared refs", isolation.RefLines(got), want)
}
