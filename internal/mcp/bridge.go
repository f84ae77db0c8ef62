package mcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// Environment variables of a bridge.
const (
	SocketEnv = "COVEN_GATE_SOCKET"
	TokenEnv  = "COVEN_GATE_TOKEN"
)

// Bridge copies bytes between an agent CLI and the coven process that runs it, until
// either side closes the connection.
func Bridge(in io.Reader, out io.Writer, getenv func(string) string) error {
	socket, token := getenv(SocketEnv), getenv(TokenEnv)
	if socket == "" || token == "" {
		return errors.New("this command is run by agent CLIs that coven starts, not by hand")
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("connect to the coven that runs this agent: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the process ends
	if _, err := fmt.Fprintln(conn, token); err != nil {
		return fmt.Errorf("connect to the coven that runs this agent: %w", err)
	}
	// When the CLI is done, it closes the connection first, and coven's remaining output
	// is still copied. When coven closes the connection, the bridge ends.
	go func() {
		_ = pump(conn, in)
		_ = conn.CloseWrite()
	}()
	return pump(out, conn)
}

func pump(to io.Writer, from io.Reader) error {
	if _, err := io.Copy(to, from); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("copy the messages of the gate: %w", err)
	}
	return nil
}
