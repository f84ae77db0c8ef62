package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/diff"
	"github.com/coven-run/coven/worktree/files"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/ref"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/rescue"
	"github.com/coven-run/coven/worktree/snapshot"
	"github.com/coven-run/coven/worktree/tripwire"
)

// An agent controls its worktree and its git directory. coven never runs anything that it plants there.
func TestBoobyTraps(t *testing.T) {
	oneAtATime(t)
	r := sample(t)
	ctx := t.Context()
	gitIn(t, r.Root, "config", "filter.own.clean", "./clean.log")
	gitIn(t, r.Root, "config", "filter.own.smudge", "cat")
	gitIn(t, r.Root, "config", "submodule.recurse", "true")
	hook(t, filepath.Join(r.Root, "clean.log"), "tr a-z A-Z\n") // ignored, so it does not land
	r = value[*repo.Repo](t)(repo.Open(ctx, r.Root))

	for _, kind := range []string{"git directory", "link to git directory", "worktree's git directory"} {
		t.Run(kind, func(t *testing.T) {
			sprung := filepath.Join(t.TempDir(), "sprung")
			w := add(t, r, kind)
			target := targetOf(r, t)
			first := value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, kind, "before"))
			marks := map[bool]*tripwire.Mark{}
			for _, fenced := range []bool{true, false} {
				m := value[*tripwire.Mark](t)(tripwire.Watch(ctx, add(t, r, fmt.Sprintf("watch %s %v", kind, fenced)), tripwire.WatchOptions{Fenced: fenced}))
				marks[fenced] = m
			}
			plant(t, w, kind, sprung)
			check := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if exists(sprung) {
					t.Fatalf("%s ran the agent's code: %s", what, read(t, sprung))
				}
			}
			_, err := repo.Open(ctx, filepath.Join(w.Path, "dir"))
			check("Open", err)
			_, err = r.Find(ctx, kind)
			check("Find", err)
			for fenced, m := range marks {
				_, err := m.Compare(ctx)
				check(fmt.Sprintf("Compare, fenced: %v", fenced), err)
				_, err = tripwire.Watch(ctx, m.Worktree, tripwire.WatchOptions{Fenced: fenced})
				check(fmt.Sprintf("Watch, fenced: %v", fenced), err)
			}
			_, err = content.Tree(ctx, w)
			check("Tree", err)
			_, err = diff.Of(ctx, w, target.Tip)
			check("Diff", err)
			_, err = snapshot.Take(ctx, w, kind, "after")
			check("Snapshot", err)
			_, err = snapshot.Revert(ctx, w, kind, first.N)
			check("Revert", err)
			_, err = snapshot.Revert(ctx, w, kind, first.N+1)
			check("Revert back", err)
			c, err := commit.Create(ctx, w, commit.Request{Message: "m", TargetTip: target.Tip})
			check("Commit", err)
			equal(t, "the filter ran in the main checkout", gitIn(t, r.Root, "show", c.Oid+":filtered"), "TEXT")
			_, err = snapshot.Restore(ctx, w, kind, target.Tip)
			check("Restore", err)
			_, err = snapshot.Restore(ctx, w, kind, c.Oid)
			check("Restore back", err)
			write(t, filepath.Join(r.Root, "other"), kind)
			gitIn(t, r.Root, "add", "other")
			gitIn(t, r.Root, "commit", "-qm", "target moves")
			candidate, err := integrate.Merge(ctx, w, target)
			check("Integrate", err)
			_, err = landTask(t, w, candidate, land.Squash)
			check("Land", err)
			_, err = List(ctx, r)
			check("Worktrees", err)
			_, err = files.Uncommitted(ctx, r)
			check("Uncommitted", err)
			_, err = rescue.Take(ctx, w, "note", false)
			check("Rescue", err)
			other := add(t, r, "other "+kind)
			_, err = Remove(ctx, other, RemoveRequest{})
			check("Add and Remove of another task", err)
			_, err = Add(ctx, r, AddRequest{TaskID: kind, Base: "main"})
			_ = wantError[*LeftoverError](t, err)
			_, err = Remove(ctx, w, RemoveRequest{})
			check("Remove", err)
			gitIn(t, r.Root, "rm", "-q", "filtered", ".gitattributes")
			gitIn(t, r.Root, "commit", "-qm", "again")
		})
	}
}

// An agent without a fence can plant code in the repository itself. Finding, showing and undoing that does
// not run it.
func TestPlantedInRepository(t *testing.T) {
	e := watchedRepo(t)
	ctx := t.Context()
	sprung := filepath.Join(t.TempDir(), "sprung")
	trap := filepath.Join(t.TempDir(), "trap")
	hook(t, trap, fmt.Sprintf("echo \"$0 $@\" >>'%s'\ncat\n", sprung))
	for _, fenced := range []bool{true, false} {
		before := everything(t, e)
		m := e.watch(t, fenced)
		for _, key := range []string{
			"core.fsmonitor", "core.pager", "core.sshCommand", "diff.external", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
			"diff.evil.textconv", "merge.evil.driver", "gpg.program", "core.editor", "core.alternateRefsCommand",
		} {
			e.plumbing(t, "config", key, trap)
		}
		e.plumbing(t, "config", "core.hooksPath", filepath.Dir(trap))
		e.plumbing(t, "update-ref", "refs/heads/main", e.first)
		for _, name := range hookNames() {
			hook(t, filepath.Join(e.r.GitDir, "hooks", name), fmt.Sprintf("echo %s >>'%s'\n", name, sprung))
			hook(t, filepath.Join(filepath.Dir(trap), name), fmt.Sprintf("echo %s >>'%s'\n", name, sprung))
		}
		write(t, filepath.Join(e.r.GitDir, "info", "attributes"), "* filter=evil diff=evil merge=evil\n")
		must(t, os.RemoveAll(sprung)) // it was triggered by planting
		found := value[tripwire.Found](t)(m.Compare(ctx))
		info := value[rescue.Info](t)(rescue.Find(ctx, e.r, found.Rescue))
		_, _, err := tripwire.RescuedPatch(ctx, e.r, info, 1<<20)
		must(t, err)
		value[[]tripwire.Change](t)(tripwire.RescuedChanges(ctx, e.r, info))
		value[[]rescue.Info](t)(rescue.All(ctx, e.r))
		value[rescue.Info](t)(tripwire.Undo(ctx, e.r, info))
		must(t, m.Done())
		if exists(sprung) {
			t.Fatalf("fenced %v: ran %s", fenced, read(t, sprung))
		}
		equal(t, "everything", everything(t, e), before)
	}
}

// The repository's own hooks are for the user's git and for Commit's HookRunner. coven's bookkeeping does
// not run them.
func TestNoHooksInBookkeeping(t *testing.T) {
	r := sample(t)
	ctx := t.Context()
	ran := filepath.Join(t.TempDir(), "ran")
	for _, name := range hookNames() {
		hook(t, filepath.Join(r.GitDir, "hooks", name), fmt.Sprintf("echo %s >>'%s'\n", name, ran))
	}
	w := add(t, r, "T")
	write(t, filepath.Join(w.Path, "a"), "a")
	value[snapshot.Snapshot](t)(snapshot.Take(ctx, w, "s", ""))
	commitAll(t, w, "m")
	commit := gitIn(t, r.Root, "commit-tree", "-p", "main", "-m", "m", "main^{tree}")
	must(t, r.Git().Transact(ctx, "test", ref.Move("refs/heads/main", commit, targetOf(r, t).Tip)))
	c := value[integrate.Landing](t)(integrate.Merge(ctx, w, targetOf(r, t)))
	value[integrate.Landing](t)(landTask(t, w, c, land.Squash))
	value[snapshot.Snapshot](t)(snapshot.Revert(ctx, w, "s", 1))
	value[string](t)(Remove(ctx, w, RemoveRequest{}))
	if exists(ran) {
		t.Fatalf("hooks ran: %s", read(t, ran))
	}
}

func hookNames() []string {
	return []string{
		"post-checkout", "pre-commit", "post-index-change", "reference-transaction", "post-commit",
		"prepare-commit-msg", "commit-msg", "fsmonitor-watchman", "post-merge", "pre-auto-gc", "post-rewrite",
	}
}

// plant puts traps at every place that an agent can write.
func plant(t *testing.T, w *repo.Worktree, kind, sprung string) {
	t.Helper()
	trap := filepath.Join(t.TempDir(), "trap")
	hook(t, trap, fmt.Sprintf("echo \"$0 $@\" >>'%s'\ncat\n", sprung))
	evil := filepath.Join(t.TempDir(), "evil")
	gitIn(t, w.Path, "init", "-q", "--bare", evil)
	settings := [][2]string{
		{"core.bare", "false"},
		{"core.fsmonitor", trap},
		{"core.hooksPath", filepath.Dir(trap)},
		{"filter.evil.clean", trap},
		{"filter.evil.smudge", trap},
		{"filter.evil.process", trap},
		{"diff.external", trap},
		{"diff.evil.textconv", trap},
		{"merge.evil.driver", trap + " %A"},
		{"core.pager", trap},
		{"core.sshCommand", trap},
		{"gpg.program", trap},
		{"commit.gpgSign", "true"},
		{"core.editor", trap},
		{"extensions.worktreeConfig", "true"},
	}
	for _, s := range settings {
		gitIn(t, w.Path, "--git-dir", evil, "config", s[0], s[1])
	}
	config := read(t, filepath.Join(evil, "config"))
	for _, name := range hookNames() {
		hook(t, filepath.Join(filepath.Dir(trap), name), fmt.Sprintf("echo hook %s >>'%s'\n", name, sprung))
		hook(t, filepath.Join(evil, "hooks", name), fmt.Sprintf("echo hook %s >>'%s'\n", name, sprung))
	}
	write(t, filepath.Join(w.Path, ".gitattributes"), "*.txt filter=evil diff=evil merge=evil\nfiltered filter=own\n")
	write(t, filepath.Join(w.Path, "filtered"), "text\n")
	write(t, filepath.Join(w.Path, "file0.txt"), "changed\n"+kind)
	hook(t, filepath.Join(w.Path, "clean.log"), fmt.Sprintf("echo clean.log >>'%s'\ncat\n", sprung))

	// A nested repository, and one that pretends to be a submodule.
	for _, dir := range []string{"nested", "module"} {
		gitIn(t, w.Path, "init", "-q", dir)
		write(t, filepath.Join(w.Path, dir, "f.txt"), "nested "+kind)
		gitIn(t, filepath.Join(w.Path, dir), "add", "-A")
		gitIn(t, filepath.Join(w.Path, dir), "commit", "-qm", "nested")
		// It also claims that a remote has its commit.
		gitIn(t, filepath.Join(w.Path, dir), "update-ref", "refs/remotes/origin/main", "HEAD")
		write(t, filepath.Join(w.Path, dir, "f.txt"), "dirty")
		write(t, filepath.Join(w.Path, dir, ".git", "config"), config)
	}
	gitIn(t, w.Path, "-c", "filter.own.clean=cat", "add", "module")
	gitIn(t, w.Path, "commit", "-qm", "a link")
	write(t, filepath.Join(w.Path, ".gitmodules"), "[submodule \"module\"]\n\tpath = module\n\turl = ./module\n")

	switch kind {
	case "git directory":
		must(t, os.Remove(filepath.Join(w.Path, ".git")))
		must(t, os.Rename(evil, filepath.Join(w.Path, ".git")))
	case "link to git directory":
		write(t, filepath.Join(w.Path, ".git"), "gitdir: "+evil+"\n")
	default:
		write(t, filepath.Join(w.Admin, "commondir"), evil+"\n")
		write(t, filepath.Join(w.Admin, "config"), config)
		write(t, filepath.Join(w.Admin, "config.worktree"), config)
		write(t, filepath.Join(w.Admin, "HEAD"), "ref: refs/heads/main\n")
		write(t, filepath.Join(w.Admin, "gitdir"), filepath.Join(w.Repo.Root, ".git")+"\n")
		write(t, filepath.Join(w.Admin, "info", "attributes"), "* filter=evil\n")
	}

	// Check that the traps work: git in the worktree triggers one.
	cmd := exec.Command("git", "status")
	cmd.Dir = w.Path
	_ = cmd.Run() // it may fail
	if !exists(sprung) {
		t.Fatal("the traps do not work")
	}
	must(t, os.Remove(sprung))
}
