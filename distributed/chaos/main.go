// Command chaos lets workers run tasks while it kills, stops and cuts them off, and then checks the end of each task.
//
// It runs in namespaces of its own (processes, network, mounts, host name), and each machine in further ones. So several can run
// at once, addresses and ports are constants, and if chaos is killed, the kernel ends everything that it has started. It needs
// Linux, root, git and iproute2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	Dir       string
	Coven     string
	Worker    string
	Tasks     int
	Machines  int
	Jobs      int // sessions at once on a machine
	Heartbeat time.Duration
	Kill      time.Duration // between kills; 0 for none, like the following ones
	Hang      time.Duration
	Cut       time.Duration
	Server    time.Duration // until the server is killed, once
	Origin    time.Duration // until the origin is away, once
	Disturb   time.Duration // after which no disturbance begins
	Limit     time.Duration // after which the run fails
	Postgres  bool          // the server for a team, with PostgreSQL
	Measure   bool          // do not fail if a number is over its limit
	Keep      bool
	Continue  bool // a run whose processes were all killed
}

func (o *options) flags(f *flag.FlagSet) {
	f.StringVar(&o.Dir, "dir", "", "directory for everything (default: a temporary one)")
	f.StringVar(&o.Coven, "coven", "bin/coven", "coven")
	f.StringVar(&o.Worker, "worker", "bin/coven-worker", "coven-worker")
	f.IntVar(&o.Tasks, "tasks", 60, "number of tasks")
	f.IntVar(&o.Machines, "machines", 4, "number of machines at once")
	f.IntVar(&o.Jobs, "j", 2, "sessions at once on a machine")
	f.DurationVar(&o.Heartbeat, "heartbeat", 10*time.Second, "a machine that is silent for so long is lost")
	f.DurationVar(&o.Kill, "kill", 3*time.Second, "kill a machine and delete its disk each `DURATION`; 0: never")
	f.DurationVar(&o.Hang, "hang", 11*time.Second, "stop a machine for 15 s each `DURATION`; 0: never")
	f.DurationVar(&o.Cut, "cut", 17*time.Second, "cut the link of a machine for 12 s each `DURATION`; 0: never")
	f.DurationVar(&o.Server, "server", 25*time.Second, "kill the server after `DURATION`, and start it again; 0: never")
	f.DurationVar(&o.Origin, "origin", 50*time.Second, "stop the origin for 20 s after `DURATION`; 0: never")
	f.DurationVar(&o.Disturb, "for", 90*time.Second, "disturb for `DURATION`")
	f.DurationVar(&o.Limit, "limit", 20*time.Minute, "fail after `DURATION`")
	f.BoolVar(&o.Postgres, "postgres", false, "the server for a team, with PostgreSQL")
	f.BoolVar(&o.Measure, "measure", false, "do not fail if a number is over its limit, on a machine with other work")
	f.BoolVar(&o.Keep, "keep", false, "keep the directory")
	f.BoolVar(&o.Continue, "continue", false, "continue a run with -postgres and -keep in -dir, as after a power cut")
}

func main() {
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == initArg:
		err = runInit(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == insideArg:
		err = inside(os.Args[2:])
	default:
		err = outside(os.Args[1:])
	}
	status := exited(0)
	if errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// insideArg is the first argument of the process that does the work, in namespaces of its own.
const insideArg = "inside"

// outside starts chaos in its namespaces, and removes its directory afterwards.
func outside(args []string) error {
	runtime.LockOSThread() // the kernel kills the child when the thread ends that has started it
	o := options{}
	f := flag.NewFlagSet("chaos", flag.ExitOnError)
	o.flags(f)
	_ = f.Parse(args) // it exits
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "chaos-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	if !o.Keep {
		defer os.RemoveAll(dir) //nolint:errcheck // the report is what counts
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := inNamespaces(ctx, "desk", "0", append([]string{"/proc/self/exe", insideArg, "-dir=" + dir}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if n := time.Duration(o.Tasks); n > 0 {
		fmt.Printf("processor time per task, with the origin and the server: %d ms\n", (processor(cmd) / n).Milliseconds())
	}
	if err != nil {
		if cmd.ProcessState != nil && cmd.ProcessState.Exited() {
			return exited(cmd.ProcessState.ExitCode())
		}
		return err
	}
	return nil
}

// inside does the work.
func inside(args []string) error {
	o := options{}
	f := flag.NewFlagSet("chaos", flag.ExitOnError)
	o.flags(f)
	dir := args[0]
	_ = f.Parse(append(args[1:], dir)) // the directory is the last one that counts
	if err := f.Parse([]string{dir}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.Limit)
	defer cancel()
	r, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer r.close() //nolint:errcheck // the run has failed
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.verify(ctx)
}
