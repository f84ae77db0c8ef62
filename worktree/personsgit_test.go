package worktree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coven-run/coven/worktree/internal/names"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/isolation"
)

// A planting is an isolated worktree, in which an agent plants programs that leave a mark if they run.
type planting struct {
	t          *testing.T
	r          *repo.Repo
	w          *repo.Worktree
	mark, trap string
}

// newPlanting creates a worktree with the submodule lib, in which an agent works. If closed, git outside the sandbox
// refuses it.
func newPlanting(t *testing.T, closed bool) *planting {
	t.Helper()
	r, _ := superproject(t)
	gitIn(t, r.Root, "config", "extensions.worktreeConfig", "true")
	gitIn(t, r.Root, "config", "protocol.file.allow", "always")
	r = value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
	r.Submodules = true
	w := add(t, r, "T")
	if !exists(filepath.Join(w.Path, "lib", "lib.c")) {
		t.Fatal("there is no submodule")
	}
	w.OwnGitFile = closed
	must(t, isolation.Begin(t.Context(), w))
	dir := value[string](t)(filepath.EvalSymlinks(t.TempDir()))
	p := &planting{t: t, r: r, w: w, mark: filepath.Join(dir, "mark"), trap: filepath.Join(dir, "trap")}
	hook(t, p.trap, fmt.Sprintf("echo \"$0 $@\" >>'%s'\n", p.mark))
	return p
}

// git runs git as the agent does in the sandbox, where the worktree's .git file names its git directory.
func (p *planting) git(args ...string) {
	p.t.Helper()
	gitIn(p.t, p.w.Path, append([]string{"--git-dir", p.w.Admin, "--work-tree", "."}, args...)...)
}

func (p *planting) module(elem ...string) string {
	return filepath.Join(append([]string{p.w.Admin, "modules", "lib"}, elem...)...)
}

// configure adds settings that name the trap to a configuration file.
func (p *planting) configure(file string) {
	p.t.Helper()
	for _, key := range []string{
		"core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external", "filter.evil.clean", "filter.evil.smudge",
		"gpg.program", "alias.st", "alias.co", "sequence.editor", "uploadpack.packObjectsHook", "credential.helper",
	} {
		gitIn(p.t, p.w.Repo.Root, "config", "--file", file, key, p.trap)
	}
	gitIn(p.t, p.w.Repo.Root, "config", "--file", file, "core.hooksPath", p.hooks(filepath.Dir(p.trap)))
}

// hooks creates all hooks in a directory, which it returns.
func (p *planting) hooks(dir string) string {
	p.t.Helper()
	for _, name := range hookNames() {
		hook(p.t, filepath.Join(dir, name), fmt.Sprintf("echo hook %s >>'%s'\n", name, p.mark))
	}
	return dir
}

// repository creates a repository with traps in the worktree and returns its git directory.
func (p *planting) repository(name string) string {
	p.t.Helper()
	top := filepath.Join(p.w.Path, name)
	gitIn(p.t, p.w.Repo.Root, "init", "-q", top)
	write(p.t, filepath.Join(top, "f"), "f")
	gitIn(p.t, top, "add", "-A")
	gitIn(p.t, top, "commit", "-qm", "nested")
	write(p.t, filepath.Join(top, "f"), "edited")
	p.configure(filepath.Join(top, ".git", "config"))
	return filepath.Join(top, ".git")
}

// link stages the repository at a path as a submodule.
func (p *planting) link(at string) {
	p.t.Helper()
	p.git("update-index", "--add", "--cacheinfo", "160000,"+gitIn(p.t, filepath.Join(p.w.Path, at), "-c", "core.fsmonitor=false", "rev-parse", "HEAD")+","+at)
}

// plantings are the ways in which an agent could make git run its program.
var plantings = map[string]func(p *planting){
	"private configuration": func(p *planting) { p.configure(isolation.PrivatePath(p.w, "config")) },
	"included configuration": func(p *planting) {
		p.configure(filepath.Join(p.w.Path, "settings"))
		gitIn(p.t, p.r.Root, "config", "--file", isolation.PrivatePath(p.w, "config"), "include.path", filepath.Join(p.w.Path, "settings"))
	},
	"filter": func(p *planting) {
		gitIn(p.t, p.r.Root, "config", "--file", isolation.PrivatePath(p.w, "config"), "filter.evil.clean", p.trap)
		write(p.t, filepath.Join(p.w.Path, ".gitattributes"), "* filter=evil\n")
		write(p.t, filepath.Join(p.w.Path, "file0.txt"), "edited\n")
	},
	"private hooks":             func(p *planting) { p.hooks(isolation.PrivatePath(p.w, "hooks")) },
	"worktree's configuration":  func(p *planting) { p.configure(filepath.Join(p.w.Admin, "config.worktree")) },
	"submodule's configuration": func(p *planting) { p.configure(p.module("config")) },
	"submodule's hooks":         func(p *planting) { p.hooks(p.module("hooks")) },
	"submodule's worktree configuration": func(p *planting) {
		gitIn(p.t, p.r.Root, "config", "--file", p.module("config"), "extensions.worktreeConfig", "true")
		p.configure(p.module("config.worktree"))
	},
	"submodule's common directory": func(p *planting) {
		write(p.t, p.module("commondir"), p.repository("nested")+"\n")
	},
	"submodule's .git file": func(p *planting) {
		write(p.t, filepath.Join(p.w.Path, "lib", ".git"), "gitdir: "+p.repository("nested")+"\n")
	},
	"submodule's .git directory": func(p *planting) {
		must(p.t, os.Remove(filepath.Join(p.w.Path, "lib", ".git")))
		must(p.t, os.Rename(p.repository("nested"), filepath.Join(p.w.Path, "lib", ".git")))
	},
	"submodule's .git link": func(p *planting) {
		must(p.t, os.Remove(filepath.Join(p.w.Path, "lib", ".git")))
		must(p.t, os.Symlink(p.repository("nested"), filepath.Join(p.w.Path, "lib", ".git")))
	},
	"submodule inside": func(p *planting) {
		gitdir := p.repository("lib/inner")
		gitIn(p.t, filepath.Join(p.w.Path, "lib"), "update-index", "--add", "--cacheinfo", "160000,"+gitIn(p.t, filepath.Dir(gitdir), "-c", "core.fsmonitor=false", "rev-parse", "HEAD")+",inner")
	},
	"staged repository": func(p *planting) {
		p.repository("nested")
		p.link("nested")
	},
	"staged repository, split index": func(p *planting) {
		p.repository("nested")
		p.link("nested")
		p.git("update-index", "--split-index")
	},
	"committed repository": func(p *planting) {
		p.repository("nested")
		p.link("nested")
		p.git("-c", "core.fsmonitor=false", "commit", "-qm", "nested")
		p.git("rm", "-q", "--cached", "nested")
	},
	"common directory": func(p *planting) {
		write(p.t, filepath.Join(p.w.Admin, "commondir"), p.repository("nested")+"\n")
	},
	"HEAD a link": func(p *planting) {
		p.configure(isolation.PrivatePath(p.w, "config"))
		must(p.t, os.Remove(filepath.Join(p.w.Admin, "HEAD")))
		must(p.t, os.Symlink("refs/heads/main", filepath.Join(p.w.Admin, "HEAD")))
	},
	"the name of the closed directory": func(p *planting) {
		must(p.t, os.Rename(p.repository("nested"), filepath.Join(p.w.Admin, names.Closed)))
		p.configure(isolation.PrivatePath(p.w, "config"))
	},
	"unfinished rebase": func(p *planting) {
		write(p.t, filepath.Join(p.w.Path, "file0.txt"), "edited\n")
		p.git("commit", "-qam", "edited")
		cmd := exec.Command("git", "--git-dir", p.w.Admin, "--work-tree", ".", "rebase", "-q", "-x", "false", "-x", p.trap, "HEAD~1")
		cmd.Dir = p.w.Path
		if err := cmd.Run(); err == nil {
			p.t.Fatal("the rebase has ended")
		}
	},
}

// personsCommands are the commands of a person in the worktree.
var personsCommands = []string{
	"status", "diff HEAD", "log -p -1", "submodule status", "submodule update --init", "submodule update --recursive --force", "rebase --continue", "reset -q", "status --short",
	"commit --no-edit -qam person", "merge --no-edit main", "stash -q", "stash pop -q", "reset -q", "status", "reset -q --hard", "st", "worktree list",
}

// inWorktree runs the person's commands in the worktree, and returns the output of each.
func (p *planting) inWorktree() map[string]string {
	printed := map[string]string{}
	for _, line := range personsCommands {
		cmd := exec.Command("git", strings.Fields(line)...)
		cmd.Dir = p.w.Path
		out, _ := cmd.CombinedOutput() // it may fail
		printed[line] = string(out)
	}
	return printed
}

// inMain runs the person's commands in the main checkout.
func (p *planting) inMain() {
	p.t.Helper()
	for _, line := range []string{"status", "worktree list", "worktree prune", "fetch --all", "branch -vv", "gc -q", "fsck"} {
		cmd := exec.Command("git", strings.Fields(line)...)
		cmd.Dir = p.r.Root
		_ = cmd.Run() // gc fails while a HEAD in the worktree is detached at a new commit
	}
	if list := gitIn(p.t, p.r.Root, "worktree", "list", "--porcelain"); strings.Contains(list, "prunable") {
		p.t.Errorf("git would prune a worktree:\n%s", list)
	}
}

// check fails the test if a planted program has run.
func (p *planting) check(moment string) {
	p.t.Helper()
	if exists(p.mark) {
		p.t.Errorf("%s, the person's git ran the agent's program: %s", moment, read(p.t, p.mark))
		must(p.t, os.Remove(p.mark))
	}
}

// The git of a person runs no program that an agent has planted: while the agent works, when coven was killed then,
// after the step, and after the task.
func TestPersonsGitRunsNothingOfTheAgent(t *testing.T) {
	oneAtATime(t)
	for name, plant := range plantings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := newPlanting(t, false)
			plant(open)
			if _ = open.inWorktree(); !exists(open.mark) {
				t.Fatal("the planted program does not run in an open worktree")
			}

			p := newPlanting(t, true)
			plant(p)
			for _, moment := range []string{"while the agent works", "after coven was killed"} {
				for line, printed := range p.inWorktree() {
					if !strings.Contains(printed, names.Closed) && line != "st" { // git reads no aliases
						t.Errorf("%s, git %s printed: %s", moment, line, printed)
					}
				}
				p.inMain()
				p.check(moment)
				p.r = value[*repo.Repo](t)(repo.Open(t.Context(), p.w.Path))
				p.w = value[*repo.Worktree](t)(p.r.Find(t.Context(), "T"))
			}
			must(t, isolation.TakeCommits(t.Context(), p.w))
			printed := p.inWorktree()
			for _, line := range []string{"status", "log -p -1", "merge --no-edit main", "worktree list"} {
				if strings.Contains(printed[line], "fatal") {
					t.Errorf("after the step, git %s printed: %s", line, printed[line])
				}
			}
			p.inMain()
			p.check("after the step")
			must(t, isolation.Begin(t.Context(), p.w))
			must(t, isolation.TakeCommits(t.Context(), p.w))
			_ = p.inWorktree()
			p.check("after a second step")
			gitIn(t, p.w.Path, "update-index", "--no-split-index")
			value[string](t)(Remove(t.Context(), p.w, RemoveRequest{}))
			p.inMain()
			p.check("after the task")
		})
	}
}
