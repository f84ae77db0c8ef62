package control_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control"
	"github.com/coven-run/coven/internal/event"
)

// spawnLog is an observer of subagents.
type spawnLog struct {
	mu   sync.Mutex
	seen []string
	err  error
}

func (h *spawnLog) note(text string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = append(h.seen, text)
	return h.err
}

func (h *spawnLog) OnSpawn(_ event.Event, s event.SpawnStart) error {
	return h.note("spawn " + s.Agent)
}

func (h *spawnLog) OnComplete(_ event.Event, s event.SpawnEnd) error {
	return h.note("complete " + s.Agent)
}

func (h *spawnLog) OnError(_ event.Event, s event.SpawnEnd) error { return h.note("error " + s.Agent) }

// C-119: several observers receive the subagents of a session. The errors of one observer become warnings
// and change nothing else.
func TestSpawnObservers(t *testing.T) {
	_, remove := scratch()
	defer remove()
	c, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good, failing := &spawnLog{}, &spawnLog{err: errors.New("the log is full")}
	var mu sync.Mutex
	var notices []string
	c.Observer = control.Observer{Spawns: []event.Observer{failing, good}, Notice: func(n control.Notice) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(n.Text, "observer") {
			notices = append(notices, n.Text)
		}
	}}
	out, err := c.Spawn(t.Context(), grimoires.SpawnRequest{Agent: "test-generator", Task: "Write a poem"}, control.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*spawnLog{good, failing} {
		if got := strings.Join(h.seen, ", "); got != "spawn test-generator, complete test-generator" {
			t.Errorf("saw %q", got)
		}
	}
	const want = "warning: an observer of subagents failed: the log is full"
	if got := strings.Join(notices, "; "); got != want+"; "+want {
		t.Errorf("notices %q", got)
	}
	if out.Status != "waiting" {
		t.Errorf("the session is %s", out.Status)
	}
}
