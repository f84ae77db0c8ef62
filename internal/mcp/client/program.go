package client

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coven-run/coven/internal/mcp/servers"
)

// endTime is how long a server may run after its input is closed.
const endTime = time.Second

// program starts a server's program, which communicates over standard input and output.
func (c *connection) program(ctx context.Context, s servers.Server) (way, error) {
	cmd, release, err := c.set.options.Start(ctx, s)
	if err != nil {
		return way{}, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		release()
		return way{}, fmt.Errorf("start it: %w", err)
	}
	said := &tail{to: c.log()}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = theirs, said, endTime
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	_ = theirs.Close()
	if err != nil {
		_ = out.Close()
		release()
		return way{}, fmt.Errorf("start it: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit status does not matter
		close(ended)
	}()
	end := sync.OnceFunc(func() {
		_ = in.Close()
		timer := time.NewTimer(endTime)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
			_ = cmd.Process.Kill()
		}
		<-ended
		release()
		_ = out.Close()
	})
	return way{&sdk.IOTransport{Reader: out, Writer: in, MaxLineLength: maxMessage}, end, said.explain}, nil
}

func (c *connection) log() io.Writer {
	if c.set.options.Log == nil {
		return io.Discard
	}
	return c.set.options.Log(c.server.Name)
}

// tail forwards a program's output and keeps the end of it.
type tail struct {
	to   io.Writer
	mu   sync.Mutex
	last []byte
}

// maxSaid limits the kept output in bytes.
const maxSaid = 1 << 10

// Write implements io.Writer. It never fails, so that a broken log does not stop the server.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, p...)
	t.last = t.last[max(0, len(t.last)-maxSaid):]
	_, _ = t.to.Write(p)
	return len(p), nil
}

// explain adds the program's last output to an error.
func (t *tail) explain(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := strings.Join(strings.Fields(strings.ToValidUTF8(string(t.last), "")), " ")
	if said == "" {
		return err
	}
	return fmt.Errorf("%w (it said: %s)", err, said)
}
