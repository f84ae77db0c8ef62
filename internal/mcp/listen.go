package mcp

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/tool"
)

// helloTimeout limits how long a caller may take to send its token.
const helloTimeout = 10 * time.Second

// Listener is the socket for one run of an agent.
type Listener struct {
	dir      string
	listener *net.UnixListener
	token    string
	serverOf func(*calls) *sdk.Server
	admit    func(pid int) bool
	refused  func(error)
	excuse   func(pid int) string
	refuse   func(why string) *sdk.Server
	member   func(pid int) (depth int, ok bool)

	met    atomic.Bool // a caller has been admitted
	budget budget
	open   chan struct{} // has an item for each open connection
	lost   chan struct{}
	closed sync.WaitGroup
	cancel context.CancelFunc
}

// Options configures a Listener.
type Options struct {
	Version string
	// Dir is the parent of the private directory. Its path must be short: the path of a
	// socket has at most 107 bytes, 103 on macOS.
	Dir     string
	Decider decider
	// Admit reports whether the process belongs to the agent's process tree.
	Admit func(pid int) bool
	// Refused is called for every refused caller.
	Refused func(error)
	// Excuse returns the explanation for a refused caller. It returns "" for a stranger, who must
	// learn nothing. May be nil.
	Excuse func(pid int) string
	// Member returns the depth of the running agent that owns a process. May be nil.
	Member func(pid int) (depth int, ok bool)
	// Tools are the tools that the agent may call.
	Tools []tool.Tool
}

// Listen opens a socket in a private directory.
func Listen(ctx context.Context, o Options) (*Listener, error) {
	dir, err := os.MkdirTemp(o.Dir, "gate-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the gate's socket: %w", err)
	}
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "gate"), Net: "unix"})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the gate's socket: %w", err), os.RemoveAll(dir))
	}
	ctx, cancel := context.WithCancel(ctx)
	l := &Listener{
		dir: dir, listener: socket, token: rand.Text(),
		serverOf: func(order *calls) *sdk.Server { return newServer(o.Version, o.Decider, o.Tools, order) },
		admit:    o.Admit, refused: o.Refused, excuse: o.Excuse, member: o.Member,
		refuse: func(why string) *sdk.Server { return newRefusal(o.Version, why, o.Tools) }, open: make(chan struct{}, maxConnections), lost: make(chan struct{}), cancel: cancel,
	}
	l.closed.Go(func() { l.accept(ctx) })
	return l, nil
}

// Dir returns the private directory of the socket. It may also contain files for the
// agent CLI.
func (l *Listener) Dir() string { return l.dir }

// Env returns the variables that the bridge needs.
func (l *Listener) Env() []string {
	return []string{SocketEnv + "=" + filepath.Join(l.dir, "gate"), TokenEnv + "=" + l.token}
}

// Connected reports whether the agent's CLI has ever connected.
func (l *Listener) Connected() bool { return l.met.Load() }

// Lost returns a channel that is closed when the first admitted connection ends. If the agent is still running,
// it has lost its gate. Later connections come from commands that the agent runs.
func (l *Listener) Lost() <-chan struct{} { return l.lost }

// Close ends all connections and removes the directory.
func (l *Listener) Close() error {
	l.cancel()
	err := l.listener.Close()
	l.closed.Wait()
	return errors.Join(err, os.RemoveAll(l.dir))
}

func (l *Listener) accept(ctx context.Context) {
	for {
		conn, err := l.listener.AcceptUnix()
		if err != nil {
			return
		}
		select {
		case l.open <- struct{}{}:
		default:
			_ = conn.Close() // there are too many
			continue
		}
		l.closed.Go(func() {
			defer func() { <-l.open }()
			defer context.AfterFunc(ctx, func() { conn.Close() })() //nolint:errcheck // the connection is over either way
			l.serve(ctx, conn)
		})
	}
}

func (l *Listener) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close() //nolint:errcheck // the connection is over either way
	in := bufio.NewReader(conn)
	pid, err := l.authenticate(conn, in)
	switch {
	case errors.Is(err, errAsks):
		l.answerMember(conn, pid)
		return
	case err != nil:
		l.refused(err)
		l.explain(ctx, conn, in, pid)
		return
	}
	if l.met.CompareAndSwap(false, true) { // the agent CLI; it runs nothing before it is connected
		defer close(l.lost)
	}
	// The session ends when the bridge closes the connection, so the error carries no
	// information.
	l.run(ctx, conn, in, l.serverOf)
}

// run serves a connection with the server that serverOf returns.
func (l *Listener) run(ctx context.Context, conn *net.UnixConn, in *bufio.Reader, serverOf func(*calls) *sdk.Server) {
	lines := &lineConn{ctx: ctx, conn: conn, in: in, budget: &l.budget, pending: map[jsonrpc.ID]int{}}
	defer lines.end()
	transport, order := inOrder(lines)
	_ = serverOf(order).Run(ctx, transport)
	order.end()
}

// authenticate identifies a caller and checks its token.
func (l *Listener) authenticate(conn *net.UnixConn, in *bufio.Reader) (pid int, err error) {
	pid, err = peer(conn)
	if err != nil {
		return 0, fmt.Errorf("identify the process that connected to the gate: %w", err)
	}
	token, err := readToken(conn, in)
	switch {
	case err == nil && token == asking:
		return pid, errAsks
	case !l.admit(pid):
		return pid, fmt.Errorf("process %d is not part of the agent that this gate belongs to", pid)
	case err != nil:
		return pid, fmt.Errorf("process %d sent no token: %w", pid, err)
	case subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) != 1:
		return pid, fmt.Errorf("process %d sent a wrong token", pid)
	}
	return pid, nil
}

func readToken(conn *net.UnixConn, in *bufio.Reader) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(helloTimeout)); err != nil {
		return "", err
	}
	line, err := in.ReadSlice('\n') // limited by the buffer size, because the sender is not authenticated yet
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(line), "\n"), conn.SetReadDeadline(time.Time{})
}

// explain sends the reason to a refused caller if it belongs to another agent of this coven.
func (l *Listener) explain(ctx context.Context, conn *net.UnixConn, in *bufio.Reader, pid int) {
	if l.excuse == nil || pid == 0 {
		return
	}
	if why := l.excuse(pid); why != "" {
		l.run(ctx, conn, in, func(*calls) *sdk.Server { return l.refuse(why) })
	}
}

// peer returns the process on the other end, as reported by the kernel.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var pid, uid int
	var asked error
	err = raw.Control(func(fd uintptr) { pid, uid, asked = credentials(int(fd)) })
	if err := errors.Join(err, asked); err != nil {
		return 0, err
	}
	if uid != os.Getuid() {
		return 0, fmt.Errorf("it belongs to another user (%d)", uid)
	}
	return pid, nil
}

// stream reads the buffered rest after the greeting, then the connection.
type stream struct {
	*bufio.Reader
	conn *net.UnixConn
}

func (s stream) Close() error { return s.conn.CloseRead() }
