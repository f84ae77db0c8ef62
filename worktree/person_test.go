package worktree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coven-run/coven/worktree/claim"
	"github.com/coven-run/coven/worktree/commit"
	"github.com/coven-run/coven/worktree/integrate"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/land"
)

// A person works in a checkout of the repository with git, in a random order, while tasks land. A change that has
// landed is in main at the end, and so is each commit that the person made there, and git status shows only files of
// the person. In every third case, files have a slow filter.
//
// The person does not stash on main: git stash reads the index before it locks it, and overwrites what another
// process, such as another git, has written meanwhile.
func TestPersonWhileTasksLand(t *testing.T) {
	oneAtATime(t)
	for seed := range seeds(1, 300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { (&personCase{seed: seed}).run(t) })
	}
}

type personCase struct {
	seed   uint64
	random *rand.Rand
	repo   *repo.Repo
	script []string // the person's commands and their results
	own    int      // version of own.txt
	made   []string // files that the person has committed on main, one for each commit
}

const personTasks = 4

func (c *personCase) run(t *testing.T) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(c.script, "\n") + "\n" + gitIn(t, c.repo.Root, "log", "--format=%h %cd %s", "--date=format:%H:%M:%S", "--name-status", "-m", "main") + "\n" + gitIn(t, c.repo.Root, "reflog", "HEAD"))
		}
	}()
	c.random = rand.New(rand.NewPCG(c.seed, 34))
	c.repo = c.repository(t)
	refused := c.meet(t)
	// The next landing finds a checkout that git had not finished.
	refused["last"] = landOne(t.Context(), c.repo, "last", "file9.txt", fileJournal{filepath.Join(t.TempDir(), "intent")})
	c.check(t, refused)
}

// meet lets tasks land while the person works. It returns the errors of the tasks.
func (c *personCase) meet(t *testing.T) map[string]error {
	t.Helper()
	failed := map[string]error{}
	var mu sync.Mutex
	var tasks sync.WaitGroup
	over, end := context.WithCancel(t.Context())
	for i := range personTasks {
		task, journal := fmt.Sprint("t", i), fileJournal{filepath.Join(t.TempDir(), "intent")}
		tasks.Go(func() {
			err := landOne(t.Context(), c.repo, task, fmt.Sprintf("file%d.txt", i), journal)
			mu.Lock()
			defer mu.Unlock()
			failed[task] = err
		})
	}
	go func() { tasks.Wait(); end() }()
	for over.Err() == nil {
		c.act()
	}
	return failed
}

// landOne does a task's work and lands it. It tries again while the person's checkout is in the way.
func landOne(ctx context.Context, r *repo.Repo, task, edited string, journal land.Journal) error {
	if _, err := claim.Acquire(ctx, r, claim.Claim{Task: task, Holder: "h", Session: task}, ""); err != nil {
		return err
	}
	w, err := Add(ctx, r, AddRequest{TaskID: task, Base: "main"})
	if err != nil {
		return err
	}
	for _, name := range []string{edited, "by-" + task + ".txt"} {
		if err := os.WriteFile(filepath.Join(w.Path, name), []byte("by "+task+"\n"), 0o644); err != nil {
			return err
		}
	}
	if _, err := commit.Create(ctx, w, commit.Request{Message: "work of " + task, TargetTip: "main"}); err != nil {
		return err
	}
	for range 20 {
		err = integrateAndLand(ctx, w, "", journal)
		_, blocked := errors.AsType[*land.CheckoutError](err)
		if _, busy := errors.AsType[*BusyError](err); !blocked && !busy {
			break
		}
	}
	return err
}

func (c *personCase) repository(t *testing.T) *repo.Repo {
	t.Helper()
	r := sample(t)
	write(t, filepath.Join(r.Root, "own.txt"), "0\n")
	if c.seed%3 == 2 {
		gitIn(t, r.Root, "config", "filter.slow.smudge", "sleep 0.03; cat")
		gitIn(t, r.Root, "config", "filter.slow.clean", "cat")
		write(t, filepath.Join(r.Root, ".gitattributes"), "file*.txt filter=slow\n")
	}
	gitIn(t, r.Root, "add", ".")
	gitIn(t, r.Root, "commit", "-qm", "own")
	gitIn(t, r.Root, "branch", "topic", "main~1")
	return value[*repo.Repo](t)(repo.Open(t.Context(), r.Root))
}

// git runs a command of the person and reports whether it succeeded. Commands fail while a landing has locked
// the index, and where they are not possible.
func (c *personCase) git(args ...string) bool {
	cmd := exec.Command("git", args...)
	cmd.Dir = c.repo.Root
	start := time.Now()
	out, err := cmd.CombinedOutput()
	first, _, _ := strings.Cut(string(out), "\n")
	c.script = append(c.script, fmt.Sprintf("%s-%s git %s: %v %s", start.Format("05.0000"), time.Now().Format("05.0000"), strings.Join(args, " "), err, first))
	return err == nil
}

// on returns the branch that is checked out.
func (c *personCase) on() string {
	head, err := c.repo.HeadOf(context.Background(), c.repo.GitDir)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(head, "refs/heads/")
}

// act is one thing that the person does.
func (c *personCase) act() {
	root := c.repo.Root
	switch c.random.IntN(14) {
	case 0, 1, 2:
		c.git("checkout", "-q", "main")
	case 3:
		c.git("switch", "-q", "topic")
	case 4:
		c.git("checkout", "-q", "--detach")
	case 5, 6:
		c.commit(root)
	case 7:
		c.git("commit", "-q", "--amend", "-m", "amended")
	case 8:
		if c.on() == "topic" {
			c.git("reset", "-q", "--keep", "HEAD~1")
		}
	case 9:
		if c.on() != "main" && c.git("stash", "push", "-q") && !c.git("stash", "pop", "-q") {
			c.git("stash", "pop", "-q")
		}
	case 10:
		if c.on() == "topic" && !c.git("rebase", "-q", "main") {
			c.git("rebase", "--abort")
		}
	case 11:
		c.git("clean", "-fdq", "-e", ".coven")
	case 12:
		c.git("gc", "-q")
	case 13:
		c.own++
		if os.WriteFile(filepath.Join(root, "own.txt"), fmt.Appendf(nil, "%d\n", c.own), 0o644) == nil {
			c.script = append(c.script, fmt.Sprint("own.txt: ", c.own))
		}
	}
}

// commit commits a new file, and all changes of tracked files.
func (c *personCase) commit(root string) {
	name := fmt.Sprintf("person%d.txt", len(c.script))
	if os.WriteFile(filepath.Join(root, name), []byte("person\n"), 0o644) != nil {
		return
	}
	branch := c.on()
	added := c.git("add", name)
	if added && c.git("commit", "-qam", name) && branch == "main" && c.on() == "main" {
		c.made = append(c.made, name)
	}
}

func (c *personCase) check(t *testing.T, failed map[string]error) {
	t.Helper()
	in := map[string]bool{}
	for _, name := range strings.Fields(gitIn(t, c.repo.Root, "ls-tree", "-r", "--name-only", "main")) {
		in[name] = true
	}
	for task, err := range failed {
		_, blocked := errors.AsType[*land.CheckoutError](err)
		if _, conflict := errors.AsType[*integrate.ConflictError](err); err != nil && !blocked && !conflict {
			t.Errorf("%s: %v", task, err)
		}
		if landed := err == nil; in["by-"+task+".txt"] != landed {
			t.Errorf("%s landed: %v, its file is in main: %v", task, landed, !landed)
		}
	}
	for _, name := range c.made {
		if !in[name] {
			t.Errorf("the person's commit of %s is not in main", name)
		}
	}
	for line := range strings.Lines(gitIn(t, c.repo.Root, "status", "--porcelain")) {
		if name := strings.TrimSpace(line[3:]); name != "own.txt" && name != ".coven/" && !strings.HasPrefix(name, "person") {
			t.Errorf("git status shows %s", line)
		}
	}
	noLocks(t, c.repo.GitDir)
}
