// Package fleet hands sessions that a git remote keeps to the workers of other machines.
//
// It talks to coven-worker, a program of the module distributed, so that coven needs neither a server nor a client of one. The two exchange
// lines of JSON on the program's standard input and output: a [Request], and for each the [Reply] with its number. They contain names and
// hashes only. The results are in the record of the session on the remote.
package fleet

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/text/oneline"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/worktree/live"
)

// Program is the name of the program.
const Program = "coven-worker"

// Operations of a Request.
const (
	opRun    = "run"    // start the session, or wake it if it waits; the reply comes when no machine runs it
	opCheck  = "check"  // nothing; the reply comes when the server has answered
	opRecall = "recall" // stop the session; the reply comes when no machine runs it
)

// A Request is a line that coven writes.
type Request struct {
	Number  int    `json:"number"`
	Op      string `json:"op"`
	Task    string `json:"task"`
	Remote  string `json:"remote"`            // name of the git remote
	Ref     string `json:"ref"`               // of the session on the remote
	Plan    int    `json:"plan"`              // version of plans: only machines whose coven supports it get the session
	Needs   string `json:"needs,omitempty"`   // label of the machines that may run it
	Prefers string `json:"prefers,omitempty"` // label of the machines that should
	Cost    int    `json:"cost,omitempty"`    // number of places that it needs on a machine; 0 means 1
}

// A Reply is a line that the program writes.
type Reply struct {
	Number int    `json:"number"`
	Status string `json:"status,omitempty"` // of a session that is over and has not landed; empty if the server does not know it
	Error  string `json:"error,omitempty"`  // one line
}

// A Fleet is the connection to the workers behind one server. Several goroutines may use it at once.
type Fleet struct {
	On   string // address of the server: HOST:PORT
	Dir  string // checkout of the repository
	Self func() (string, error)

	mu      sync.Mutex
	input   io.WriteCloser
	process *exec.Cmd
	said    *tail
	next    int
	waiting map[int]chan Reply
	ended   error // after the program has ended
}

// On returns the fleet of a server, or nil without an address.
func On(address, dir string, self func() (string, error)) *Fleet {
	if address == "" {
		return nil
	}
	return &Fleet{On: address, Dir: dir, Self: self}
}

// Command returns the command line of the program with arguments. The program is in the PATH or beside coven.
func Command(ctx context.Context, self func() (string, error), args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(Program)
	if own, selfErr := self(); err != nil && selfErr == nil {
		path, err = exec.LookPath(filepath.Join(filepath.Dir(own), Program))
	}
	if err != nil {
		return nil, exit.Usagef("go install github.com/coven-run/coven/distributed/cmd/"+Program+"@latest", "%s is not installed", Program)
	}
	return exec.CommandContext(ctx, path, args...), nil
}

// Run lets the workers run the session of a task, and returns when it rests or is over, in that case with its status. The labels of the task
// choose the machines: with needs:LABEL only those with the label, with prefers:LABEL those first, and with cost:N it needs N places there.
func (f *Fleet) Run(ctx context.Context, task, remote string, labels []string) (string, error) {
	r := Request{Op: opRun, Task: task, Remote: remote}
	for _, label := range labels {
		if name, ok := strings.CutPrefix(label, "needs:"); ok {
			r.Needs = name
		} else if name, ok := strings.CutPrefix(label, "prefers:"); ok {
			r.Prefers = name
		} else if cost, ok := strings.CutPrefix(label, "cost:"); ok {
			r.Cost, _ = strconv.Atoi(cost) // a label of others may look like that
		}
	}
	return f.ask(ctx, r)
}

// Check returns an error unless the program is installed and the server answers.
func (f *Fleet) Check(ctx context.Context) error {
	_, err := f.ask(ctx, Request{Op: opCheck})
	return err
}

// Recall stops the session of a task, and returns when no machine runs it.
func (f *Fleet) Recall(ctx context.Context, task, remote string) error {
	_, err := f.ask(ctx, Request{Op: opRecall, Task: task, Remote: remote})
	return err
}

// ask writes a request and waits for its reply.
func (f *Fleet) ask(ctx context.Context, r Request) (string, error) {
	r.Ref, r.Plan = live.Ref(r.Task), grimoires.PlanVersion
	reply, err := f.write(&r)
	if err != nil {
		return "", err
	}
	select {
	case got, open := <-reply:
		switch {
		case !open:
			return "", f.ended
		case got.Error != "":
			return "", f.failed(got.Error)
		}
		return got.Status, nil
	case <-ctx.Done():
		f.forget(r.Number)
		return "", context.Cause(ctx)
	}
}

// failed returns the error of a request.
func (f *Fleet) failed(text string) error {
	return exit.Personf("coven worker list --on "+shellword.Word(f.On), "the workers on %s: %s", f.On, oneline.Of(text))
}

// write starts the program if necessary, and writes a request, which gets its number.
func (f *Fleet) write(r *Request) (<-chan Reply, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != nil {
		return nil, f.ended
	}
	if f.process == nil {
		if err := f.start(); err != nil {
			return nil, err
		}
	}
	f.next++
	r.Number = f.next
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	reply := make(chan Reply, 1)
	f.waiting[r.Number] = reply
	if _, err := f.input.Write(append(line, '\n')); err != nil {
		delete(f.waiting, r.Number)
		return nil, f.failed(err.Error())
	}
	return reply, nil
}

func (f *Fleet) forget(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, number)
}

func (f *Fleet) start() error {
	cmd, err := Command(context.Background(), f.Self, "desk", "--on", f.On)
	if err != nil {
		return err
	}
	f.said = &tail{}
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = f.Dir, f.said, time.Second
	if f.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	f.process, f.waiting = cmd, map[int]chan Reply{}
	go f.read(output)
	return nil
}

// read gives each reply to its request until the program ends.
func (f *Fleet) read(output io.Reader) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var r Reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // not a line of the protocol
		}
		f.mu.Lock()
		if reply := f.waiting[r.Number]; reply != nil {
			delete(f.waiting, r.Number)
			reply <- r
		}
		f.mu.Unlock()
	}
	err := f.process.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = f.failed(cmp.Or(strings.TrimPrefix(f.said.String(), Program+": "), fmt.Sprintf("%s ended: %v", Program, err)))
	for _, reply := range f.waiting {
		close(reply)
	}
	f.waiting = nil
}

// Close ends the program. Sessions go on.
func (f *Fleet) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.process != nil && f.ended == nil {
		_ = f.input.Close() // it ends at the end of its input
	}
}

// tail holds the last line that the program has written to standard error.
type tail struct {
	mu   sync.Mutex
	last []byte
}

// maxSaid limits the last line, in bytes.
const maxSaid = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-maxSaid):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneline.Of(string(t.last))
}
