package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
)

// Command returns a command that runs argv contained, with whatever standard
// streams, Dir and Env the caller then sets on it; argv[0] is looked up on that
// Env's PATH. It is for plugin hosts that want to start, wait and kill by
// themselves. The command's exit code is the program's, 128 + the signal when
// one ended it, 127 when it could not be started, with the reason on standard
// error.
//
// When coven dies or the command is killed, the whole tree is killed. release
// must be called once, after Wait or in place of Start; it returns when nothing
// of the tree is alive. Leave SysProcAttr and ExtraFiles alone.
func (l *Launcher) Command(argv ...string) (cmd *exec.Cmd, release func(), err error) {
	if err := (Spec{Argv: argv}).check(); err != nil {
		return nil, nil, fmt.Errorf("prepare command: %w", err)
	}
	m, err := l.ready()
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", argv[0], err)
	}
	link, err := newLink(l.order(m, order{Argv: texts(argv), Inherit: true}))
	if err != nil {
		return nil, nil, fmt.Errorf("prepare %s: %w", argv[0], err)
	}
	cmd = l.shim(context.Background(), m, link)
	cmd.Env = nil
	return cmd, func() { link.release(m) }, nil
}

// release makes what is left of the tree end, by looking dead to the shim, and
// waits for it.
func (l *link) release(m mode) {
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
