package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/coven-run/coven/distributed/account"
	"github.com/coven-run/coven/distributed/connect"
	"github.com/coven-run/coven/distributed/machine"
	"github.com/coven-run/coven/distributed/session"
	"github.com/coven-run/coven/distributed/turn"
)

// work is the command that runs sessions.
type work struct {
	on     *string
	jobs   int
	labels []string
	name   string
	dir    string
	remote string
	coven  string
	drain  time.Duration
	failed chan error // workers end when the server has lost the namespace
}

func (w *work) flags(f *pflag.FlagSet) {
	f.IntVarP(&w.jobs, "jobs", "j", 2, "run `N` sessions at once")
	f.StringArrayVar(&w.labels, "label", nil, "also run sessions that need a machine with this `LABEL`; may be repeated")
	f.StringVar(&w.name, "name", "", "the `NAME` of this machine in lists (default: its host name)")
	f.StringVar(&w.dir, "repository", ".", "the `DIRECTORY` of the clone")
	f.StringVar(&w.remote, "remote", "origin", "the git `REMOTE` that keeps the sessions")
	f.StringVar(&w.coven, "coven", "", "the `PATH` of coven (default: beside this program, else in the PATH)")
	f.DurationVar(&w.drain, "drain", 10*time.Minute, "how long to wait for the running sessions after the first Ctrl-C, as a `DURATION`")
}

// grace is the time for a session to stop after it was interrupted.
const grace = 30 * time.Second

// run runs sessions until it is interrupted.
func (w *work) run(ctx context.Context) error {
	if w.jobs < 1 || w.jobs > 64 {
		return usageError{fmt.Errorf("-j %d is not between 1 and 64", w.jobs)}
	}
	w.failed = make(chan error, 1)
	m, plans, err := w.machine(ctx)
	if err != nil {
		return err
	}
	handler, flush, err := metrics(ctx)
	if err != nil {
		return err
	}
	defer flush(context.WithoutCancel(ctx)) //nolint:errcheck // metrics only
	c, err := dial(ctx, *w.on, m.Name, handler, func(err error) { m.Log("%s does not answer; trying again: %v", *w.on, err) })
	if err != nil {
		return err
	}
	defer c.Close()
	m.Turn = func(ctx context.Context, t session.Task, branch string) func() { return turn.Take(ctx, c, t, branch) }
	m.Limits = &account.Limits{Client: c}
	drained := make(chan struct{})
	if info, ok := debug.ReadBuildInfo(); ok {
		worker.SetBinaryChecksum(info.Main.Version) // else the SDK hashes the whole program, which takes half of the start
	}
	workers, err := w.start(c, m, plans)
	if err != nil {
		return err
	}
	m.Log("%s serves %s on %s, %d at once", m.Name, m.Repository, *w.on, w.jobs)
	for ctx.Err() == nil {
		select {
		case err := <-w.failed:
			m.Log("%s: %v; trying again", *w.on, err)
			stopAll(workers)
			workers = w.restart(ctx, c, m, plans)
		case <-ctx.Done():
		}
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	m.Log("taking nothing new; waiting for the running sessions, at most %s; once more to interrupt them", w.drain)
	go func() {
		stopAll(workers)
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-again:
	case <-time.After(w.drain):
	}
	close(m.Park)
	<-drained
	return nil
}

// stopAll stops workers, and returns when their sessions have stopped.
func stopAll(workers []worker.Worker) {
	var all sync.WaitGroup
	for _, one := range workers {
		all.Go(one.Stop)
	}
	all.Wait()
}

// restart starts the workers again as soon as that is possible.
func (w *work) restart(ctx context.Context, c client.Client, m *machine.Machine, plans []int) []worker.Worker {
	for {
		workers, err := w.start(c, m, plans)
		if err == nil || ctx.Err() != nil {
			return workers
		}
		stopAll(workers)
		select {
		case err := <-w.failed: // of the workers that were stopped
			m.Log("%s: %v", *w.on, err)
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// machine returns this machine, and the versions of plans that its coven supports.
func (w *work) machine(ctx context.Context) (*machine.Machine, []int, error) {
	m := &machine.Machine{Remote: w.remote, Grace: grace, Places: machine.NewPlaces(w.jobs), Park: make(chan struct{}), Log: logf}
	var err error
	if m.Dir, err = filepath.Abs(w.dir); err != nil {
		return nil, nil, err
	}
	if m.Coven, err = findCoven(w.coven); err != nil {
		return nil, nil, err
	}
	if m.Repository, err = repository(ctx, m.Dir, w.remote); err != nil {
		return nil, nil, err
	}
	address, err := addressOf(ctx, m.Dir, w.remote)
	if err != nil {
		return nil, nil, err
	}
	m.Check = func(ctx context.Context) error {
		now, err := addressOf(ctx, m.Dir, w.remote)
		if err == nil && now != address {
			err = fmt.Errorf("the address of %s has changed: start this program again", w.remote)
		}
		return err
	}
	host, err := os.Hostname()
	if m.Name = cmp.Or(w.name, host); m.Name == "" {
		return nil, nil, err
	}
	plans := plansOf(ctx, m.Dir, m.Coven)
	if len(plans) == 0 {
		return nil, nil, fmt.Errorf("%s is too old for this program: it names no versions of plans", m.Coven)
	}
	return m, plans, nil
}

// plansOf returns the versions of plans that a coven supports.
func plansOf(ctx context.Context, dir, coven string) []int {
	var version struct {
		Plans []int `json:"plans"`
	}
	text, err := output(ctx, dir, coven, "version", "--json")
	if err != nil || json.Unmarshal([]byte(text), &version) != nil {
		return nil
	}
	return version.Plans
}

// dial connects to the server as identity, as soon as it answers. It calls wait with the first error.
func dial(ctx context.Context, on, identity string, handler client.MetricsHandler, wait func(error)) (client.Client, error) {
	options, err := connect.Options(on, identity)
	if err != nil {
		return nil, err
	}
	options.MetricsHandler = handler
	for told := false; ; told = true {
		c, err := client.DialContext(ctx, options)
		if err == nil || ctx.Err() != nil || !connect.IsAway(err) {
			return c, err
		}
		if !told {
			wait(err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// start starts a worker for each queue of the machine. They share the places for sessions.
func (w *work) start(c client.Client, m *machine.Machine, plans []int) ([]worker.Worker, error) {
	others, err := worker.NewFixedSizeSlotSupplier(100)
	if err != nil {
		return nil, err
	}
	places, err := worker.NewCompositeTuner(worker.CompositeTunerOptions{
		ActivitySlotSupplier: m.Places, WorkflowSlotSupplier: others, LocalActivitySlotSupplier: others, NexusSlotSupplier: others, SessionActivitySlotSupplier: others,
	})
	if err != nil {
		return nil, err
	}
	failed := func(err error) {
		select {
		case w.failed <- err:
		default: // another one has
		}
	}
	accounts := worker.New(c, account.Queue, worker.Options{
		LocalActivityWorkerOnly: true, StickyScheduleToStartTimeout: account.StickyTime, Identity: m.Name, OnFatalError: failed,
	})
	accounts.RegisterWorkflowWithOptions(account.Run, workflow.RegisterOptions{Name: account.Name})
	if err := accounts.Start(); err != nil {
		return nil, err
	}
	all := []worker.Worker{accounts}
	add := func(queue string, workflows bool) error {
		one := worker.New(c, queue, worker.Options{
			Tuner: places, DisableWorkflowWorker: !workflows, WorkerStopTimeout: w.drain + 2*grace,
			MaxHeartbeatThrottleInterval: time.Second, DefaultHeartbeatThrottleInterval: time.Second, Identity: m.Name,
			StickyScheduleToStartTimeout: session.StickyTime, OnFatalError: failed,
		})
		if workflows {
			one.RegisterWorkflowWithOptions(session.Run, workflow.RegisterOptions{Name: session.Name})
			one.RegisterWorkflowWithOptions(turn.Run, workflow.RegisterOptions{Name: turn.Name})
		}
		one.RegisterActivity(m)
		err := one.Start()
		if err == nil {
			all = append(all, one)
		}
		return err
	}
	for _, plan := range plans {
		err := errors.Join(add(session.Queue(m.Repository, plan, ""), true), add(session.OwnQueue(m.Repository, plan, m.Name), false))
		for _, label := range w.labels {
			err = errors.Join(err, add(session.Queue(m.Repository, plan, label), true)) // no workflow is there, but the list shows the machine while its places are taken
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// findCoven returns the path of coven.
func findCoven(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), "coven")); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("coven")
}

// logf prints a line with the time.
func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
