package process

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coven-run/coven/internal/process/loopback"
)

// Loopback is the network of a program that has its own. It consists of a loopback device, so that the program can
// listen on every port, and cannot connect to anything outside, except through Ports: connections to these ports of its
// 127.0.0.1 are passed on to the same ports of the machine's.
type Loopback struct {
	Ports []int
	// Relay is relay.New. It is needed if there are Ports.
	Relay func(ports []int) (relay io.Closer, socket *os.File, err error)
}

func (l *Loopback) check() error {
	if l == nil {
		return nil
	}
	if len(l.Ports) > loopback.MaxPorts {
		return fmt.Errorf("boundary: %d ports of this machine, at most %d are possible", len(l.Ports), loopback.MaxPorts)
	}
	for _, port := range l.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("boundary: %d is not a port", port)
		}
	}
	return nil
}

// errNoNetwork means that programs always use the network of the machine.
var errNoNetwork = errors.New("programs can have no network of their own here")

// PrivateNetwork returns an error if programs cannot have a network of their own: see Boundary. The first call takes
// some milliseconds.
func (l *Launcher) PrivateNetwork() error { return l.network() }

func (l *Launcher) probeNetwork() error {
	m := l.mode()
	if m.containment != PIDNamespace {
		return errors.Join(errNoNetwork, m.refused)
	}
	return l.try(m, &Loopback{})
}

// ownNetwork is the part of an order about the network of a program.
type ownNetwork struct {
	Ports []int
	Fd    int // the shim's descriptor for loopback.Open
}
