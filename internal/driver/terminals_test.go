package driver

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/process"
	"github.com/coven-run/coven/plugins/provider"
)

// undying is a host whose commands ignore kills and end only when it is closed.
type undying struct {
	Host
	end chan struct{}
}

func (u undying) RunCommand(context.Context, string, io.Writer) (process.Exit, error) {
	<-u.end
	return process.Exit{}, nil
}

func (undying) Hide(text string) string { return text }

// An agent cannot start more commands by releasing terminals whose commands take long to die.
func TestReleasedTerminalsCount(t *testing.T) {
	all, host := newTerminals(t.Context()), undying{end: make(chan struct{})}
	for i := range maxTerminals {
		id, err := all.start(host, "trap '' TERM; sleep 600", 0, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := all.use(t.Context(), provider.UseTerminal{ID: id, Do: provider.TerminalRelease}); err != nil {
			t.Fatal(i, err)
		}
	}
	if id, err := all.start(host, "true", 0, func() {}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d commands still run", maxTerminals)) {
		t.Errorf("%q, %v", id, err)
	}
	close(host.end)
	all.work.Wait()
	if _, err := all.start(host, "true", 0, func() {}); err != nil {
		t.Error(err)
	}
	all.close()
}

// The end of endless output is kept.
func TestEndlessOutput(t *testing.T) {
	one := &terminal{ended: make(chan struct{}), most: 100, hide: func(text string) string { return text }}
	for range 10000 {
		_, _ = one.Write([]byte("0123456789"))
	}
	if text, state := one.state(); cap(one.tail) > 1000 || len(text) != 100 || !state.Truncated {
		t.Errorf("%d bytes are kept, %q, %+v", cap(one.tail), text, state)
	}
}
