package worktree

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
	"github.com/coven-run/coven/worktree/supply"
)

// A worktree keeps its port as long as it exists, even if something listens on it. Worktrees that exist at
// the same time have different ports, and a port in use is not chosen.
func TestPort(t *testing.T) {
	r := sample(t)
	used := listenOn(t, supply.PreferredPort((&repo.Worktree{Repo: r, Name: "T0"})))
	ports, all := map[int]string{}, sync.Mutex{}
	var done sync.WaitGroup
	for i := range 8 {
		w := add(t, r, fmt.Sprintf("T%d", i))
		done.Go(func() {
			port, err := supply.Port(t.Context(), w)
			all.Lock()
			defer all.Unlock()
			if err != nil || ports[port] != "" || port == used || port < supply.FirstPort || port >= supply.FirstPort+supply.PortCount {
				t.Errorf("%s has port %d as %q, %v", w.TaskID, port, ports[port], err)
			}
			ports[port] = w.TaskID
		})
	}
	done.Wait()
	for port, id := range ports {
		listenOn(t, port)
		w, err := r.Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := supply.Port(t.Context(), w); err != nil || again != port {
			t.Errorf("%s had port %d, now %d, %v", id, port, again, err)
		}
		if _, err := Remove(t.Context(), w, RemoveRequest{}); err != nil {
			t.Fatal(err)
		}
		if left := supply.PortOf(r, w.Name); left != 0 {
			t.Errorf("%s is gone and has port %d", id, left)
		}
	}
}

// Worktrees whose preferred ports are equal get different ones.
func TestPortOfAnother(t *testing.T) {
	r := sample(t)
	a, b := add(t, r, "A"), add(t, r, "B")
	if err := file.WriteJSONNoSync(a.StatePath("port.json"), supply.TaskPort{Port: supply.PreferredPort(b)}); err != nil {
		t.Fatal(err)
	}
	if port, err := supply.Port(t.Context(), b); err != nil || port == supply.PreferredPort(b) {
		t.Errorf("both have port %d, %v", port, err)
	}
}

// listenOn listens on a port until the test ends, unless it is in use.
func listenOn(t *testing.T, port int) int {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return port
}
