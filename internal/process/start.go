package process

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Start runs a program and returns when it runs: a program that is not there
// (ErrNotFound, fs.ErrNotExist), may not be run or has no such directory to
// start in is an error here. When ctx is done the child is stopped, with the
// context's cause.
func (l *Launcher) Start(ctx context.Context, spec Spec) (*Child, error) {
	child, err := l.start(ctx, spec)
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
	return c, c.arrive(ctx)
}

// spawn starts the shim, which may still fail to start the program.
func (l *Launcher) spawn(ctx context.Context, m mode, spec Spec) (*Child, error) {
	link, err := newLink(l.order(m, order{
		Argv: texts(spec.Argv), Dir: text(spec.Dir), Env: texts(spec.Env), Grace: spec.Grace,
	}))
	if err != nil {
		return nil, err
	}
	c, err := newChild(m, spec, link)
	if err != nil {
		return nil, errors.Join(err, link.close())
	}
	cmd := l.shim(context.WithoutCancel(ctx), m, link)
	cmd.Stderr = c.complaints
	m.bind(cmd)
	c.detach = context.AfterFunc(ctx, func() { c.Stop(context.Cause(ctx)) })
	go c.listen()
	go c.supervise(cmd)
	return c, nil
}

// newChild makes the program's streams, whose other ends the shim gets.
func newChild(m mode, spec Spec, link *link) (*Child, error) {
	complaints, err := memoryFile("complaints")
	if err != nil {
		return nil, err
	}
	master, slave, err := openTerminal(spec.Size)
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
		mode: m, grace: spec.Grace, onStop: spec.OnStop, link: link, stdin: stdin, complaints: complaints,
		spawned: make(chan struct{}), up: make(chan struct{}),
		heard: make(chan struct{}), done: make(chan struct{}),
	}
	timeout := newClock(spec.Timeout, func() bool { c.Stop(ErrTimeout); return true })
	idle := newClock(spec.Idle, c.silent)
	c.clocks = newClocks(timeout, idle)
	c.output = newOutput(master, kept, spec.Transcript, idle.touch, c.Stop)
	return c, nil
}

// silent stops a child that said nothing for too long.
func (c *Child) silent() bool {
	if c.output.pending() {
		return false
	}
	c.Stop(ErrIdle)
	return true
}

// arrive waits until the program runs; if it cannot, everything is cleaned up.
func (c *Child) arrive(ctx context.Context) error {
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
