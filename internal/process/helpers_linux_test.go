package process

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// helpers are programs that tests start, by name.
var helpers = map[string]func(args []string){"dial": dial, "listen": listen, "keyrings": useKeyrings, "trace": traceChild, "loopback": onLoopback}

// dial connects to a socket and prints the result.
func dial(args []string) {
	_, err := net.Dial("unix", args[0])
	fmt.Println("dial:", err)
}

// listen binds a socket, which may have a relative path, until its input ends.
func listen(args []string) {
	listener := must(net.Listen("unix", args[0]))
	fmt.Println("listening")
	must(io.Copy(io.Discard, os.Stdin))
	must(0, listener.Close())
}

// useKeyrings prints the results of the system calls of keyrings.
func useKeyrings([]string) {
	_, read := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	_, added := unix.AddKey("user", "coven-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	_, requested := unix.RequestKey("user", "coven-test", "", 0)
	fmt.Println(read, added, requested)
}

// traceChild runs a program under ptrace until its first stop.
func traceChild([]string) {
	runtime.LockOSThread()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	must(0, cmd.Start())
	fmt.Println(cmd.Wait())
}
