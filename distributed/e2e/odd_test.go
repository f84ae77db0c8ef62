package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLongNames runs a task that needs a label of 300 characters, each of which has nine in the names of the server, on a machine with such a name.
func TestLongNames(t *testing.T) {
	label, all := strings.Repeat("größe ", 50), files()
	all[".beads/issues.jsonl"] = `{"_type":"issue","id":"t-1","title":"Add it","status":"open","issue_type":"task","labels":["grimoire:plain","needs:` + label + `x"],"created_at":"2026-01-01T00:00:00Z"}` + "\n"
	w := newWorld(t, adds("it"), all)
	w.release("it")
	run := w.desk.coven("run", "t-1", "--yes")
	w.eventually("the desk says that no machine has the label", func() bool {
		return strings.Contains(w.desk.coven("why", "t-1").wait(0), "has the label größe größe")
	})
	name := strings.Repeat("ü", 300)
	other := w.newPlace("other").worker("--name", name+"1", "--label", label+"y")
	w.newPlace("one").worker("--name", name+"2", "--label", label+"x")
	run.wait(0)
	w.landed("it")
	if text := other.out.String(); strings.Contains(text, "begin") {
		t.Errorf("the machine with the other label has got it:\n%.2000s", text)
	}
}

// processes returns the processes of a place whose command lines contain a text.
func (p *place) processes(text string) (all []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if bytes.Contains(line, []byte(text)) && bytes.Contains(env, []byte("HOME="+filepath.Join(p.root, p.name)+"/")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			all = append(all, pid)
		}
	}
	return all
}

// TestProgramGone deletes the coven of a machine while it serves, and installs it again. Before, the coven that runs a session gets SIGTERM.
func TestProgramGone(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	one := w.newPlace("one")
	own := filepath.Join(w.root, "one", "coven")
	w.must(os.Link(filepath.Join(bin, "coven"), own))
	worker := one.worker("--coven", own)
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.held("it")
	w.must(os.Remove(own))
	for _, pid := range one.processes("\x00resume\x00--remote\x00") {
		w.must(syscall.Kill(pid, syscall.SIGTERM))
	}
	worker.says("p-add-it: interrupted")
	worker.says("p-add-it: .*no such file")
	w.eventually("the list names the machine", func() bool {
		return tells(w.desk.coven("worker", "list", "--on", w.server.Address()).wait(0), `p-add-it +waiting \(machine\) +one `)
	})
	w.release("it")
	w.must(os.Link(filepath.Join(bin, "coven"), own))
	run.wait(0)
	w.landed("it")
}

// TestLinkedWorktree serves in a linked worktree of a clone, while another machine with the same name serves in the clone.
func TestLinkedWorktree(t *testing.T) {
	w := newWorld(t, adds("a", "b", "c"), files())
	one := w.newPlace("one")
	linked := filepath.Join(w.root, "one", "linked")
	w.git(one.dir, "worktree", "add", "-q", "-b", "mine", linked)
	first := one.worker("-j", "1")
	one.worker("-j", "2", "--repository", linked)
	var runs []*command
	for _, name := range []string{"a", "b", "c"} {
		runs = append(runs, w.desk.coven("run", "-p", "Add "+name, "--grimoire", "plain", "--yes"))
		w.held(name)
	}
	first.signal(syscall.SIGKILL)
	for _, name := range []string{"a", "b", "c"} {
		w.release(name)
	}
	for _, run := range runs {
		run.wait(0)
	}
	w.landed("a", "b", "c")
}

// TestClocks runs a session on a machine whose clock is an hour fast. Another one, whose clock is an hour slow, continues it, and the desk ends it.
func TestClocks(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	long := time.Now().Unix() - 3_600_000
	one := w.newPlace("one")
	one.env = append(one.env, fmt.Sprintf("COVEN_CLOCK_SCALE=1.001@%d", long))
	worker := one.worker()
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "asked", "--yes")
	w.held("it")
	w.contains(w.newPlace("third").coven("resume", "p-add-it", "--remote", "origin", "--yes").wait(3), "its last step ended 0s ago")
	worker.destroy()
	two := w.newPlace("two")
	two.env = append(two.env, fmt.Sprintf("COVEN_CLOCK_SCALE=0.999@%d", long))
	two.worker().says("p-add-it: begin")
	w.release("it")
	run.wait(3)
	w.desk.coven("approve", "p-add-it").wait(0)
	w.landed("it")
	w.contains(w.desk.coven("status").wait(0), "landed")
}

// TestTermInPush sends SIGTERM to all processes of a machine, as systemd does, while one of them pushes the end of a step, and the origin has not answered. Another machine
// lands the task.
func TestTermInPush(t *testing.T) {
	w := newWorld(t, adds("it"), files())
	one := w.newPlace("one")
	worker := one.worker()
	run := w.desk.coven("run", "-p", "Add it", "--grimoire", "plain", "--yes")
	w.held("it")
	hold, reached := filepath.Join(w.root, "hold"), filepath.Join(w.root, "reached")
	w.must(syscall.Mkfifo(hold, 0o600))
	hook := filepath.Join(w.root, "git", "acme", "shop.git", "hooks", "pre-receive")
	w.must(os.WriteFile(hook, []byte("#!/bin/sh\n[ ! -p "+hold+" ] || { : > "+reached+"; cat "+hold+"; }\n"), 0o700))
	w.release("it")
	w.eventually("a push has begun", func() bool {
		_, err := os.Stat(reached)
		return err == nil
	})
	for _, pid := range one.processes("") {
		_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended
	}
	worker.says("taking nothing new")
	f, err := os.OpenFile(hold, os.O_WRONLY, 0)
	w.must(err)
	w.must(errors.Join(os.Remove(hold), f.Close()))
	worker.wait(0)
	w.newPlace("two").worker()
	run.wait(0)
	w.landed("it")
}
