package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/coven-run/coven/internal/process/loopback"
	"github.com/coven-run/coven/internal/process/memoryfile"
)

// link connects coven with one shim.
type link struct {
	control *os.File   // write end: open while coven and the child may live
	status  *os.File   // read end: end of file means that the shim has ended
	theirs  []*os.File // the shim's descriptors without socket

	// If the program has a network of its own, relay passes its connections on, and socket is the shim's end. They are
	// nil if it has no ports.
	network bool
	relay   io.Closer
	socket  *os.File

	reads   *os.File // the list of limits.Reads, a memory file; nil if there is none
	readsTo io.Writer

	caches func() // called once, when the program has ended; nil without caches
}

// newLink makes the link for an order. b may be nil.
func newLink(o order, b *Boundary) (*link, error) {
	if b == nil || b.Caches == nil || o.Containment != PIDNamespace {
		return connect(o, b.network())
	}
	caches, release, err := b.Caches()
	if err != nil {
		return nil, err
	}
	o.Limits.Caches = caches
	l, err := connect(o, b.network())
	if err != nil {
		release()
		return nil, err
	}
	l.caches = sync.OnceFunc(release)
	return l, nil
}

// connect makes the link for a complete order. network is nil unless the program has a network of its own.
func connect(o order, network *Loopback) (*link, error) {
	if network == nil {
		return newPipes(o)
	}
	o.Network = &ownNetwork{Ports: network.Ports, Fd: loopback.NoSocket}
	var relay io.Closer
	var socket *os.File
	if len(network.Ports) > 0 {
		var err error
		if relay, socket, err = network.Relay(network.Ports); err != nil {
			return nil, err
		}
		if o.Network.Fd = socketFd; o.Inherit {
			o.Network.Fd = inputFd
		}
	}
	l, err := newPipes(o)
	if err != nil {
		return nil, errors.Join(err, closeRelay(relay, socket))
	}
	l.network, l.relay, l.socket = true, relay, socket
	return l, nil
}

// closeRelay closes a relay and its socket. They may be nil.
func closeRelay(relay io.Closer, socket *os.File) (err error) {
	if relay != nil {
		err = relay.Close()
	}
	if socket != nil {
		err = errors.Join(err, socket.Close())
	}
	return err
}

func newPipes(o order) (*link, error) {
	memory, err := memoryfile.New("order")
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(memory).Encode(o); err != nil {
		return nil, errors.Join(fmt.Errorf("write order: %w", err), memory.Close())
	}
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make control pipe: %w", err), memory.Close())
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		err = fmt.Errorf("make status pipe: %w", err)
		return nil, errors.Join(err, closeAll(memory, controlR, controlW))
	}
	return &link{control: controlW, status: statusR, theirs: []*os.File{memory, controlR, statusW}}, nil
}

// terminate asks the shim to end the tree. It does nothing if the shim has ended.
func (l *link) terminate(command byte) {
	_, _ = l.control.Write([]byte{command})
}

// files returns the shim's descriptors, starting with orderFd.
func (l *link) files() []*os.File {
	return append(l.theirs[:len(l.theirs):len(l.theirs)], l.socket, l.reads) // a missing one is closed
}

// handOver closes coven's copies of the shim's descriptors after the shim has started
// or failed to start.
func (l *link) handOver() error {
	err := closeAll(l.theirs...)
	err = errors.Join(err, closeRelay(nil, l.socket))
	l.theirs, l.socket = nil, nil
	return err
}

// end releases resources when the tree has ended.
func (l *link) end() {
	_ = closeRelay(l.relay, nil)
	if l.caches != nil {
		l.caches()
	}
}

func (l *link) close() error {
	l.end()
	return errors.Join(l.handOver(), closeAll(l.control, l.status), l.closeReads())
}

func closeAll(files ...*os.File) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
