package fakeclaude_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coven-run/coven/internal/fake/fakeclaude"
)

const oneCall = `
conversations:
- turns:
  - {text: pre, tools: [{name: Bash, input: {command: touch DENY}}]}
  - text: bye
`

// faultyWorld returns a world whose fake CLI has faults.
func faultyWorld(t *testing.T, faults string) *world {
	t.Helper()
	w := newWorld(t, fakeCLI(t), oneCall)
	check(t, os.Mkdir(filepath.Join(w.home, ".fake-claude"), 0o700))
	check(t, os.WriteFile(filepath.Join(w.home, ".fake-claude", "faults.yaml"), []byte(faults), 0o600))
	return w
}

func (w *world) hello(flags ...string) *process {
	w.t.Helper()
	p := w.start(nil, flags...)
	p.send("hello")
	return p.wait()
}

func TestRecord(t *testing.T) {
	w := faultyWorld(t, "faults: []")
	p := w.hello("--session-id", w.id)
	records, err := fakeclaude.Records(w.home)
	check(t, err)
	if len(records) != 1 {
		t.Fatalf("%d records", len(records))
	}
	got := records[0]
	if got.Cwd != w.cwd || got.PID != p.command.Process.Pid || got.TTY != [3]bool{false, true, false} {
		t.Errorf("record %+v", got)
	}
	if !slices.Equal(got.Argv, p.command.Args[1:]) || !slices.Equal(got.Env, p.command.Env) {
		t.Errorf("argv %q\nenv %q", got.Argv, got.Env)
	}
	if !strings.Contains(got.Input, `"text":"hello"`) {
		t.Errorf("input %q", got.Input)
	}
}

func TestNoRecordWithoutDirectory(t *testing.T) {
	w := newWorld(t, fakeCLI(t), oneCall)
	w.hello()
	if _, err := os.Stat(filepath.Join(w.home, ".fake-claude")); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		name, faults string
		want         func(t *testing.T, p *process)
	}{
		{"script", `faults: [{script: ['{"type":"result","is_error":false}', 'not json']}]`, func(t *testing.T, p *process) {
			t.Helper()
			if !slices.Equal(p.lines[1:], []string{`{"type":"result","is_error":false}`, "not json"}) || len(p.api.Requests()) != 0 {
				t.Errorf("lines %q", p.lines)
			}
		}},
		{"garbage", `faults: [{garbage: ['%%%', '']}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.lines[1] != "%%%" || p.lines[2] != "" || p.count("result") != 1 {
				t.Errorf("lines %q", p.lines)
			}
		}},
		{"split", `faults: [{split: true}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.count("result") != 1 || p.count("assistant") != 3 {
				t.Errorf("lines %q", p.lines)
			}
		}},
		{"big line", `faults: [{big_line: 3000000}]`, func(t *testing.T, p *process) {
			t.Helper()
			if len(p.lines[1]) < 3000000 || !json.Valid([]byte(p.lines[1])) || p.count("result") != 1 {
				t.Errorf("the line has %d bytes", len(p.lines[1]))
			}
		}},
		{"ungated", `faults: [{ungated: true}]`, func(t *testing.T, p *process) {
			t.Helper()
			if _, err := os.Stat(filepath.Join(p.cwd, "DENY")); err != nil {
				t.Error("the call did not run:", err)
			}
			if len(p.asked()) != 1 { // only the start of the server
				t.Errorf("asked %v", p.asked())
			}
		}},
		{"exit code", `faults: [{exit_code: 7}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.exit != "7" || p.count("result") != 1 {
				t.Errorf("exit %s, lines %q", p.exit, p.lines)
			}
		}},
		{"no result", `faults: [{no_result: true}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.exit != "0" || p.count("result") != 0 || p.count("assistant") != 3 {
				t.Errorf("exit %s, lines %q", p.exit, p.lines)
			}
		}},
		{"another message", `faults: [{match: bye, exit_code: 7}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.exit != "0" {
				t.Errorf("exit %s", p.exit)
			}
		}},
		{"unknown key", `faults: [{nonsense: true}]`, func(t *testing.T, p *process) {
			t.Helper()
			if p.exit != "1" || !strings.Contains(p.stderr.String(), "nonsense") {
				t.Errorf("exit %s, stderr %s", p.exit, p.stderr.String())
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.want(t, faultyWorld(t, test.faults).hello())
		})
	}
}

// count counts the events of a type.
func (p *process) count(kind string) int {
	count := 0
	for _, line := range p.lines {
		if strings.HasPrefix(line, `{"type":"`+kind+`"`) {
			count++
		}
	}
	return count
}

func TestFaultOfTheFirstRunsOnly(t *testing.T) {
	w := faultyWorld(t, "faults: [{match: hello, runs: 2, exit_code: 7}]")
	var exits []string
	for range 3 {
		exits = append(exits, w.hello().exit)
	}
	if !slices.Equal(exits, []string{"7", "7", "0"}) {
		t.Errorf("exits %v", exits)
	}
}

// TestHang checks that a hanging run ignores all signals except KILL, and that its children
// survive even its end: they must be found and killed separately.
func TestHang(t *testing.T) {
	w := faultyWorld(t, "faults: [{hang: true}]")
	p := w.start(nil)
	p.send("hello")
	heartbeat := filepath.Join(w.home, ".fake-claude", "heartbeat")
	pids := map[int]bool{}
	eventually(t, func() bool {
		data, err := os.ReadFile(heartbeat)
		for _, line := range strings.Fields(string(data)) {
			var pid int
			check(t, json.Unmarshal([]byte(line), &pid))
			pids[pid] = true
		}
		return err == nil && len(pids) == 2
	})
	t.Cleanup(func() {
		for pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // they live until here
		}
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		p.signal(sig)
	}
	state, err := p.command.Process.Wait() // do not wait for the output, which the children keep open
	check(t, err)
	if state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", state)
	}
	before := size(t, heartbeat)
	eventually(t, func() bool { return size(t, heartbeat) > before+20 })
	for pid := range pids {
		session, err := unix.Getsid(pid)
		check(t, err)
		if session == p.command.Process.Pid {
			t.Errorf("child %d is in the session of the CLI", pid)
		}
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	return info.Size()
}

func TestVersion(t *testing.T) {
	program := fakeCLI(t)
	best := time.Hour
	for range 5 {
		start := time.Now()
		command := exec.Command(program.path, "--version")
		command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		out, err := command.Output()
		check(t, err)
		if string(out) != fakeclaude.Version+" (Claude Code)\n" {
			t.Fatalf("version %q", out)
		}
		best = min(best, time.Since(start))
	}
	t.Logf("start to end: %s", best)
}
