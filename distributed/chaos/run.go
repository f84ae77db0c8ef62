package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coven-run/coven/distributed/server/servertest"
)

// clock is the format of times in logs.
const clock = "15:04:05.000"

// A run has all parts of the world.
type run struct {
	o      options
	took   time.Duration
	ran    <-chan struct{} // closed when coven run has ended; nil afterwards
	over   int             // tasks
	before int             // those that were over when the run was continued
	idle   time.Duration   // processor time of this computer between the parts of the run
	kept
	server *servertest.Server
	origin *origin
	desk   *desk
	fleet  *fleet
}

// kept is the state that the next part of a run needs, if it is continued.
type kept struct {
	Begun time.Time
	Costs []cost
	Peak  int64 // of the server's memory, in bytes
}

// keptFile returns the file of kept.
func (o options) keptFile() string { return filepath.Join(o.Dir, "kept.json") }

// recall reads kept, so that the costs go on from the last one.
func (r *run) recall() error {
	text, err := os.ReadFile(r.o.keptFile())
	if err == nil {
		err = json.Unmarshal(text, &r.kept)
	}
	if err != nil {
		return err
	}
	r.over = r.Costs[len(r.Costs)-1].Over
	r.before, r.idle = r.over, busy()-r.Costs[len(r.Costs)-1].Busy
	return nil
}

// keep writes kept.
func (r *run) keep() error {
	text, err := json.Marshal(r.kept)
	if err == nil {
		err = os.WriteFile(r.o.keptFile()+".new", text, 0o644)
	}
	if err == nil {
		err = os.Rename(r.o.keptFile()+".new", r.o.keptFile())
	}
	return err
}

// prepare starts everything but the tasks.
func prepare(ctx context.Context, o options) (*run, error) {
	r := &run{o: o, kept: kept{Begun: time.Now()}}
	for _, path := range []*string{&r.o.Coven, &r.o.Worker} {
		full, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = full
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	err := bridge()
	if err == nil && o.Continue {
		err = r.recall()
	}
	if err != nil {
		return nil, err
	}
	if r.server, err = startServer(ctx, o); err != nil {
		return nil, err
	}
	if r.origin, err = newOrigin(ctx, o.Dir); err != nil {
		return nil, err
	}
	if r.desk, err = newDesk(ctx, r.o, r.server); err != nil {
		return nil, err
	}
	if r.fleet, err = newFleet(r.o, r.server); err != nil {
		return nil, err
	}
	for range o.Machines {
		if err := r.fleet.hire(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// startServer starts the server of the options.
func startServer(ctx context.Context, o options) (*servertest.Server, error) {
	dir := filepath.Join(o.Dir, "server")
	if !o.Postgres {
		return servertest.Start(ctx, dir)
	}
	options := servertest.TeamOptions{Host: gateway}
	if o.Keep {
		options.Database = filepath.Join(o.Dir, "pg")
	}
	team, err := servertest.StartTeam(ctx, dir, options)
	if err != nil {
		return nil, err
	}
	return team.Server, nil
}

// lifting is when the limits of the agents' account end.
const lifting = 10 * time.Second

// poll is the least pause between two looks of the person, which take at most a twentieth of the time, and between two that count the tasks.
const poll = 2 * time.Second

// next returns the time of the next look, when one has ended that began at a time.
func next(begun time.Time) <-chan time.Time { return time.After(max(poll, 20*time.Since(begun))) }

// work lets the person run and decide all tasks, while it disturbs.
func (r *run) work(ctx context.Context) error {
	if r.o.Continue {
		r.note("%d tasks go on after %d", r.o.Tasks, r.over)
	} else {
		r.Begun, r.Costs = time.Now(), []cost{{0, busy()}}
		r.note("%d tasks begin", r.o.Tasks)
	}
	disturbing, calm := context.WithTimeout(ctx, r.o.Disturb)
	defer calm()
	disturbed := make(chan error, 1)
	go func() { disturbed <- r.disturb(disturbing) }()
	go r.origin.maintain(disturbing)
	r.ran = r.desk.run(ctx)
	look, count, lift := time.After(poll), time.After(poll), time.After(lifting)
	for r.over < r.o.Tasks || r.ran != nil {
		select {
		case <-ctx.Done():
			r.settle()
			return fmt.Errorf("%d of %d tasks are over: %w", r.over, r.o.Tasks, ctx.Err())
		case err := <-disturbed:
			if disturbed = nil; err != nil {
				return err
			}
		case <-lift:
			if err := os.WriteFile(filepath.Join(r.o.Dir, "script.yaml"), []byte(script(false)), 0o644); err != nil {
				return err
			}
		case <-r.ran:
			r.ran = nil
		case <-look:
			begun := time.Now()
			if err := r.desk.decide(ctx, r.running()); err != nil {
				r.note("the desk: %v", err)
			}
			look = next(begun)
		case <-count:
			begun := time.Now()
			r.count(ctx)
			count = next(begun)
		}
	}
	calm()
	r.took = time.Since(r.Begun)
	r.settle()
	if disturbed != nil {
		return <-disturbed
	}
	return nil
}

// count counts the tasks that are over.
func (r *run) count(ctx context.Context) {
	over, unbegun, err := r.desk.count(ctx, r.running(), r.ran == nil)
	if err != nil {
		r.note("the desk: %v", err)
		return
	}
	if len(unbegun) > 0 {
		r.note("coven run again, for %d tasks", len(unbegun))
		r.ran = r.desk.run(ctx, unbegun...)
	}
	if rss, err := r.server.RSS(); err == nil {
		r.Peak = max(r.Peak, rss)
	}
	if over != r.over {
		now, last := cost{over, busy() - r.idle}, r.Costs[len(r.Costs)-1]
		r.Costs = append(r.Costs, now)
		r.note("%d over, %d ms of processor time for each since the last line", over, now.since(last).Milliseconds())
	}
	r.over = over
	if err := r.keep(); err != nil {
		r.note("the costs: %v", err)
	}
}

// A cost is the processor time that this computer had used when a number of tasks was over.
type cost struct {
	Over int
	Busy time.Duration
}

// since returns the processor time of a task since an earlier cost.
func (c cost) since(earlier cost) time.Duration {
	return (c.Busy - earlier.Busy) / time.Duration(max(1, c.Over-earlier.Over))
}

// sample is the number of tasks whose cost is compared.
const sample = 500

// growth returns the processor time for each of the first tasks and of the last ones, if there are many.
func (r *run) growth() (first, last time.Duration, many bool) {
	end := r.Costs[len(r.Costs)-1]
	for i, c := range r.Costs {
		if first == 0 && c.Over >= sample {
			first = c.since(r.Costs[0])
		}
		if c.Over <= end.Over-sample {
			last = end.since(r.Costs[i])
		}
	}
	return first, last, end.Over >= 3*sample
}

// settle waits for the commands of the person, and for the machines that come back.
func (r *run) settle() {
	if r.ran != nil {
		<-r.ran
	}
	r.desk.group.Wait()
	r.fleet.signals.Wait()
}

// note prints a line with the time since the beginning.
func (r *run) note(format string, args ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(r.Begun).Seconds(), fmt.Sprintf(format, args...))
}

// close ends everything that is left.
func (r *run) close() error {
	var all error
	for _, m := range r.fleet.all {
		select {
		case <-m.ended:
		default:
			all = errors.Join(all, r.fleet.kill(m))
		}
	}
	r.origin.stop()
	return errors.Join(all, r.server.Stop())
}
