package git

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/internal/file/regularfile"
	"github.com/coven-run/coven/worktree/internal/ref"
)

// Transact applies all edits or none. The message is written to the reflogs of the refs that have one.
func (r Repo) Transact(ctx context.Context, message string, edits ...ref.Edit) error {
	if err := r.syncObjects(); err != nil {
		return err
	}
	quiet := r.quiet(edits)
	r.Settings = append(slices.Clip(r.Settings), Setting{"core.fsyncMethod", "fsync"})
	if quiet {
		return r.Store.refs.apply(ctx, r, lines(edits))
	}
	_, err := r.Feed(ctx, lines(edits), "update-ref", "-m", message, "--stdin", "-z")
	return err
}

// syncObjects waits until the objects are on disk if the file system does not write changes in the order in
// which they were made: otherwise a ref could be on disk before the objects that it names.
func (r Repo) syncObjects() error {
	unordered, err := writesUnordered(r.Dir)
	if err != nil || !unordered {
		return err
	}
	return regularfile.SyncFS(r.Dir)
}

// lines returns the edits in the input format of `git update-ref`.
func lines(edits []ref.Edit) []byte {
	var in bytes.Buffer
	for _, e := range edits {
		in.WriteString(e.Command())
	}
	return in.Bytes()
}

// quietPrefix is the prefix of coven's own refs. git keeps no reflog of them unless the user wants reflogs
// of all refs. In that case the message does not matter.
const quietPrefix = "refs/coven/"

// quiet reports whether the shared git process can make the edits. It cannot hold the lock of an operation,
// and its transactions have no message.
func (r Repo) quiet(edits []ref.Edit) bool {
	if r.Store == nil || r.Store.dir != r.Dir || r.Hold != nil || r.ObjectDir != "" || len(r.Settings)+len(r.Env) > 0 {
		return false
	}
	for _, e := range edits {
		if !strings.HasPrefix(e.Ref(), quietPrefix) {
			return false
		}
	}
	return true
}

// A refWriter makes ref transactions with a shared git update-ref process. It starts the process when
// needed, and ends it when it has been idle for some time. The zero value has no process.
type refWriter struct {
	mu      sync.Mutex
	running *refProcess
	used    int // number of transactions so far
}

// idleFor is the time until an idle process is ended.
const idleFor = 2 * time.Second

func (w *refWriter) apply(ctx context.Context, r Repo, edits []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return failure(ctx, refArgs, "", err)
	}
	reused := w.running != nil
	prepared, err := w.try(ctx, r, edits)
	if err != nil && reused && !prepared && ctx.Err() == nil {
		_, err = w.try(ctx, r, edits) // the idle process may have been killed; otherwise git refuses the edits again
	}
	if w.used++; err == nil {
		used := w.used
		time.AfterFunc(idleFor, func() { w.endIdle(used) })
	}
	return err
}

func (w *refWriter) try(ctx context.Context, r Repo, edits []byte) (prepared bool, err error) {
	if w.running == nil {
		if w.running, err = startRefProcess(r); err != nil {
			return false, failure(ctx, refArgs, "", err)
		}
	}
	p := w.running
	prepared, err = p.transact(ctx, edits)
	if err != nil {
		w.running = nil
		err = p.end(ctx, err)
	}
	return prepared, err
}

// endIdle ends the process, unless there was a transaction since.
func (w *refWriter) endIdle(used int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running != nil && w.used == used {
		_ = w.running.end(context.Background(), nil) // nothing can be lost between transactions
		w.running = nil
	}
}

// Close ends the git process of the Store, if any. The Store can still be used.
func (s *Store) Close() {
	s.refs.mu.Lock()
	defer s.refs.mu.Unlock()
	if s.refs.running != nil {
		_ = s.refs.running.end(context.Background(), nil)
		s.refs.running = nil
	}
}

// A refProcess is a running git update-ref.
type refProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said bytes.Buffer // standard error, complete after end
	kill context.CancelCauseFunc
	ctx  context.Context //nolint:containedctx // context of the process, which outlives a transaction
}

var refArgs = []string{"update-ref", "--stdin", "-z"}

func startRefProcess(r Repo) (*refProcess, error) {
	p := &refProcess{}
	p.ctx, p.kill = context.WithCancelCause(context.Background())
	p.cmd = r.command(p.ctx, refArgs)
	p.cmd.Stderr = &p.said
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// transact makes one transaction. If there is an error, prepared reports whether git may have committed it
// anyway.
func (p *refProcess) transact(ctx context.Context, edits []byte) (prepared bool, err error) {
	defer context.AfterFunc(ctx, func() { p.kill(context.Cause(ctx)) })()
	defer watchForPipes(p.cmd, p.kill)()
	if err := p.send(append(append([]byte("start\x00"), edits...), "prepare\x00"...), "start", "prepare"); err != nil {
		return false, err
	}
	return true, p.send([]byte("commit\x00"), "commit")
}

// send writes commands and waits until git has confirmed them.
func (p *refProcess) send(commands []byte, done ...string) error {
	if _, err := p.in.Write(commands); err != nil {
		return err
	}
	for _, name := range done {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return err
		}
		if line != name+": ok\n" {
			return fmt.Errorf("git update-ref answered %q", line)
		}
	}
	return nil
}

// end ends the process. If cause is not nil, it returns an error with git's message.
func (p *refProcess) end(ctx context.Context, cause error) error {
	_ = p.in.Close()
	err := p.cmd.Wait()
	if ctx.Err() == nil && p.ctx.Err() != nil {
		err = context.Cause(p.ctx)
	}
	p.kill(nil)
	if cause == nil {
		return nil
	}
	if err == nil {
		err = cause
	}
	return failure(ctx, refArgs, p.said.String(), err)
}
