package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// link connects coven with one shim.
type link struct {
	control *os.File   // write end: open while coven and the child may live
	status  *os.File   // read end: end of file means that the shim has ended
	theirs  []*os.File // the shim's descriptors, starting with orderFd
}

func newLink(o order) (*link, error) {
	memory, err := memoryFile("order")
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
	return &link{controlW, statusR, []*os.File{memory, controlR, statusW}}, nil
}

// terminate asks the shim to end the tree. It does nothing if the shim has ended.
func (l *link) terminate(command byte) {
	_, _ = l.control.Write([]byte{command})
}

// handOver closes coven's copies of the shim's descriptors after the shim has started
// or failed to start.
func (l *link) handOver() error {
	err := closeAll(l.theirs...)
	l.theirs = nil
	return err
}

func (l *link) close() error {
	return errors.Join(l.handOver(), closeAll(l.control, l.status))
}

func closeAll(files ...*os.File) error {
	var errs []error
	for _, file := range files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
