package fakebd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is a way to misbehave. $FAKEBD_FAULT is KIND, KIND=VALUE,
// KIND@COMMAND or KIND=VALUE@COMMAND; without @COMMAND it applies to every command.
//
//	hang         never ends, and ignores all signals except KILL
//	slow=MS      waits before it does anything
//	meet=N       waits until N of its processes have run concurrently, for at most a minute
//	fail-stdout  does nothing, and fails with an error in JSON on standard output
//	fail-stderr  does nothing, and fails with a line on standard error
//	lost         does its work and then fails without output
//	garbage      does its work and prints invalid JSON instead of the result
//	noise        does its work and warns on standard error
//	flood=BYTES  prints this number of bytes without a newline
//	old=FLAG     does not know the flag
type fault struct{ kind, value string }

func faultOf(text, command string) (fault, error) {
	text, only, scoped := strings.Cut(text, "@")
	kind, value, _ := strings.Cut(text, "=")
	if kind == "" || scoped && only != command {
		return fault{}, nil
	}
	switch kind {
	case "hang", "slow", "meet", "fail-stdout", "fail-stderr", "lost", "garbage", "noise", "flood", "old":
		return fault{kind, value}, nil
	}
	return fault{}, fmt.Errorf("FAKEBD_FAULT: unknown fault %q", kind)
}

// before applies the fault before the work. over reports whether the run ends with it.
func (f fault) before(r *run) (code int, over bool) {
	switch f.kind {
	case "hang":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		for {
			<-signals
		}
	case "slow":
		ms, _ := strconv.Atoi(f.value)
		<-time.After(time.Duration(ms) * time.Millisecond)
	case "meet":
		n, _ := strconv.Atoi(f.value)
		return 1, !r.met(n)
	case "fail-stdout":
		return r.failStdout("the fault that was asked for"), true
	case "fail-stderr":
		r.warn("Warning: beads.role not configured\n")
		return r.complain("the fault that was asked for"), true
	case "flood":
		left, _ := strconv.Atoi(f.value)
		for chunk := strings.Repeat("x", 1<<16); left > 0; left -= len(chunk) {
			if _, err := fmt.Fprint(r.out, chunk); err != nil {
				return 1, true
			}
		}
		return 0, true
	case "old":
		if r.flags.has(f.value) {
			return r.usage("", fmt.Errorf("unknown flag: --%s", f.value)), true
		}
	case "lost", "garbage":
		r.out = discard{}
	}
	return 0, false
}

// met waits until n processes have run concurrently, and reports whether they have.
func (r *run) met(n int) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		if c, err := readCrowd(r.beads); err == nil && c.Most >= n {
			return true
		}
		select {
		case <-tick.C:
		case <-deadline:
			r.warn("fewer than %d processes met\n", n)
			return false
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// after applies the fault after the work.
func (f fault) after(r *run, code int) int {
	switch f.kind {
	case "lost":
		return 1
	case "garbage":
		fmt.Println("panic: not the JSON that you are looking for")
	case "noise":
		r.warn("Warning: .beads has permissions 0755 (recommended: 0700)\nbeads.role not configured {\"error\":\"no error\"}\n")
	}
	return code
}

// crowd records the concurrent processes.
type crowd struct {
	Running []int `json:"running"`
	Most    int   `json:"most"`
}

// enter records this process until leave is called.
func (r *run) enter() (leave func()) {
	_ = r.count(func(c *crowd) { c.Running = append(c.Running, os.Getpid()) })
	return func() {
		_ = r.count(func(c *crowd) { c.Running = without(c.Running, os.Getpid()) })
	}
}

func without(pids []int, pid int) []int {
	var kept []int
	for _, p := range pids {
		if p != pid {
			kept = append(kept, p)
		}
	}
	return kept
}

// count changes the record of running processes. It removes killed processes.
func (r *run) count(change func(*crowd)) error {
	dir := filepath.Join(r.beads, stateDir)
	unlock, err := lock(filepath.Join(dir, "crowd.lock"))
	if err != nil {
		return err // there is no database yet
	}
	defer unlock()
	c, err := readCrowd(r.beads)
	if err != nil {
		return err
	}
	for _, pid := range c.Running {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			c.Running = without(c.Running, pid)
		}
	}
	change(&c)
	c.Most = max(c.Most, len(c.Running))
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "crowd.json"), data, 0o644)
}

func readCrowd(beads string) (crowd, error) {
	var c crowd
	data, err := os.ReadFile(filepath.Join(beads, stateDir, "crowd.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	return c, err
}

// MaxAtOnce returns the maximum number of the fake's processes that ran concurrently
// on the database of a .beads directory since it was created.
func MaxAtOnce(beads string) (int, error) {
	c, err := readCrowd(beads)
	if err != nil {
		return 0, fmt.Errorf("read how many ran: %w", err)
	}
	return c.Most, nil
}
