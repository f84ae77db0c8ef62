package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
)

// Command returns a command that runs argv contained. The caller may set its standard
// streams, Dir and Env; argv[0] is looked up on the PATH in Env. It is for plugin
// hosts that start, wait and kill by themselves. The command's exit code is the
// program's, 128 + the signal that ended it, or 127 if it could not be started, with
// the reason on standard error.
//
// If coven dies or the command is killed, the whole tree is killed. release must be
// called once, after Wait or instead of Start; it returns when no process of the tree
// is alive. The caller must not change SysProcAttr and ExtraFiles.
func (l *Launcher) Command(argv ...string) (cmd *exec.Cmd, release func(), err error) {
	return l.CommandWithin(nil, argv...)
}

// CommandWithin is Command with a boundary, which may be nil.
func (l *Launcher) CommandWithin(b *Boundary, argv ...string) (cmd *exec.Cmd, release func(), err error) {
	if err := (Spec{Argv: argv, Boundary: b}).check(); err != nil {
		return nil, nil, fmt.Errorf("prepare command: %w", err)
	}
	m, err := l.ready()
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", argv[0], err)
	}
	limits, err := b.limits(m)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", argv[0], err)
	}
	link, err := newLink(l.order(m, order{Argv: texts(argv), Inherit: true, Limits: limits}), b)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", argv[0], err)
	}
	cmd = l.shim(context.Background(), m, link)
	cmd.Env = nil
	return cmd, func() { link.release(m) }, nil
}

// release closes the link, which makes the shim end the rest of the tree, and waits
// for that.
func (l *link) release(m mode) {
	defer l.end()
	_ = l.handOver()
	_ = l.control.Close()
	main, over := 0, false
	for decoder, r := json.NewDecoder(l.status), (report{}); decoder.Decode(&r) == nil; {
		main, over = max(main, r.Main), over || r.Ended != nil
	}
	_, _ = io.Copy(io.Discard, l.status)
	_ = l.status.Close()
	if m.containment == ProcessGroup && main != 0 && !over { // the shim was killed
		endFamily(main)
	}
}
