//go:build linux

package process

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/process/relay"
)

// onLoopback listens on port 3000, waits for a line of input, and connects to itself and to other ports.
func onLoopback(ports []string) {
	own := must(net.Listen("tcp", "127.0.0.1:3000"))
	fmt.Println("listens")
	must(bufio.NewReader(os.Stdin).ReadString('\n'))
	go func() { _, _ = io.WriteString(must(own.Accept()), os.Args[0]) }()
	must(net.Dial("tcp", "localhost:3000"))
	for _, port := range ports {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Println("refused")
			continue
		}
		must(io.WriteString(c, "hello"))
		must(0, c.(*net.TCPConn).CloseWrite())
		fmt.Println(string(must(io.ReadAll(c))))
	}
}

// shout answers each connection to a port of this machine in upper case, until the test ends.
func shout(t *testing.T) (port int) {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, strings.ToUpper(string(must(io.ReadAll(c)))))
			_ = c.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

// Programs with a network of their own listen on the same port at once. They reach only the relayed ports of the machine.
func TestLoopback(t *testing.T) {
	l, y := launcher(t, PIDNamespace), newYard(t)
	if err := l.PrivateNetwork(); err != nil {
		t.Skip(err)
	}
	relayed, other := shout(t), shout(t)
	argv := []string{must(os.Executable()), "loopback", strconv.Itoa(relayed), strconv.Itoa(other), strconv.Itoa(relayed)}
	var children []*Child
	for range 2 {
		b := y.boundary()
		b.Loopback = &Loopback{Ports: []int{relayed}, Relay: relay.New}
		child := start(t, l, Spec{Argv: argv, Boundary: b, Pipe: true})
		if line := readLine(t, child.Output()); line != "listens" {
			t.Fatal(line, readAll(t, child.Output()))
		}
		children = append(children, child)
	}
	for _, child := range children {
		must(io.WriteString(child.Stdin(), "go\n"))
		if got := readAll(t, child.Output()); got != "HELLO\nrefused\nHELLO\n" {
			t.Errorf("it printed %q", got)
		}
		if exit := wait(t, child); !exit.OK() {
			t.Error(exit)
		}
	}

	b := y.boundary()
	b.Loopback = &Loopback{Ports: []int{relayed}, Relay: relay.New}
	cmd, release, err := l.CommandWithin(b, argv...)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader("go\n")
	output, err := cmd.Output()
	release()
	if string(output) != "listens\nHELLO\nrefused\nHELLO\n" || err != nil {
		t.Errorf("it printed %q, %v", output, err)
	}
}

// Without namespaces, a program does not run in the network of the machine instead.
func TestNoLoopback(t *testing.T) {
	l, y := launcher(t, Subreaper), newYard(t)
	if err := l.PrivateNetwork(); err == nil {
		t.Error("there are private networks")
	}
	b := y.boundary()
	b.Loopback = &Loopback{}
	if _, err := l.Start(t.Context(), Spec{Argv: shell("true"), Boundary: b}); err == nil || !strings.Contains(err.Error(), errNoNetwork.Error()) {
		t.Errorf("the error is %v", err)
	}
	b.Loopback.Ports = []int{70000}
	if _, err := l.Start(t.Context(), Spec{Argv: shell("true"), Boundary: b}); err == nil || !strings.Contains(err.Error(), "70000 is not a port") {
		t.Errorf("the error is %v", err)
	}
}
