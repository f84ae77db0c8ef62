package workspace

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/coven-run/coven/internal/sandbox/egress"
	"github.com/coven-run/coven/worktree/supply"
)

// Network is the network access of the programs of a repository's tasks. Several workspaces share it.
type Network struct {
	Environ    []string                                        // of the user
	ConfigFile string                                          // the user's, named in refusals
	Allow      func(context.Context) ([]egress.Pattern, error) // called once

	once sync.Once
	list []egress.Pattern
	err  error
}

// allowed returns the list of hosts.
func (n *Network) allowed(ctx context.Context) ([]egress.Pattern, error) {
	n.once.Do(func() { n.list, n.err = n.Allow(context.WithoutCancel(ctx)) })
	return n.list, n.err
}

// Warm reads the list of hosts in advance. A later use of the list reports its error.
func (n *Network) Warm(ctx context.Context) { _, _ = n.allowed(ctx) }

// proxied is the proxy of a workspace.
type proxied struct {
	once  sync.Once
	proxy *egress.Proxy
	err   error
}

// NetworkEnv returns the variables for network access, KEY=VALUE: those of the proxy, and the port that
// programs may listen on. It starts the proxy if necessary.
func (s *Workspace) NetworkEnv(ctx context.Context) ([]string, error) {
	proxy, err := s.proxy(ctx)
	if err != nil {
		return nil, err
	}
	port, err := supply.Port(ctx, s.Worktree)
	if err != nil {
		return nil, err
	}
	return append(proxy.Env(), "COVEN_PORT="+strconv.Itoa(port)), nil
}

// Transport returns the transport for coven's own connections on behalf of an agent. They go through the
// proxy of the task's programs, even if the host is this machine.
func (s *Workspace) Transport(ctx context.Context) (http.RoundTripper, error) {
	proxy, err := s.proxy(ctx)
	if err != nil {
		return nil, err
	}
	return proxy.Transport()
}

// proxy returns the proxy, and starts it if necessary.
func (s *Workspace) proxy(ctx context.Context) (*egress.Proxy, error) {
	p := &s.proxied
	p.once.Do(func() {
		var list []egress.Pattern
		if list, p.err = s.Network.allowed(ctx); p.err != nil {
			return
		}
		p.proxy, p.err = egress.Listen(context.WithoutCancel(ctx), egress.Options{
			Allow: list, Environ: s.Network.Environ, ConfigFile: s.Network.ConfigFile, OnRefused: s.refused,
		})
	})
	if p.err != nil {
		return nil, fmt.Errorf("limit the network: %w", p.err)
	}
	return p.proxy, nil
}

// localPorts returns the ports of this machine's loopback that programs reach also in a network of their own: that of the
// proxy, and those on the list of hosts.
func (s *Workspace) localPorts(ctx context.Context) ([]int, error) {
	proxy, err := s.proxy(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.Network.allowed(ctx)
	return append(egress.LocalPorts(list), proxy.Port()), err
}

// refused records that a program was refused a host.
func (s *Workspace) refused(host string) {
	text := fmt.Sprintf("network: %s is not on the list of hosts; to allow it: sandbox.network in %s", host, s.Network.ConfigFile)
	s.warn(text)
}

// Close stops the task's proxy. No program of the task may be running.
func (s *Workspace) Close() {
	s.proxied.once.Do(func() {})
	if s.proxied.proxy != nil {
		_ = s.proxied.proxy.Close() // nothing uses it any more
	}
}
