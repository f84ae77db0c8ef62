package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
)

// gateway is the address of the desk, the server and the origin in the machines' network.
const gateway = "10.77.0.1"

// initArg is the first argument of the first process in namespaces. The host name follows, the port of the server for a machine, direct for one that needs no
// forwarding, or 0 for the desk, and the command line of the child.
const initArg = "init"

const direct = "direct"

// exited is the exit code of a child.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// inNamespaces returns a command that runs another one in new namespaces, as the child of their first process. When that is
// killed, for example because this process has ended, the kernel kills all others.
func inNamespaces(ctx context.Context, host, port string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{initArg, host, port}, args...)...) //nolint:gosec // chaos itself
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL, Setpgid: true,
	}
	return cmd
}

// runInit is the first process.
func runInit(args []string) error {
	runtime.LockOSThread() // the kernel kills the child when the thread ends that has started it
	host, port, command := args[0], args[1], args[2:]
	err := errors.Join(
		syscall.Sethostname([]byte(host)),
		syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		ip("link set lo up"),
	)
	if err == nil && port != "0" {
		err = connect(port)
	}
	if err != nil {
		return err
	}
	child, err := os.StartProcess(command[0], command, &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}, Env: os.Environ()})
	if err != nil {
		return err
	}
	return reap(child.Pid)
}

// reap waits for all processes until a child has ended.
func reap(child int) error {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case pid == child && status.Signaled():
			return exited(128 + int(status.Signal()))
		case pid == child:
			return exited(status.ExitStatus())
		}
	}
}

// connect sets the network of a machine up, when standard input names its address. If the server has no certificates, it forwards the server's port: coven-worker
// encrypts all connections but those to its own machine.
func connect(port string) error {
	address, err := io.ReadAll(io.LimitReader(os.Stdin, 100))
	if err != nil {
		return err
	}
	if err := errors.Join(ip("addr add "+string(address)+"/16 dev eth0"), ip("link set eth0 up")); err != nil || port == direct {
		return err
	}
	return forwardAll("127.0.0.1:"+port, net.JoinHostPort(gateway, port))
}

// plug connects a machine, whose first process is given, to the bridge.
func plug(pid int, link string) error {
	return errors.Join(
		ip(fmt.Sprintf("link add %s type veth peer name eth0 netns %d", link, pid)),
		ip("link set "+link+" master bridge up"),
	)
}

// bridge makes the network of the machines.
func bridge() error {
	return errors.Join(ip("link add bridge type bridge"), ip("addr add "+gateway+"/16 dev bridge"), ip("link set bridge up"))
}

// forwardAll connects everyone who connects to an address here to another one.
func forwardAll(here, there string) error {
	listener, err := net.Listen("tcp", here) //nolint:noctx // it takes no time
	if err == nil {
		go forward(listener, there)
	}
	return err
}

func forward(listener net.Listener, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()                  //nolint:errcheck // nothing to do
			to, err := net.Dial("tcp", address) //nolint:noctx // until the machine ends
			if err != nil {
				return
			}
			defer to.Close() //nolint:errcheck // nothing to do
			go copyTo(to, from)
			copyTo(from, to)
		}()
	}
}

// copyTo copies until one side ends, and then ends the other one.
func copyTo(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

func ip(arguments string) error {
	out, err := exec.Command("ip", strings.Fields(arguments)...).CombinedOutput() //nolint:noctx // it is short
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", arguments, err, out)
	}
	return nil
}
