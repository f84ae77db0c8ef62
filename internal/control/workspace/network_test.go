package workspace

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/sandbox/egress"
)

// Workspaces share a list of hosts, which is read once. Each has its own proxy, which stops with it.
func TestNetwork(t *testing.T) {
	read := 0
	network := &Network{ConfigFile: "/home/me/config.yaml", Allow: func(context.Context) ([]egress.Pattern, error) {
		read++
		return nil, nil
	}}
	s := newWorkspace(t)
	s.Network = network
	if _, err := s.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := &Workspace{Network: network, Worktree: s.Worktree}
	t.Cleanup(other.Close)
	proxy, again, others := proxyOf(t, s), proxyOf(t, s), proxyOf(t, other)
	if proxy != again || proxy == others || read != 1 {
		t.Errorf("proxies %s, %s and %s; the list was read %d times", proxy, again, others, read)
	}
	s.refused("x.example")
	want := "network: x.example is not on the list of hosts; to allow it: sandbox.network in /home/me/config.yaml"
	if !slices.ContainsFunc(s.Session.Events(), func(e event.Event) bool {
		return e.Type == event.Warning && event.As[event.Text](e).Text == want
	}) {
		t.Errorf("the refusal is not recorded: %+v", s.Session.Events())
	}
	s.Close()
	for address, open := range map[string]bool{proxy: false, others: true} {
		c, err := net.Dial("tcp", address)
		if (err == nil) != open {
			t.Errorf("%s: %v", address, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
	new(Workspace).Close() // no program has needed a proxy
}

// proxyOf returns the address of a workspace's proxy.
func proxyOf(t *testing.T, s *Workspace) string {
	t.Helper()
	env, err := s.NetworkEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "HTTPS_PROXY=") })
	if at < 0 {
		t.Fatalf("no proxy in %q", env)
	}
	proxy, err := url.Parse(strings.TrimPrefix(env[at], "HTTPS_PROXY="))
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Host
}

// Without a list of hosts, nothing runs.
func TestNetworkError(t *testing.T) {
	broken := errors.New("broken list")
	s := &Workspace{Network: &Network{Allow: func(context.Context) ([]egress.Pattern, error) { return nil, broken }}}
	for range 2 {
		if env, err := s.NetworkEnv(t.Context()); !errors.Is(err, broken) {
			t.Errorf("%q, %v", env, err)
		}
	}
	s.Close()
}
