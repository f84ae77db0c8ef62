package loopback

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Open starts the loopback device of this process's network namespace, and sends a listener for each port over the file
// with the descriptor fd. It closes the file.
func Open(ports []int, fd int) error {
	if err := start(); err != nil {
		return fmt.Errorf("start the loopback device: %w", err)
	}
	var listeners []int
	defer func() {
		for _, one := range append(listeners, fd) {
			_ = unix.Close(one)
		}
	}()
	for _, port := range ports {
		listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("relay port %d: %w", port, err)
		}
		listeners = append(listeners, listener)
		if err := errors.Join(unix.Bind(listener, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(listener, unix.SOMAXCONN)); err != nil {
			return fmt.Errorf("relay port %d: %w", port, err)
		}
	}
	if len(listeners) == 0 {
		return nil
	}
	if err := unix.Sendmsg(fd, []byte{0}, unix.UnixRights(listeners...), nil, 0); err != nil {
		return fmt.Errorf("relay ports: %w", err)
	}
	return nil
}

func start() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is written
	device, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, device); err != nil {
		return err
	}
	device.SetUint16(device.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, device)
}
