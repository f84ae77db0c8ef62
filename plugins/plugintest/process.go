package plugintest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Variables that start a plugin; see docs/formats/plugin.md.
const (
	cookie   = "COVEN_PLUGIN=coven.plugin.v1"
	versions = "PLUGIN_PROTOCOL_VERSIONS"
	cert     = "PLUGIN_CLIENT_CERT"
)

// drain limits how long a pipe is read that a remaining process of the plugin holds open.
const drain = 2 * time.Second

// process is a plugin process that the suite started itself.
type process struct {
	cmd    *exec.Cmd
	lines  chan string   // of standard output
	stderr *tail         // the end of standard error
	done   chan struct{} // closed when the process has exited and its output is read
	code   int
}

// launch starts the plugin with additional variables.
func (s *suite) launch(ctx context.Context, env ...string) (*process, error) {
	p := &process{lines: make(chan string, 1), stderr: &tail{}, done: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, s.binary, s.options.Args...)
	p.cmd.Env = append(s.home.environment(), append(env, socketDir+"="+s.home.sockets)...)
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = drain // its child processes may keep the output open
	apart(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the plugin: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the plugin: %w", err)
	}
	read := make(chan struct{})
	go p.read(out, read)
	go func() {
		select { // Wait closes the pipe, so the reader must finish first
		case <-read:
		case <-ctx.Done():
		}
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
		close(p.done)
	}()
	return p, nil
}

// read sends the first line to p.lines and discards the rest.
func (p *process) read(out io.Reader, done chan<- struct{}) {
	defer close(done)
	defer close(p.lines)
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	if line != "" {
		p.lines <- strings.TrimRight(line, "\r\n")
	}
	if err == nil {
		_, _ = io.Copy(io.Discard, r)
	}
}

// line waits for the first line of standard output. ok is false if there is none.
func (p *process) line(ctx context.Context, limit time.Duration) (line string, ok bool, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok = <-p.lines:
		return line, ok, nil
	case <-timer.C:
		return "", false, fmt.Errorf("no line on standard output within %v%s", limit, p.said())
	case <-ctx.Done():
		return "", false, context.Cause(ctx)
	}
}

// ended waits until the process has exited.
func (p *process) ended(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return fmt.Errorf("process has not exited within %v%s", limit, p.said())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// said returns the end of standard error for an error message.
func (p *process) said() string {
	if text := strings.TrimSpace(p.stderr.String()); text != "" {
		return "; standard error: " + text
	}
	return ""
}

// end kills the remaining processes and removes their files.
func (s *suite) end(p *process) {
	endGroup(p.cmd)
	endMarked(s.home.mark())
	<-p.done
	s.home.sweep()
}

// tail is a writer that stores the end of its input.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// maxTail is the size of a tail, in bytes.
const maxTail = 2 << 10

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = bytes.Clone(t.text[max(len(t.text)-maxTail, 0):])
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), "")
}

// plain is a plugins.Starter without a sandbox.
func (h *home) plain(argv ...string) (*exec.Cmd, func(), error) {
	if len(argv) == 0 {
		return nil, nil, errors.New("start the plugin: nothing to start")
	}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // the host ends it
	apart(cmd)
	return cmd, func() {
		if cmd.Process != nil {
			endGroup(cmd)
		}
	}, nil
}

// starter returns the starter in Options. It defaults to plain.
func (h *home) starter(o Options) func(argv ...string) (*exec.Cmd, func(), error) {
	if o.Start == nil {
		return h.plain
	}
	return o.Start
}
