package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/coven-run/coven/internal/process/memoryfile"
	"github.com/coven-run/coven/internal/process/timelimit"
)

// Start starts a program and returns when it runs. It returns an error if the program
// does not exist (ErrNotFound, fs.ErrNotExist), must not be executed, or its working
// directory does not exist. When ctx is done, the child is stopped with the context's
// cause.
func (l *Launcher) Start(ctx context.Context, spec Spec) (*Child, error) {
	child, err := l.start(ctx, spec)
	if path, ok := err.(*fs.PathError); ok && path.Path == spec.Argv[0] { //nolint:errorlint // a wrapped error has more details
		return nil, &fs.PathError{Op: "start", Path: path.Path, Err: path.Err}
	}
	if err != nil && len(spec.Argv) > 0 {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	if err != nil {
		return nil, fmt.Errorf("start child: %w", err)
	}
	return child, nil
}

func (l *Launcher) start(ctx context.Context, spec Spec) (*Child, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	spec, err := spec.completed()
	if err != nil {
		return nil, err
	}
	m, err := l.ready()
	if err != nil {
		return nil, err
	}
	c, err := l.spawn(ctx, m, spec)
	if err != nil {
		return nil, err
	}
	return c, c.waitStarted(ctx)
}

// spawn starts the shim, which may still fail to start the program.
func (l *Launcher) spawn(ctx context.Context, m mode, spec Spec) (*Child, error) {
	limits, err := spec.Boundary.limits(m)
	if err != nil {
		return nil, err
	}
	link, err := newLink(l.order(m, order{
		Argv: texts(spec.Argv), Dir: text(spec.Dir), Env: texts(spec.Env), Grace: spec.Grace,
		Limits: limits,
	}), spec.Boundary)
	if err != nil {
		return nil, err
	}
	c, err := newChild(m, spec, link)
	if err = errors.Join(err, link.openReads(spec.Boundary, limits)); err != nil {
		return nil, errors.Join(err, link.close())
	}
	cmd := l.shim(context.WithoutCancel(ctx), m, link)
	cmd.Stderr = c.shimErrors
	m.bind(cmd)
	c.detach = context.AfterFunc(ctx, func() { c.Stop(context.Cause(ctx)) })
	go c.listen()
	go c.supervise(cmd)
	return c, nil
}

// openOutput returns both ends of the program's output. The first one is non-blocking: see openTerminal.
func openOutput(spec Spec) (master, slave *os.File, err error) {
	if !spec.Pipe {
		return openTerminal(spec.Size)
	}
	if master, slave, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("make output pipe: %w", err)
	}
	return master, slave, nil
}

// newChild creates the program's streams; the shim gets their other ends.
func newChild(m mode, spec Spec, link *link) (*Child, error) {
	complaints, err := memoryfile.New("complaints")
	if err != nil {
		return nil, err
	}
	master, slave, err := openOutput(spec)
	if err != nil {
		return nil, errors.Join(err, complaints.Close())
	}
	input, stdin, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make input pipe: %w", err), closeAll(complaints, master, slave))
	}
	kept, err := keepTerminal(slave)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep terminal: %w", err), closeAll(complaints, master, slave, input, stdin))
	}
	link.theirs = append(link.theirs, input, slave) // inputFd, terminalFd
	c := &Child{
		mode: m, grace: spec.Grace, onStop: spec.OnStop, link: link, stdin: stdin, shimErrors: complaints,
		spawned: make(chan struct{}), up: make(chan struct{}),
		reported: make(chan struct{}), done: make(chan struct{}),
	}
	timeout := timelimit.New(spec.Timeout, func() bool { c.Stop(ErrTimeout); return true })
	idle := timelimit.New(spec.Idle, c.stopIdle)
	c.clocks = timelimit.Together(timeout, idle)
	c.output = newOutput(master, kept, spec.Transcript, idle.Touch, c.Stop)
	return c, nil
}

// stopIdle stops a child that printed nothing for too long.
func (c *Child) stopIdle() bool {
	if c.output.pending() {
		return false
	}
	c.Stop(ErrIdle)
	return true
}

// waitStarted waits until the program runs. If it cannot be started, waitStarted cleans up.
func (c *Child) waitStarted(ctx context.Context) error {
	select {
	case <-c.up:
		<-c.spawned
	case <-c.done:
	}
	select {
	case <-c.up:
		if ctx.Err() == nil {
			return nil
		}
	default:
	}
	err := c.Close()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.failed != nil:
		return c.failed.err()
	}
	return errors.Join(c.exit.Err, err)
}
