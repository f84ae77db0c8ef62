package process

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	shimID = 10
	mainID = 20
)

// table is a typical process table: a shim, its program, and other processes.
func table(more processTable) processTable {
	all := processTable{
		1:      {parent: 0, group: 1, session: 1},
		5:      {parent: 1, group: 5, session: 5},
		shimID: {parent: 5, group: shimID, session: shimID},
		mainID: {parent: shimID, group: mainID, session: mainID, started: 7},
	}
	maps.Copy(all, more)
	return all
}

func TestFamily(t *testing.T) {
	sleeper := processInfo{parent: mainID, group: 30, session: 30, started: 8}
	orphan := processInfo{parent: 1, group: 30, session: 30, started: 8}
	other := processInfo{parent: 1, group: 30, session: 30, started: 9}
	tests := []struct {
		name   string
		tables []processTable
		want   []int
		groups []int
	}{
		{"the program", []processTable{table(nil)}, []int{mainID}, []int{mainID}},
		{
			"below it",
			[]processTable{table(processTable{30: sleeper, 31: {parent: 30, group: 31, session: 30}})},
			[]int{mainID, 30, 31},
			[]int{mainID, 30, 31},
		},
		{
			"an orphan of its session",
			[]processTable{table(processTable{30: {parent: 1, group: 29, session: mainID}})},
			[]int{mainID, 30},
			[]int{mainID, 29},
		},
		{"an orphan that was seen before", []processTable{table(processTable{30: sleeper}), table(processTable{30: orphan})}, []int{mainID, 30}, []int{mainID, 30}},
		{
			"what an orphan forked, which is gone", []processTable{
				table(processTable{30: sleeper}), table(processTable{31: {parent: 1, group: 31, session: 30}}),
			}, []int{mainID, 31}, []int{mainID, 31},
		},
		{"an orphan that was not seen", []processTable{table(nil), table(processTable{30: orphan})}, []int{mainID}, []int{mainID}},
		{
			"another with the number of one that is gone", []processTable{
				table(processTable{30: sleeper}), table(nil), table(processTable{30: other}),
			}, []int{mainID}, []int{mainID},
		},
		{
			"another with the number of one that was just seen", []processTable{
				table(processTable{30: sleeper}), table(processTable{30: {parent: 1, group: 33, session: 33, started: 9}}),
			}, []int{mainID}, []int{mainID},
		},
		{
			"another with the program's number", []processTable{
				table(processTable{mainID: {parent: shimID, session: mainID, zombie: true}}),
				table(processTable{mainID: {parent: 1, group: mainID, session: mainID, started: 9}}),
			}, nil, nil,
		},
		{"a zombie", []processTable{table(processTable{mainID: {parent: shimID, zombie: true}})}, nil, nil},
		{
			"below a zombie", []processTable{table(processTable{
				mainID: {parent: shimID, zombie: true}, 30: {parent: mainID, group: 30, session: 30},
			})}, []int{30}, []int{30},
		},
		{
			"forked by the shim right now",
			[]processTable{table(processTable{30: {parent: shimID, group: shimID, session: shimID}})},
			[]int{mainID, 30},
			[]int{mainID},
		},
		{
			"sessions that are not known",
			[]processTable{table(processTable{30: {parent: mainID, group: 30}, 31: {parent: 1, group: 31}})},
			[]int{mainID, 30},
			[]int{mainID, 30},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFamily(mainID)
			f.root = shimID
			f.kill = func(int, syscall.Signal) error { return nil }
			for _, shown := range test.tables {
				f.list = func() (processTable, error) { return shown, nil }
				if got := f.lingers(); got != (len(f.seen.members) > 0) {
					t.Errorf("lingers is %t with %v", got, f.seen.members)
				}
			}
			var asked []int
			f.kill = func(pid int, _ syscall.Signal) error { asked = append(asked, -pid); return nil }
			f.signal(syscall.SIGTERM)
			if got := sorted(maps.Keys(f.seen.members)); !slices.Equal(got, sortedOf(test.want)) {
				t.Errorf("members are %v, want %v", got, test.want)
			}
			if slices.Sort(asked); !slices.Equal(asked, sortedOf(test.groups)) {
				t.Errorf("signalled groups %v, want %v", asked, test.groups)
			}
		})
	}
}

func sortedOf(list []int) []int { return sorted(slices.Values(list)) }

func sorted(seq func(func(int) bool)) []int { return slices.Sorted(seq) }

// Processes that may not be signalled are not waited for.
func TestFamilyOfAnotherUser(t *testing.T) {
	f := newFamily(mainID)
	f.root = shimID
	f.list = func() (processTable, error) {
		return table(processTable{30: {parent: mainID, group: 30, session: 30}}), nil
	}
	others := map[int]bool{30: true}
	f.kill = func(pid int, _ syscall.Signal) error {
		if others[pid] {
			return syscall.EPERM
		}
		return nil
	}
	if !f.lingers() {
		t.Error("the program does not linger")
	}
	if others[mainID] = true; f.lingers() {
		t.Error("what cannot be ended lingers")
	}
}

// If the table cannot be read, the last known groups are signalled.
func TestFamilyWithoutTable(t *testing.T) {
	alive := true
	f := newFamily(mainID)
	f.list = func() (processTable, error) { return nil, errors.New("no table") }
	f.kill = func(pid int, signal syscall.Signal) error {
		if pid != -mainID || !alive {
			return syscall.ESRCH
		}
		alive = signal != syscall.SIGKILL
		return nil
	}
	if !f.lingers() {
		t.Error("a program that lives does not linger")
	}
	f.signal(syscall.SIGKILL)
	if alive || f.lingers() {
		t.Error("a program that is gone lingers")
	}
}

func TestDescends(t *testing.T) {
	shown := table(processTable{30: {parent: 31}, 31: {parent: 30}, 40: {parent: 99}})
	for pid, want := range map[int]bool{shimID: true, mainID: true, 1: false, 5: false, 30: false, 40: false, 99: false} {
		if got := shown.descends(pid, shimID); got != want {
			t.Errorf("%d descends from the shim: %t", pid, got)
		}
	}
}

func TestProcessTable(t *testing.T) {
	shown := must(processes())
	self := shown[os.Getpid()]
	group, session := must(syscall.Getpgid(0)), must(unix.Getsid(0)) // 0 is a session of another PID namespace
	if self.parent != os.Getppid() || self.group != group || self.session != session || self.started == 0 || self.zombie {
		t.Errorf("this process is shown as %+v", self)
	}
}

// clan is a program with an orphaned child in its session, and a child with its own
// session that is not orphaned. All of them print their process ID and ignore TERM.
const clan = `trap '' TERM
(sh -c 'echo $$; while :; do sleep 0.02; done' &)
setsid sh -c 'echo $$; while :; do sleep 0.02; done' &
echo $$
while :; do sleep 0.02; done`

// assertGone fails if a process of the clan is alive.
func assertGone(t *testing.T, pids []int) {
	t.Helper()
	shown := must(processes())
	for _, pid := range pids {
		if info, found := shown[pid]; found && !info.zombie {
			t.Errorf("process %d lives: %+v", pid, info)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func TestGroupEndsTheTree(t *testing.T) {
	ends := map[string]func(c *Child){
		"stopped":        func(c *Child) { c.Stop(nil) },
		"killed":         func(c *Child) { c.Kill(nil) },
		"shim is killed": func(c *Child) { _ = c.process.Kill() },
		"coven is gone":  func(c *Child) { _ = c.link.control.Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := start(t, launcher(t, ProcessGroup), Spec{Argv: shell(clan), Grace: brief})
			var pids []int
			for range 3 {
				var pid int
				must(fmt.Sscan(readLine(t, child.Output()), &pid))
				pids = append(pids, pid)
			}
			end(child)
			wait(t, child)
			assertGone(t, pids)
		})
	}
}

// Processes left behind in the program's session get TERM and time to react, and
// Wait waits for them.
func TestGroupLeftovers(t *testing.T) {
	l := launcher(t, ProcessGroup)
	l.leftover = limit
	child := start(t, l, Spec{Argv: shell(`
		(sh -c 'trap "sleep 0.3; echo asked; exit" TERM; echo $$; while :; do sleep 0.02; done' &)
		read go; exit 4`), Grace: limit})
	var pid int
	must(fmt.Sscan(readLine(t, child.Output()), &pid))
	must(fmt.Fprintln(child.Stdin()))
	if exit := wait(t, child); exit != (Exit{Code: 4}) {
		t.Errorf("exit is %+v", exit)
	}
	assertGone(t, []int{pid})
	if got := readAll(t, child.Output()); !strings.Contains(got, "asked\n") {
		t.Errorf("got %q", got)
	}
}

// A plugin host kills the command, which is the shim.
func TestGroupOfAKilledCommand(t *testing.T) {
	cmd, release := contain(t, launcher(t, ProcessGroup), shell(clan)...)
	lines := bufio.NewScanner(must(cmd.StdoutPipe()))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for len(pids) < 3 && lines.Scan() {
		var pid int
		must(fmt.Sscan(lines.Text(), &pid))
		pids = append(pids, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	release()
	assertGone(t, pids)
}

// A known member is killed even if its parent is gone and it has its own session.
// Processes outside the family survive.
func TestFamilyRemembers(t *testing.T) {
	other := exec.Command("sleep", "1000")
	program := exec.Command("sh", "-c", clan)
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lines := bufio.NewScanner(must(program.StdoutPipe()))
	for _, cmd := range []*exec.Cmd{other, program} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	var pids []int
	for len(pids) < 3 && lines.Scan() {
		var pid int
		must(fmt.Sscan(lines.Text(), &pid))
		pids = append(pids, pid)
	}
	f := newFamily(program.Process.Pid)
	f.root = -1
	if !f.lingers() {
		t.Error("the family is not seen")
	}
	_ = program.Process.Kill()
	_ = program.Wait()
	if !f.lingers() {
		t.Error("the orphans are not seen")
	}
	eventually(t, "the family ends", func() bool { f.signal(syscall.SIGKILL); return !f.lingers() })
	assertGone(t, pids)
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("another process ended: %v", err)
	}
}

func TestContainsByGroup(t *testing.T) {
	l := launcher(t, ProcessGroup)
	child, other := start(t, l, Spec{Argv: shell(`setsid sh -c 'echo $$; while :; do sleep 0.02; done' & wait`)}), start(t, l, Spec{Argv: []string{"sleep", "1000"}})
	var pid int
	must(fmt.Sscan(strings.TrimSpace(readLine(t, child.Output())), &pid))
	if !child.Contains(pid) || other.Contains(pid) {
		t.Errorf("process %d: %t, in another tree: %t", pid, child.Contains(pid), other.Contains(pid))
	}
	for _, pid := range []int{os.Getpid(), os.Getppid(), 1, 0, -1, 1 << 30} {
		if child.Contains(pid) {
			t.Errorf("process %d is no member", pid)
		}
	}
	child.Kill(nil)
	wait(t, child)
	if child.Contains(pid) {
		t.Error("a tree that is gone has a member")
	}
}
