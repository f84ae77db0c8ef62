package driver

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins/provider"
)

const (
	// maxTerminals limits the terminals of an agent CLI.
	maxTerminals = 16
	// maxTerminalOutput limits the kept output of a command, in bytes.
	maxTerminalOutput = 1 << 20
)

// terminals are the commands that coven runs for an agent CLI.
type terminals struct {
	ctx  context.Context // of the run
	work sync.WaitGroup

	mu      sync.Mutex
	all     map[string]*terminal // by ID
	last    int                  // number of the last one
	running int                  // running commands, including those of released terminals: a command may take long to die
}

// terminal is a command and the end of its output.
type terminal struct {
	kill  context.CancelFunc
	ended chan struct{} // closed when exit is set
	exit  process.Exit
	hide  func(string) string

	mu   sync.Mutex
	most int // maximum size of tail, in bytes
	tail []byte
	cut  bool // earlier output was dropped
}

func newTerminals(ctx context.Context) *terminals {
	return &terminals{ctx: ctx, all: map[string]*terminal{}}
}

// commandIn returns a shell command that runs do in its directory. dir is the worktree.
func commandIn(do provider.RunCommand, dir string) string {
	if do.Dir == "" || filepath.Clean(do.Dir) == filepath.Clean(dir) {
		return do.Command
	}
	return "cd " + shellword.Word(do.Dir) + " && " + do.Command
}

// start starts a command and returns its ID. It calls over when the command has ended.
func (t *terminals) start(host Host, command string, most int, over func()) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.all) == maxTerminals:
		return "", fmt.Errorf("there are %d terminals; release one first", maxTerminals)
	case t.running == maxTerminals:
		return "", fmt.Errorf("%d commands still run, some of which are being killed; try again later", maxTerminals)
	}
	t.running++
	t.last++
	id := "terminal-" + strconv.Itoa(t.last)
	if most <= 0 || most > maxTerminalOutput {
		most = maxTerminalOutput
	}
	ctx, kill := context.WithCancel(t.ctx)
	one := &terminal{kill: kill, ended: make(chan struct{}), most: most, hide: host.Hide}
	t.all[id] = one
	t.work.Go(func() {
		defer over()
		defer close(one.ended)
		defer kill()
		exit, err := host.RunCommand(ctx, command, one)
		if err != nil {
			_, _ = one.Write([]byte(err.Error())) // cannot fail
			exit.Code = max(exit.Code, 1)
		}
		one.exit = exit
		t.mu.Lock()
		t.running--
		t.mu.Unlock()
	})
	return id, nil
}

// use performs an operation on a terminal.
func (t *terminals) use(ctx context.Context, do provider.UseTerminal) (output string, state provider.Terminal, err error) {
	t.mu.Lock()
	one := t.all[do.ID]
	if do.Do == provider.TerminalRelease {
		delete(t.all, do.ID)
	}
	t.mu.Unlock()
	if one == nil {
		return "", state, fmt.Errorf("there is no terminal %.40q", do.ID)
	}
	switch do.Do {
	case provider.TerminalOutput:
	case provider.TerminalKill, provider.TerminalRelease:
		one.kill()
	case provider.TerminalAwait:
		select {
		case <-one.ended:
		case <-ctx.Done():
		}
	default:
		return "", state, errors.New("the provider plugin wants something that coven cannot do with a terminal")
	}
	output, state = one.state()
	state.ID = do.ID
	return output, state, nil
}

// close kills all commands and waits for them.
func (t *terminals) close() {
	t.mu.Lock()
	for _, one := range t.all {
		one.kill()
	}
	t.mu.Unlock()
	t.work.Wait()
}

// Write appends to the kept end of the output. It never fails.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tail = append(t.tail, p...)
	if len(t.tail) > 2*t.most { // trim rarely, because it moves bytes
		t.trim()
	}
	return len(p), nil
}

func (t *terminal) trim() {
	extra := len(t.tail) - t.most
	if extra <= 0 {
		return
	}
	for extra < len(t.tail) && !utf8.RuneStart(t.tail[extra]) {
		extra++
	}
	t.cut = true
	t.tail = append(t.tail[:0], t.tail[extra:]...)
}

// state returns the output so far, and whether the command has ended.
func (t *terminal) state() (output string, state provider.Terminal) {
	select {
	case <-t.ended:
		state.Exited, state.Code = true, t.exit.Code
		if t.exit.Signal != 0 {
			state.Signal = t.exit.Signal.String()
		}
	default:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
	state.Truncated = t.cut
	return t.hide(strings.ToValidUTF8(string(t.tail), "\uFFFD")), state
}
