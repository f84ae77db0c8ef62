package machine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"github.com/coven-run/coven/distributed/machine"
	"github.com/coven-run/coven/distributed/session"
)

// host is a machine whose coven is a shell script.
type host struct {
	*machine.Machine
	env *testsuite.TestActivityEnvironment

	mu  sync.Mutex
	log []string
}

func newHost(t *testing.T, script string) *host {
	t.Helper()
	dir := t.TempDir()
	coven := filepath.Join(dir, "coven")
	if err := os.WriteFile(coven, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	suite := &testsuite.WorkflowTestSuite{}
	h := &host{env: suite.NewTestActivityEnvironment()}
	h.Machine = &machine.Machine{
		Name: "m1", Repository: "acme/shop", Dir: dir, Remote: "origin", Coven: coven, Grace: time.Minute,
		Turn:   func(context.Context, session.Task, string) func() { return func() {} },
		Limits: &limits{}, Check: func(context.Context) error { return nil },
		Places: machine.NewPlaces(2), Park: make(chan struct{}),
		Log: func(format string, args ...any) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.log = append(h.log, fmt.Sprintf(format, args...))
		},
	}
	h.env.RegisterActivityWithOptions(h.Stretch, activity.RegisterOptions{Name: session.Stretch})
	h.env.SetTestTimeout(time.Minute)
	return h
}

// limits has the limit of one account.
type limits struct {
	mu      sync.Mutex
	account string
	until   time.Time
	told    chan struct{}
}

func (l *limits) Tell(_ context.Context, account string, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.account, l.until = account, until
	close(l.told)
}

func (l *limits) Until(_ context.Context, account string) (until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if account == l.account {
		until = l.until
	}
	return until
}

func (h *host) run(cost int) (session.Stop, error) {
	value, err := h.env.ExecuteActivity(session.Stretch, session.Task{Repository: "acme/shop", Task: "-bd 1", Cost: cost, Heartbeat: 40 * time.Millisecond})
	var stop session.Stop
	if err == nil {
		err = value.Get(&stop)
	}
	return stop, err
}

// The command line, the state, and the environment, which lacks the connection to the server.
func TestStretch(t *testing.T) {
	t.Setenv("TEMPORAL_API_KEY", "secret")
	t.Setenv("MINE", "kept")
	h := newHost(t, `echo "$#: $*: $TEMPORAL_API_KEY$MINE" > called
echo 'bd-1  waiting (limit)'
echo '{"status":"waiting","reason":"limit","until":"2030-01-02T03:04:05Z"}'
exit 5
`)
	stop, err := h.run(1)
	if left := time.Until(stop.Until); stop.Left < left || stop.Left > left+time.Minute {
		t.Errorf("%s are left, not %s", stop.Left, left)
	}
	stop.Left = 0
	want := session.Stop{Status: "waiting", Reason: "limit", Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Machine: "m1"}
	if err != nil || stop != want {
		t.Errorf("got %+v, %v", stop, err)
	}
	called, err := os.ReadFile(filepath.Join(h.Dir, "called"))
	if got := string(called); err != nil || got != "6: resume --remote origin --worker -- -bd 1: kept\n" {
		t.Errorf("called %q, %v", got, err)
	}
}

// Without a state, the session is tried again. The text of coven stays in the log of the machine.
func TestNoState(t *testing.T) {
	for name, script := range map[string]string{
		"failed":   "echo 'coven: secret thing' >&2; echo '  next: coven doctor' >&2; exit 2",
		"silent":   "echo secret thing",
		"half":     `printf '{"status":"secret thing'`,
		"no state": `echo '{"secret thing":1}'`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, script)
			_, err := h.run(1)
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("the server gets %v", err)
			}
			if got := strings.Join(h.log, "\n"); !strings.Contains(got, "secret thing") {
				t.Errorf("the log is %q", got)
			}
		})
	}
}

// A program of a task that lives on does not keep the machine from reporting, nor does a long output.
func TestOutput(t *testing.T) {
	h := newHost(t, `sleep 600 & echo $! > child
head -c 300000 /dev/zero | tr '\0' x
echo
echo '{"over":true}'
`)
	h.Grace = 50 * time.Millisecond
	stop, err := h.run(1)
	if err != nil || !stop.Over {
		t.Errorf("got %+v, %v", stop, err)
	}
	if child, err := os.ReadFile(filepath.Join(h.Dir, "child")); err == nil {
		end(t, strings.TrimSpace(string(child)))
	}
}

// A session lands when its turn has come, and gives it back, even if coven is killed.
func TestTurn(t *testing.T) {
	for name, end := range map[string]string{"given back": `echo '{"turn":""}'; echo '{"over":true}'`, "killed": "kill -9 $$"} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, `echo '{"turn":"origin/main"}'
read -r line || exit 1
echo came > came
`+end)
			released := make(chan struct{})
			h.Turn = func(_ context.Context, s session.Task, branch string) func() {
				if _, err := os.Stat(filepath.Join(h.Dir, "came")); err == nil || branch != "origin/main" || s.Task != "-bd 1" {
					t.Errorf("it asks for a turn of %s on %s, %v", s.Task, branch, err)
				}
				return func() { close(released) }
			}
			stop, err := h.run(1)
			if over := err == nil && stop.Over; over != (name == "given back") {
				t.Errorf("got %+v, %v", stop, err)
			}
			if _, err := os.Stat(filepath.Join(h.Dir, "came")); err != nil {
				t.Error(err)
			}
			<-released
		})
	}
}

// A session tells the limit of an account, and another one asks for it.
func TestLimits(t *testing.T) {
	h := newHost(t, `if mkdir told; then
  echo '{"account":"0a1b","until":"2030-01-02T03:04:05Z"}'
else
  echo '{"account":"0a1b"}'
  read -r line; echo "$line" > limited
  echo '{"account":"2c3d"}'
  read -r line; echo "$line" > free
fi
echo '{"over":true}'
`)
	known := &limits{told: make(chan struct{})}
	h.Limits = known
	for range 2 {
		if stop, err := h.run(1); err != nil || !stop.Over {
			t.Errorf("got %+v, %v", stop, err)
		}
		<-known.told
	}
	for name, want := range map[string]string{"limited": `{"until":"2030-01-02T03:04:05Z"}`, "free": "{}"} {
		if got, err := os.ReadFile(filepath.Join(h.Dir, name)); err != nil || string(got) != want+"\n" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A coven that is parked while it waits for its turn leaves the queue.
func TestParkedBeforeTurn(t *testing.T) {
	h := newHost(t, `trap 'echo "{\"status\":\"interrupted\"}"; exit 130' INT
echo '{"turn":"origin/main"}'
while :; do sleep 0.01; done
`)
	left := make(chan struct{})
	h.Turn = func(ctx context.Context, _ session.Task, _ string) func() {
		close(h.Park)
		<-ctx.Done()
		close(left)
		return func() {}
	}
	stop, err := h.run(1)
	if err != nil || stop.Status != session.Interrupted {
		t.Errorf("got %+v, %v", stop, err)
	}
	<-left
}

// Parked, coven is interrupted and says so.
func TestPark(t *testing.T) {
	h := newHost(t, `trap 'echo "{\"status\":\"interrupted\"}"; exit 130' INT
echo began > began
while :; do sleep 0.01; done
`)
	began := filepath.Join(h.Dir, "began")
	if err := syscall.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if _, err := os.ReadFile(began); err == nil { // the script has written to it
			close(h.Park)
		}
	}()
	stop, err := h.run(1)
	if err != nil || stop.Status != session.Interrupted {
		t.Errorf("got %+v, %v", stop, err)
	}
}

// A coven that ignores the interrupt is killed.
func TestKill(t *testing.T) {
	h := newHost(t, `trap '' INT
while :; do sleep 0.01; done
`)
	h.Grace = 10 * time.Millisecond
	close(h.Park)
	if _, err := h.run(1); err == nil {
		t.Error("no error")
	}
}

// A machine refuses other repositories.
func TestRepository(t *testing.T) {
	h := newHost(t, `echo '{"over":true}'`)
	h.Repository = "acme/other"
	if _, err := h.run(1); err == nil {
		t.Error("it runs the session of another repository")
	}
}

// While a session has all places, one that needs a single place is given back, and another one that needs all waits.
func TestPlaces(t *testing.T) {
	h := newHost(t, `[ -e first ] && { echo second >> order; echo '{"over":true}'; exit; }
touch first
echo begun > pipe
cat pipe > /dev/null
echo first >> order
echo '{"over":true}'
`)
	pipe := filepath.Join(h.Dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	play := func() {
		all.Go(func() {
			if stop, err := h.run(9); err != nil || !stop.Over {
				t.Errorf("got %+v, %v", stop, err)
			}
		})
	}
	play()
	if _, err := os.ReadFile(pipe); err != nil { // it has begun
		t.Fatal(err)
	}
	if stop, err := h.run(1); err != nil || stop.Status != session.Interrupted || stop.Reason != session.NoPlace {
		t.Errorf("got %+v, %v", stop, err)
	}
	play()
	if err := os.WriteFile(pipe, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	order, err := os.ReadFile(filepath.Join(h.Dir, "order"))
	if got := string(order); err != nil || got != "first\nsecond\n" {
		t.Errorf("order %q, %v", got, err)
	}
}

// end ends a process by its ID.
func end(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.FindProcess(n)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Error(err)
	}
}
