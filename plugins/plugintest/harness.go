package plugintest

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// T is the subset of *testing.T and *testing.B that the harness uses.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Plugin is a running plugin that is called as in coven.
type Plugin struct {
	kind plugins.Kind
	host *plugins.Host
}

// Start prepares a plugin for a test and shuts it down at the end of the test. The first call starts the
// process, as in coven. The kind is part of the file name.
func Start(t T, binary string, o Options) *Plugin {
	t.Helper()
	kind, err := KindOf(binary)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if binary, err = runnable(binary); err != nil {
		t.Fatalf("%v", err)
	}
	home, err := newHome(o.Env)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := start(binary, kind, home, o)
	t.Cleanup(func() {
		p.Close()
		if err := home.close(); err != nil {
			t.Fatalf("%v", err)
		}
	})
	return p
}

// name is the suite's name for the plugin, independent of its file name.
const name = "tested"

func start(binary string, kind plugins.Kind, home *home, o Options) *Plugin {
	return &Plugin{kind: kind, host: plugins.NewHost(plugins.HostOptions{
		Start: home.starter(o), Dir: home.tmp, Sockets: home.sockets, Env: home.environment,
		Resolve: func(asked plugins.Kind, n string) (plugins.Binary, error) {
			if asked != kind || n != name {
				return plugins.Binary{}, fmt.Errorf("this is a %s: %w", kind, plugins.ErrUnknown)
			}
			return plugins.Binary{Argv: append([]string{binary}, o.Args...)}, nil
		},
	})}
}

// Close shuts down the plugin's process and waits for it.
func (p *Plugin) Close() { p.host.Close() }

// Reviewer returns the plugin as a reviewer.
func (p *Plugin) Reviewer(ctx context.Context) (reviewer.Reviewer, error) {
	return p.host.Reviewer(ctx, name)
}

// Arbiter returns the plugin as an arbiter.
func (p *Plugin) Arbiter(ctx context.Context) (arbiter.Arbiter, error) {
	return p.host.Arbiter(ctx, name)
}

// Provider returns the plugin as a provider.
func (p *Plugin) Provider(ctx context.Context) (provider.Provider, error) {
	return p.host.Provider(ctx, name)
}

// Model returns the plugin as a model.
func (p *Plugin) Model(ctx context.Context) (model.Model, error) {
	return p.host.Model(ctx, name)
}

// Forge returns the plugin as a forge.
func (p *Plugin) Forge(ctx context.Context) (forge.Forge, error) {
	return p.host.Forge(ctx, name)
}

// plugin returns the plugin as run by coven's host.
func (s *suite) plugin() *Plugin {
	if s.hosted == nil {
		s.hosted = start(s.binary, s.kind, s.home, s.options)
	}
	return s.hosted
}

// within runs f with the time limit for an answer.
func (s *suite) within(ctx context.Context, f func(ctx context.Context) error) error {
	limit := s.options.answer()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	return f(ctx)
}
