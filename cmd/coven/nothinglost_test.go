package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/exit"
)

// TestNothingLostByCommands is TestNothingLost of package worktree for commands that people type instead of
// functions. A task waits, has failed or was killed, a person has edited its worktree, and a command
// removes or overwrites it, while its git fails or is killed together with coven. All files must be in the
// worktree, in a rescue that coven rescue restore writes, or in a snapshot, both after the command and
// after the same command without a fault.
//
// LOST_COMMANDS is the number of cases, LOST_SEED runs a single one.
func TestNothingLostByCommands(t *testing.T) {
	if racing {
		t.Skip("nothing runs at the same time")
	}
	if seed, err := strconv.ParseUint(os.Getenv("LOST_SEED"), 10, 64); err == nil {
		runLossCase(t, seed)
		return
	}
	seeds := make(chan uint64, number("LOST_COMMANDS", 2*len(lossCommands())))
	for seed := range uint64(cap(seeds)) {
		seeds <- seed
	}
	close(seeds)
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runLossCase(t, seed) })
			}
		})
	}
}

// A lossCommand is a command that removes or overwrites files of a worktree.
type lossCommand struct {
	args    []string // TASK is the task
	state   string   // of the task before
	reverts bool     // coven revert undoes it
}

func lossCommands() []lossCommand {
	return []lossCommand{
		{args: []string{"reject", "TASK", "--reason", "no"}, state: "waiting"},
		{args: []string{"cancel", "TASK"}, state: "waiting"},
		{args: []string{"revert", "TASK", "1"}, state: "waiting", reverts: true},
		{args: []string{"revert", "TASK", "1", "--path", "dir"}, state: "waiting", reverts: true},
		{args: []string{"retry", "TASK", "--from", "make"}, state: "failed"},
		{args: []string{"retry", "TASK"}, state: "failed"},
		{args: []string{"worktree", "remove", "TASK"}, state: "failed"},
		{args: []string{"run", "TASK"}, state: "failed"},
		{args: []string{"resume", "TASK"}, state: "killed"},
		{args: []string{"reject", "TASK", "--reason", "no"}, state: "killed"},
		{args: []string{"doctor", "--fix"}, state: "forgotten"},
		{args: []string{"run", "TASK"}, state: "deleted"},
	}
}

const lossGrimoire = `name: race
steps:
  - name: make
    type: script
    command: mkdir -p dir && echo made > dir/made && echo made > made && cp made build.log
  - {name: check, type: script, command: "! test -e $GATE/fail", on_fail: fail}
  - {name: land, type: merge, require_review: true}
`

// lossCase is one case.
type lossCase struct {
	*arena
	random *rand.Rand
	id     string
	w      string // the worktree
	script []string
}

func runLossCase(t *testing.T, seed uint64) {
	t.Helper()
	c := &lossCase{arena: newArena(t), random: rand.New(rand.NewPCG(seed, 17))}
	defer func() {
		if t.Failed() {
			t.Logf("LOST_SEED=%d\n%s", seed, strings.Join(c.script, "\n"))
		}
	}()
	all := lossCommands()
	cmd := all[seed%uint64(len(all))]
	c.reach(cmd.state)
	before := c.files()
	if len(before) == 0 && cmd.state != "deleted" {
		t.Fatal("there is no worktree")
	}
	snapshots := c.snapshots()
	faults := []string{"fails", "answer lost", "killed", "killed after", "coven killed", "coven killed on", "disk full", "disk nearly full", "objects gone"}
	fault, at := faults[c.random.IntN(len(faults))], 1+c.random.IntN(1+c.random.IntN(40))
	c.destroy(cmd, fault, at)
	c.mustHave(before, "after the fault")
	code := c.destroy(cmd, "", 1<<30)
	c.mustHave(before, "after it was done again")
	if code != exit.OK && code != exit.Failed && code != exit.Person {
		t.Errorf("done again, it ends with exit code %d", code)
	}
	if cmd.reverts && !maps.Equal(c.files(), before) { // otherwise there was nothing to revert, such as an empty directory
		c.revertsTo(before, snapshots)
	}
}

// reach brings the task into a state and edits its worktree.
func (c *lossCase) reach(state string) {
	c.t.Helper()
	c.id = c.add("Work")
	c.w = filepath.Join(c.root+".coven", c.id)
	check := func(err error) {
		c.t.Helper()
		if err != nil {
			c.t.Fatal(err)
		}
	}
	check(os.WriteFile(filepath.Join(c.root, ".coven", "grimoires", "race.yaml"), []byte(lossGrimoire), 0o644))
	var env []string
	switch state {
	case "failed", "forgotten":
		check(os.WriteFile(filepath.Join(c.gate, "fail"), nil, 0o644))
	case "killed":
		env = append(env, "COVEN_CRASH_POINT=script.ended")
	}
	c.covenEnds(env, "run", c.id)
	c.edit()
	check(os.RemoveAll(filepath.Join(c.gate, "fail")))
	switch state {
	case "forgotten":
		check(os.RemoveAll(filepath.Join(c.root, ".coven", "sessions")))
		for ref := range strings.FieldsSeq(c.git("for-each-ref", "--format=%(refname)", "refs/coven/claims")) {
			c.git("update-ref", "-d", ref)
		}
	case "deleted":
		check(os.RemoveAll(c.w))
	}
}

// covenEnds runs a coven to its end.
func (c *lossCase) covenEnds(env []string, args ...string) (string, int) {
	c.t.Helper()
	r := c.coven(env, args...)
	r.start(c.t)
	out, code := r.end()
	c.script = append(c.script, fmt.Sprintf("$ coven %s: %d\n%s", strings.Join(args, " "), code, out))
	return out, code
}

// edit changes the worktree as a person or an agent might.
func (c *lossCase) edit() {
	c.t.Helper()
	names := []string{"made", "dir/made", "dir/new", "new", "line\nfeed", "\xff", "x.log", "build.log", ".beads/issues.jsonl", ".hidden/x"}
	for range 1 + c.random.IntN(5) {
		name := filepath.Join(c.w, names[c.random.IntN(len(names))])
		err := errors.Join(os.RemoveAll(name), os.MkdirAll(filepath.Dir(name), 0o755))
		text := fmt.Appendf(nil, "edited\r\n%d\n", c.random.IntN(1000))
		switch c.random.IntN(5) {
		case 0:
		case 1:
			err = errors.Join(err, os.Symlink("made", name))
		case 2:
			err = errors.Join(err, os.WriteFile(name, text, 0o755))
		default:
			err = errors.Join(err, os.WriteFile(name, text, 0o644))
		}
		if err != nil {
			c.t.Fatal(err)
		}
		c.script = append(c.script, fmt.Sprintf("edited %q", name))
	}
}

// destroy runs a command with a fault and returns its exit code.
func (c *lossCase) destroy(cmd lossCommand, fault string, at int) int {
	c.t.Helper()
	state := filepath.Join(filepath.Dir(c.root), "lost")
	raw, err := os.ReadFile(filepath.Join("..", "..", "worktree", "testdata", "failinggit"))
	real, pathErr := exec.LookPath("git")
	program := filepath.Join(state, "bin", "git")
	err = errors.Join(err, pathErr, os.MkdirAll(filepath.Dir(program), 0o755),
		os.WriteFile(program, raw, 0o755), os.WriteFile(filepath.Join(state, "calls"), []byte("0\n"), 0o644))
	if err != nil {
		c.t.Fatal(err)
	}
	objects := filepath.Join(c.root, ".git", "objects")
	env := slices.Clone(c.env)
	c.env = append(c.env, "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"),
		"LOST="+state, "LOST_GIT="+real, "LOST_AT="+strconv.Itoa(at), "LOST_FAULT="+fault, "LOST_OBJECTS="+objects)
	args := slices.Clone(cmd.args)
	if i := slices.Index(args, "TASK"); i >= 0 {
		args[i] = c.id
	}
	c.script = append(c.script, fmt.Sprintf("git process %d: %s", at, fault))
	_, code := c.covenEnds(nil, args...)
	c.env = env
	if _, err := os.Lstat(filepath.Join(state, "objects")); err == nil {
		if err := errors.Join(os.RemoveAll(objects), os.Rename(filepath.Join(state, "objects"), objects)); err != nil {
			c.t.Fatal(err)
		}
	}
	return code
}

// files returns the files of the worktree: mode and content.
func (c *lossCase) files() map[string]string { return c.filesIn(c.w) }

func (c *lossCase) filesIn(top string) map[string]string {
	c.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(top, name)
		if err != nil || relative == ".git" {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(name)
			files[relative] = "120000 " + to
			return err
		}
		mode := "100644 "
		if info.Mode()&0o100 != 0 {
			mode = "100755 "
		}
		raw, err := os.ReadFile(name)
		files[relative] = mode + string(raw)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return files
}

// mustHave fails if a file is neither in its place nor stored.
func (c *lossCase) mustHave(before map[string]string, when string) {
	c.t.Helper()
	stores := append(c.snapshots(), c.files(), c.filesIn(c.root)) // ignored files that the checkout has are not stored
	out, _ := c.covenEnds(nil, "rescue", "list", "--json")
	var rescues []struct{ Ref, Kind string }
	if err := json.Unmarshal([]byte(out), &rescues); err != nil {
		c.t.Fatal(err, out)
	}
	for _, r := range rescues {
		if r.Kind != "worktree" {
			continue
		}
		dir := c.t.TempDir()
		if out, code := c.covenEnds(nil, "rescue", "restore", r.Ref, "--to", dir); code != exit.OK {
			c.t.Fatal(out)
		}
		stores = append(stores, c.filesIn(dir))
	}
	for name, content := range before {
		if !slices.ContainsFunc(stores, func(s map[string]string) bool { return s[name] == content }) {
			c.t.Errorf("lost %s: %q with %q", when, name, content)
		}
	}
}

// snapshots returns the files of all snapshots, oldest first.
func (c *lossCase) snapshots() (all []map[string]string) {
	c.t.Helper()
	for ref := range strings.FieldsSeq(c.git("for-each-ref", "--format=%(refname)", "refs/coven/snapshots")) {
		for commit := range strings.FieldsSeq(c.git("rev-list", "--reverse", "--first-parent", ref)) {
			files := map[string]string{}
			for field := range strings.SplitSeq(strings.TrimSuffix(c.git("ls-tree", "-r", "-z", commit), "\x00"), "\x00") {
				meta, name, found := strings.Cut(field, "\t")
				if words := strings.Fields(meta); found {
					files[name] = words[0] + " " + c.blob(words[2])
				}
			}
			all = append(all, files)
		}
	}
	return all
}

func (c *lossCase) blob(oid string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", "cat-file", "blob", oid)
	cmd.Dir = c.root
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(out)
}

// revertsTo fails unless coven revert restores exactly the files of before, from a new snapshot or from the
// last one if that had them.
func (c *lossCase) revertsTo(before map[string]string, old []map[string]string) {
	c.t.Helper()
	for n := len(c.snapshots()); n >= max(1, len(old)); n-- {
		c.covenEnds(nil, "revert", c.id, strconv.Itoa(n))
		if maps.Equal(c.files(), before) {
			return
		}
	}
	c.t.Errorf("no snapshot restores the files before")
}
