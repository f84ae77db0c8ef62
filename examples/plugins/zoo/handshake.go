package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// flood is the amount of output of beasts that print too much, in bytes.
const flood = 1 << 30

// greet does what a beast does before it serves, or instead of serving. It reports
// whether the beast is done.
func greet(beast string) bool {
	sockets := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	switch beast {
	case "exits":
		fmt.Fprintln(os.Stderr, "no licence found\x1b[31m")
		os.Exit(3)
	case "mute":
		hang()
	case "closer":
		_ = syscall.Close(1)
		hang()
	case "garbage":
		_, _ = os.Stdout.Write([]byte("\x00\xff\x1b]0;title\a hello\n"))
		hang()
	case "spout":
		spill(1)
		hang()
	case "chatter":
		spill(2)
		return false
	case "core":
		say("2|1|unix|%s|grpc|", listen("unix", filepath.Join(sockets, "s")))
	case "newer":
		say("1|99|unix|%s|grpc|", listen("unix", filepath.Join(sockets, "s")))
	case "netrpc":
		say("1|1|unix|%s|netrpc|", listen("unix", filepath.Join(sockets, "s")))
	case "tcp":
		say("1|1|tcp|%s|grpc|", listen("tcp", "127.0.0.1:0"))
	case "elsewhere":
		say("1|1|unix|%s|grpc|", listen("unix", filepath.Join(filepath.Dir(sockets), "elsewhere")))
	case "linked":
		if err := os.Symlink(listen("unix", filepath.Join(filepath.Dir(sockets), "target")), filepath.Join(sockets, "s")); err != nil {
			panic(err)
		}
		say("1|1|unix|%s|grpc|", filepath.Join(sockets, "s"))
	case "ajar": // listens and never accepts a connection
		say("1|1|unix|%s|grpc|", listen("unix", filepath.Join(sockets, "s")))
	case "plain": // serves without TLS
		return os.Unsetenv("PLUGIN_CLIENT_CERT") != nil
	default:
		return false
	}
	return true
}

// say prints a handshake line and keeps running.
func say(format, address string) {
	fmt.Printf(format+"\n", address)
	hang()
}

func listen(network, address string) string {
	if network == "unix" {
		_ = os.Remove(address) // left by an earlier start
	}
	l, err := net.Listen(network, address) //nolint:noctx // does not block
	if err != nil {
		panic(err)
	}
	return l.Addr().String()
}

// spill prints a flood without a newline.
func spill(fd int) {
	block := make([]byte, 1<<16)
	for i := range block {
		block[i] = 'x'
	}
	for n := flood; n > 0; {
		wrote, err := syscall.Write(fd, block[:min(n, len(block))])
		if err != nil && err != syscall.EINTR {
			panic(err)
		}
		n -= max(wrote, 0)
	}
}
