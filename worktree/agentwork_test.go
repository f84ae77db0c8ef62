package worktree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/content"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
	"github.com/coven-run/coven/worktree/land"
	"github.com/coven-run/coven/worktree/snapshot"
)

// makeRepository creates a repository of one of several kinds.
func (c *doomedCase) makeRepository() {
	c.t.Helper()
	root := filepath.Join(c.dir, "repo")
	kind := pick(c, "plain", "plain", "conversions", "asked", "sha256")
	c.log("a repository: %s", kind)
	init := []string{"init", "-q", "--template=", "-b", "main", root}
	if kind == "sha256" {
		init = append(init, "--object-format=sha256")
	}
	gitIn(c.t, c.dir, init...)
	switch kind {
	case "conversions":
		write(c.t, filepath.Join(root, ".gitattributes"), "*.txt text=auto\n*.win text eol=crlf\n*.id ident\n*.rot filter=rot\n")
		gitIn(c.t, root, "config", "filter.rot.clean", "tr a-zA-Z n-za-mN-ZA-M")
		gitIn(c.t, root, "config", "filter.rot.smudge", "tr a-zA-Z n-za-mN-ZA-M")
	case "asked": // coven reads nothing in process
		gitIn(c.t, root, "config", "core.repositoryFormatVersion", "1")
		gitIn(c.t, root, "config", "extensions.worktreeConfig", "true")
	}
	for _, name := range []string{"file0.txt", "file1.txt", "dir/b", "dir/deep/c.txt", "a.win", "a.id", "a.rot", ".beads/issues.jsonl", "copy.log"} {
		write(c.t, filepath.Join(root, name), "one\ntwo\n"+name+"\n")
	}
	write(c.t, filepath.Join(root, ".gitignore"), "*.log\nbuild/\n")
	gitIn(c.t, root, "add", "-A")
	gitIn(c.t, root, "commit", "-qm", "first")
	c.repo = value[*repo.Repo](c.t)(repo.Open(c.t.Context(), root))
}

// makeWork creates the worktree and fills it with the work of an agent, and of coven and git in between.
func (c *doomedCase) makeWork() {
	c.t.Helper()
	ctx := c.t.Context()
	c.w = add(c.t, c.repo, lostTask)
	c.edit(4)
	if c.chance(50) {
		c.commit()
		c.edit(3)
	}
	value[snapshot.Snapshot](c.t)(snapshot.Take(ctx, c.w, lostSession, ""))
	if c.op.lands {
		c.land()
	}
	isolated := c.op.ends || c.chance(50)
	if isolated {
		must(c.t, isolation.Begin(ctx, c.w))
		c.log("the worktree is isolated")
	}
	c.edit(4)
	for range c.random.IntN(3) {
		c.act()
		c.edit(2)
	}
	if isolated && !c.op.ends && c.chance(60) {
		must(c.t, isolation.TakeCommits(ctx, c.w))
		c.log("the commits are collected")
	}
	if c.chance(30) {
		value[snapshot.Snapshot](c.t)(snapshot.Take(ctx, c.w, lostSession, ""))
		c.log("coven takes a snapshot")
		c.edit(2)
	}
	if c.chance(8) {
		write(c.t, filepath.Join(c.w.Path, "build/big"), strings.Repeat("0123456789", 1<<20+1))
		c.log("a large ignored file")
	}
}

func (c *doomedCase) commit() {
	c.t.Helper()
	value[commit.Commit](c.t)(commit.Create(c.t.Context(), c.w, commit.Request{Message: "work", TargetTip: targetOf(c.repo, c.t).Tip}))
	c.log("coven commits")
}

// land lands the work so far.
func (c *doomedCase) land() {
	c.t.Helper()
	write(c.t, filepath.Join(c.w.Path, "landed.txt"), "landed\n")
	c.commit()
	candidate := value[integrate.Landing](c.t)(integrate.Merge(c.t.Context(), c.w, targetOf(c.repo, c.t)))
	value[integrate.Landing](c.t)(landTask(c.t, c.w, candidate, land.Squash))
	write(c.t, filepath.Join(c.dir, "lost", "landed"), candidate.Tip)
	c.log("the work has landed")
}

// edit randomly writes, replaces and removes files.
func (c *doomedCase) edit(most int) {
	c.t.Helper()
	names := []string{
		"a", "a/b", "dir/b", "dir/deep/c.txt", "file0.txt", "file1.txt", "line\nfeed", "\xff\xfe", " x ", "-dash", "new", "😀/é",
		"x.log", "copy.log", "build/out", "build/deep/out", "a.win", "a.id", "a.rot", "new.rot", ".beads/issues.jsonl", ".hidden/x",
		".coven/config.yaml", ".gitmodules2", ":(top)x", "nested/file",
	}
	texts := []string{"", "x", "one\r\ntwo\n", "one\r\ntwo\r\n", "\x00\x01", "$Id: mine $\n", "long " + strings.Repeat("text\n", 200)}
	for range c.random.IntN(most + 1) {
		short := pick(c, names...)
		name := filepath.Join(c.w.Path, short)
		for dir := filepath.Dir(name); dir != c.w.Path; dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
				must(c.t, os.Remove(dir))
			}
		}
		must(c.t, errors.Join(os.RemoveAll(name), os.MkdirAll(filepath.Dir(name), 0o755)))
		text := pick(c, texts...) + pick(c, "", fmt.Sprint(c.random.IntN(1000)))
		switch kind := c.random.IntN(7); kind {
		case 0:
			c.log("removed %q", short)
		case 1:
			must(c.t, os.Symlink(pick(c, "file0.txt", "nowhere", "dir", "\xff"), name))
			c.log("link %q", short)
		case 2:
			must(c.t, os.Mkdir(name, 0o755))
			c.log("empty directory %q", short)
		case 3:
			must(c.t, os.WriteFile(name, []byte(text), 0o755))
			c.log("executable %q", short)
		default:
			must(c.t, os.WriteFile(name, []byte(text), 0o644))
			c.log("file %q", short)
		}
	}
}

// try runs git in the worktree or below, as the agent does. It may fail.
func (c *doomedCase) try(dir string, args ...string) {
	c.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "protocol.file.allow=always", "-c", "core.editor=true"}, args...)...)
	cmd.Dir = filepath.Join(c.w.Path, dir)
	cmd.Env = append(os.Environ(), "GIT_TEMPLATE_DIR=") // no sample hooks
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.log("%s$ git %s: %s", dir, strings.Join(args, " "), content.FirstLine(string(out)))
		return
	}
	c.log("%s$ git %s", dir, strings.Join(args, " "))
}

// act runs a random git operation of an agent.
func (c *doomedCase) act() {
	c.t.Helper()
	n := fmt.Sprint(c.random.IntN(1000))
	put := func(name, text string) {
		must(c.t, os.RemoveAll(filepath.Join(c.w.Path, name)))
		write(c.t, filepath.Join(c.w.Path, name), text)
	}
	conflict := func() { // branches with different versions of file1.txt
		put("file1.txt", "base "+n+"\n")
		c.try("", "add", "-A")
		c.try("", "commit", "-qm", "base")
		c.try("", "branch", "-f", "other")
		put("file1.txt", "mine "+n+"\n")
		c.try("", "commit", "-qam", "mine")
		c.try("", "checkout", "-q", "other")
		put("file1.txt", "theirs "+n+"\n")
		c.try("", "commit", "-qam", "theirs")
		c.try("", "checkout", "-q", c.w.Branch)
	}
	switch what := c.random.IntN(10); what {
	case 0:
		put("file0.txt", "staged "+n+"\n")
		put("only-staged", "staged only "+n+"\n")
		c.try("", "add", "file0.txt", "only-staged")
		put("file0.txt", "not staged "+n+"\n")
		must(c.t, os.Remove(filepath.Join(c.w.Path, "only-staged")))
	case 1:
		put("stashed", "stashed "+n+"\n")
		c.try("", "stash", "push", "-q", "-u")
	case 2:
		c.try("", "checkout", "-q", "--detach")
		put("detached", "detached "+n+"\n")
		c.try("", "add", "-A")
		c.try("", "commit", "-qm", "off the branch")
	case 3:
		conflict()
		c.try("", "merge", "other")
	case 4:
		conflict()
		c.try("", "rebase", "other")
	case 5:
		conflict()
		c.try("", "cherry-pick", "other")
	case 6, 7:
		inner := pick(c, "nested", "dir/inner", "build/inner")
		if info, err := os.Lstat(filepath.Join(c.w.Path, filepath.Dir(inner))); err == nil && !info.IsDir() {
			return
		}
		must(c.t, os.MkdirAll(filepath.Join(c.w.Path, inner), 0o755))
		c.try("", "init", "-q", inner)
		put(inner+"/a", "inner "+n+"\n")
		c.try(inner, "add", "-A")
		c.try(inner, "commit", "-qm", "inner")
		put(inner+"/a", "inner, not committed "+n+"\n")
		if what == 7 {
			c.try("", "add", inner)
		}
	case 8:
		c.submodule(n)
	default:
		c.try("", "checkout", "-q", "-b", "own"+n)
		put("on-own", "on a branch of its own "+n+"\n")
		c.try("", "add", "-A")
		c.try("", "commit", "-qm", "own")
		if c.chance(50) {
			c.try("", "checkout", "-q", c.w.Branch)
		}
	}
}

// submodule adds a submodule with a commit that is not in its origin.
func (c *doomedCase) submodule(n string) {
	c.t.Helper()
	origin := filepath.Join(c.dir, "origin")
	if !exists(origin) {
		args := []string{"init", "-q", "--template=", origin}
		if c.repo.Format == "sha256" {
			args = append(args, "--object-format=sha256")
		}
		gitIn(c.t, c.dir, args...)
		gitIn(c.t, origin, "commit", "-q", "--allow-empty", "-m", "first")
	}
	c.try("", "submodule", "--quiet", "add", "-f", origin, "sub")
	if !exists(filepath.Join(c.w.Path, "sub", ".git")) {
		return
	}
	write(c.t, filepath.Join(c.w.Path, "sub", "a"), "in the submodule "+n+"\n")
	c.try("sub", "add", "-A")
	c.try("sub", "commit", "-qm", "in the submodule")
	write(c.t, filepath.Join(c.w.Path, "sub", "b"), "not committed "+n+"\n")
	c.try("sub", "add", "b")
}
