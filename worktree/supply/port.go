package supply

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"

	"github.com/coven-run/coven/worktree/internal/file"
	"github.com/coven-run/coven/worktree/internal/repo"
)

// The range of tasks' ports is below the usual range for outgoing connections and above most default ports
// of servers.
const (
	FirstPort = 20000
	PortCount = 10000
)

const portsLock = "ports"

// TaskPort is port.json, the port that belongs to a worktree as long as that exists.
type TaskPort struct {
	Port int `json:"port"`
}

// Port returns the TCP port that belongs to the worktree. The first call chooses a port that no other
// worktree of the repository has and on which nothing listens. The choice depends on the task's name, so
// that a task usually gets the same port again in its next worktree.
func Port(ctx context.Context, w *repo.Worktree) (int, error) {
	if port := PortOf(w.Repo, w.Name); port != 0 {
		return port, nil
	}
	l, err := w.Repo.Lock(ctx, portsLock, "choose a port for "+w.TaskID)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	port, err := choosePort(ctx, w)
	if err == nil {
		err = file.WriteJSONNoSync(w.StatePath("port.json"), TaskPort{port})
	}
	if err != nil {
		return 0, fmt.Errorf("choose a port for %s: %w", w.TaskID, err)
	}
	return port, nil
}

// PortOf returns the port of a task, or 0 if it has none.
func PortOf(r *repo.Repo, name string) int {
	var chosen TaskPort
	if file.ReadJSON(r.StatePath("tasks", name, "port.json"), &chosen) != nil {
		return 0 // it has none, or lost it in a power failure
	}
	return chosen.Port
}

func choosePort(ctx context.Context, w *repo.Worktree) (int, error) {
	names, err := w.Repo.TaskNames()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	taken := map[int]bool{}
	for _, name := range names {
		taken[PortOf(w.Repo, name)] = true
	}
	first := PreferredPort(w)
	for i := range PortCount {
		port := FirstPort + (first-FirstPort+i)%PortCount
		if !taken[port] && isFree(ctx, port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of the ports %d to %d is free", FirstPort, FirstPort+PortCount-1)
}

// PreferredPort returns the port at which the search begins.
func PreferredPort(w *repo.Worktree) int {
	sum := sha256.Sum256([]byte(w.Repo.GitDir + "\x00" + w.Name))
	return FirstPort + int(binary.BigEndian.Uint32(sum[:])%PortCount)
}

// isFree reports whether nothing listens on a port. Some systems permit a server on all addresses in
// addition to one on a single address, so both are tried.
func isFree(ctx context.Context, port int) bool {
	for _, host := range []string{"", "127.0.0.1"} {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}
