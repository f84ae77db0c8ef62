package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coven-run/coven/distributed/server/servertest"
)

// A fleet has all machines that were ever there.
type fleet struct {
	o       options
	on      string   // address of the server
	port    string   // see initArg
	gone    int      // machines of the first part of a run that is continued
	client  []string // variables of its clients
	mu      sync.Mutex
	all     []*machine
	faults  []fault
	signals sync.WaitGroup
}

// newFleet returns the fleet of a server. The machines of the first part of a run have lost their disks.
func newFleet(o options, s *servertest.Server) (*fleet, error) {
	f := &fleet{o: o, on: s.Address(), port: direct, client: s.Environ()}
	host, port, err := net.SplitHostPort(f.on)
	if err == nil && host != gateway {
		f.port, err = port, forwardAll(net.JoinHostPort(gateway, port), f.on)
	}
	if err != nil {
		return nil, err
	}
	logs, err := filepath.Glob(filepath.Join(o.Dir, "logs", "m*.log"))
	for _, log := range logs {
		f.gone++
		err = errors.Join(err, os.RemoveAll(filepath.Join(o.Dir, strings.TrimSuffix(filepath.Base(log), ".log"))))
	}
	return f, err
}

// A machine runs one coven-worker in a clone of its own, in namespaces of its own.
type machine struct {
	name  string
	dir   string // its disk
	cmd   *exec.Cmd
	ended chan struct{}
	away  bool // stopped, cut off or dead
	usage usage
}

// usage is the processor time of a machine.
type usage struct {
	worker time.Duration // coven-worker alone
	all    time.Duration // with coven, git and the agents
}

// A fault is a moment in which a machine lost its sessions.
type fault struct {
	machine string
	kind    string
	at      time.Time
	until   time.Time // when it was back; zero if never
}

// hire adds a machine.
func (f *fleet) hire(ctx context.Context) error {
	f.mu.Lock()
	number := f.gone + len(f.all) + 1
	m := &machine{name: fmt.Sprintf("m%d", number), ended: make(chan struct{})}
	f.all = append(f.all, m)
	f.mu.Unlock()
	m.dir = filepath.Join(f.o.Dir, m.name)
	if err := home(m.dir); err != nil {
		return err
	}
	log, err := os.Create(f.log(m))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the machine has it
	clone := fmt.Sprintf("git clone -q %s clone 2>&1 && cd clone && exec \"$@\"", url)
	m.cmd = inNamespaces(context.WithoutCancel(ctx), m.name, f.port, "/bin/sh", "-c", clone, "sh",
		f.o.Worker, "--on", f.on, "-j", fmt.Sprint(f.o.Jobs), "--name", m.name, "--coven", f.o.Coven)
	m.cmd.Dir, m.cmd.Env, m.cmd.Stdout, m.cmd.Stderr = m.dir, environ(f.o.Dir, m.dir, f.client...), log, log
	input, err := m.cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := m.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = m.cmd.Wait()
		close(m.ended)
	}()
	if err := plug(m.cmd.Process.Pid, m.link()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(input, "10.77.%d.%d", 1+number/250, 1+number%250)
	return errors.Join(err, input.Close())
}

func (m *machine) link() string { return "v" + m.name }

func (f *fleet) log(m *machine) string { return filepath.Join(f.o.Dir, "logs", m.name+".log") }

// pick returns the machines that are there, which pick chooses from.
func (f *fleet) there() []*machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.all), func(m *machine) bool { return m.away })
}

// lose records that a machine is away from now on. It reports whether it was there.
func (f *fleet) lose(m *machine, kind string, back time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.away {
		return false
	}
	m.away = true
	one := fault{machine: m.name, kind: kind, at: time.Now()}
	if back > 0 {
		one.until = one.at.Add(back)
	}
	f.faults = append(f.faults, one)
	return true
}

// kill kills all processes of a machine at once, and deletes its disk.
func (f *fleet) kill(m *machine) error {
	f.lose(m, "killed", 0)
	m.measure()
	_ = m.cmd.Process.Kill()
	<-m.ended
	return os.RemoveAll(m.dir)
}

// hang stops a machine for a while: all of it, as sleep does, or only its coven-worker.
func (f *fleet) hang(ctx context.Context, m *machine, wholly bool, pause time.Duration) {
	kind := "its worker stopped"
	if wholly {
		kind = "stopped"
	}
	if !f.lose(m, kind, pause) {
		return
	}
	var stopped []process
	for _, p := range below(m.cmd.Process.Pid) {
		if wholly || p.name == filepath.Base(f.o.Worker) {
			stopped = append(stopped, p)
		}
	}
	send(stopped, syscall.SIGSTOP)
	f.later(ctx, pause, func() { send(stopped, syscall.SIGCONT) }, m)
}

// cut cuts the link of a machine for a while.
func (f *fleet) cut(ctx context.Context, m *machine, pause time.Duration) error {
	if !f.lose(m, "cut off", pause) {
		return nil
	}
	err := ip("link set " + m.link() + " down")
	f.later(ctx, pause, func() { _ = ip("link set " + m.link() + " up") }, m) // it may have been killed
	return err
}

// lateness is the time that a machine has, after it is back, to find out that others have its sessions.
const lateness = 20 * time.Second

// later heals a machine after a pause, and retires it when it has had the time to do something wrong.
func (f *fleet) later(ctx context.Context, pause time.Duration, heal func(), m *machine) {
	f.signals.Go(func() {
		wait(ctx, pause)
		heal()
		wait(ctx, lateness)
		_ = f.kill(m)
	})
}

// wait waits, but not when the run is over.
func wait(ctx context.Context, pause time.Duration) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
}

// drain ends the coven-worker of a machine.
func (f *fleet) drain(ctx context.Context, m *machine) error {
	for look := time.Tick(100 * time.Millisecond); !f.serves(m); {
		select {
		case <-look:
		case <-m.ended:
			return fmt.Errorf("the worker of %s has ended", m.name)
		case <-ctx.Done():
			return fmt.Errorf("the worker of %s does not begin", m.name)
		}
	}
	m.measure()
	for _, p := range below(m.cmd.Process.Pid) {
		if p.name == filepath.Base(f.o.Worker) {
			send([]process{p}, syscall.SIGTERM)
		}
	}
	select {
	case <-m.ended:
		if code := m.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("the worker of %s ended with code %d when it was drained", m.name, code)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the worker of %s does not end when it is drained", m.name)
	}
}

// serves reports whether the coven-worker of a machine has begun to work.
func (f *fleet) serves(m *machine) bool {
	log, err := os.ReadFile(f.log(m))
	return err == nil && strings.Contains(string(log), m.name+" serves ")
}

// measure reads the processor time of a machine, which is about to end.
func (m *machine) measure() {
	m.usage = usage{}
	for i, p := range below(m.cmd.Process.Pid) {
		if p.name == "coven-worker" {
			m.usage.worker += p.own
		}
		if i > 0 { // the first one forwards and waits
			m.usage.all += p.own
		}
		m.usage.all += p.children
	}
}

// used returns the processor time of all machines that have ended.
func (f *fleet) used() (sum usage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.all {
		sum.worker, sum.all = sum.worker+m.usage.worker, sum.all+m.usage.all
	}
	return sum
}

// home makes the directory of a person or a machine.
func home(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o755); err != nil {
		return err
	}
	config := "[user]\n\tname = Ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"
	return os.WriteFile(filepath.Join(dir, "home", ".gitconfig"), []byte(config), 0o644)
}

// environ returns the environment of a person or a machine with a directory, and other variables.
func environ(root, dir string, with ...string) []string {
	env := []string{"HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + dir, "COVEN_SCRIPT=" + filepath.Join(root, "script.yaml"), "TERM=dumb"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if slices.Contains([]string{"PATH", "LANG", "USER", "COVEN_TEMPORAL_SERVER"}, name) {
			env = append(env, v)
		}
	}
	return append(env, with...)
}
