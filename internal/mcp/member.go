package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// asking is sent instead of a token to ask whether an agent started the caller.
const asking = "which agent am I?"

// askTimeout limits how long a running coven may take to answer.
const askTimeout = 10 * time.Second

// errAsks means that a process only asks whether an agent started it.
var errAsks = errors.New("it asks which agent started it")

// ErrNoGate means that a gate is closed because its coven has ended.
var ErrNoGate = errors.New("the gate is closed")

// Member asks the coven behind a gate whether one of its running agents started this process, and
// at which depth. The environment does not influence the answer. The error is ErrNoGate if no
// coven listens on the socket.
func Member(socket string) (depth int, member bool, err error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return 0, false, ErrNoGate
	}
	if err != nil {
		return 0, false, fmt.Errorf("ask a running coven whether an agent started this command: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the answer has been read
	if pid, err := peer(conn); err == nil && stopped(pid) {
		return 0, false, nil // suspended with Ctrl-Z; not visible from inside a PID namespace, where an agent waits
	}
	if err := conn.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return 0, false, err
	}
	if _, err := fmt.Fprintln(conn, asking); err != nil && !gone(err) {
		return 0, false, fmt.Errorf("ask a running coven whether an agent started this command: %w", err)
	}
	line, err := bufio.NewReader(io.LimitReader(conn, 64)).ReadString('\n')
	if err != nil && gone(err) { // coven is exiting, and its agents with it
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("ask a running coven whether an agent started this command: %w", err)
	}
	depth, err = strconv.Atoi(strings.TrimSpace(line))
	return max(depth, 0), depth >= 0, err
}

func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// answerMember answers a process that asks which agent started it, with the agent's depth or -1.
func (l *Listener) answerMember(conn *net.UnixConn, pid int) {
	depth := -1
	if l.member != nil {
		if d, ok := l.member(pid); ok {
			depth = d
		}
	}
	_ = conn.SetWriteDeadline(time.Now().Add(helloTimeout))
	_, _ = fmt.Fprintln(conn, depth) // the caller may hang up
}

// Announce writes the address of the gate to a file in dir, where other processes find it. The
// file remains if coven is killed.
func (l *Listener) Announce(dir string) (withdraw func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("announce the gate: %w", err)
	}
	f, err := os.CreateTemp(dir, "gate-")
	if err != nil {
		return nil, fmt.Errorf("announce the gate: %w", err)
	}
	withdraw = func() error { return os.Remove(f.Name()) }
	_, err = f.WriteString(l.listener.Addr().String() + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("announce the gate: %w", err), withdraw())
	}
	return withdraw, nil
}
