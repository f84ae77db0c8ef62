package plugintest

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/model"
	"github.com/coven-run/coven/plugins/provider"
	"github.com/coven-run/coven/plugins/reviewer"
)

// T is what the harness needs of a *testing.T or *testing.B.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// Plugin is a plugin at work, as coven sees it.
type Plugin struct {
	kind plugins.Kind
	host *plugins.Host
}

// Start makes a plugin ready for the calls of a test, as coven would start it, and
// ends it with the test. The process starts with the first call. The kind is the
// one that the name of its file says.
func Start(t T, binary string, o Options) *Plugin {
	t.Helper()
	kind, err := KindOf(binary)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if binary, err = runnable(binary); err != nil {
		t.Fatalf("%v", err)
	}
	home, err := newHome()
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

// name is what the suite calls the plugin, whatever its file is called.
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

// Close ends the plugin's process and waits for its end.
func (p *Plugin) Close() { p.host.Close() }

// Reviewer is the plugin as a reviewer.
func (p *Plugin) Reviewer(ctx context.Context) (reviewer.Reviewer, error) {
	return p.host.Reviewer(ctx, name)
}

// Arbiter is the plugin as an arbiter.
func (p *Plugin) Arbiter(ctx context.Context) (arbiter.Arbiter, error) {
	return p.host.Arbiter(ctx, name)
}

// Provider is the plugin as a provider.
func (p *Plugin) Provider(ctx context.Context) (provider.Provider, error) {
	return p.host.Provider(ctx, name)
}

// Model is the plugin as a model.
func (p *Plugin) Model(ctx context.Context) (model.Model, error) {
	return p.host.Model(ctx, name)
}

// plugin is the one that coven's host runs, for the cases about it.
func (s *suite) plugin() *Plugin {
	if s.hosted == nil {
		s.hosted = start(s.binary, s.kind, s.home, s.options)
	}
	return s.hosted
}

// within runs f under the limit for an answer.
func (s *suite) within(ctx context.Context, f func(ctx context.Context) error) error {
	limit := s.options.answer()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	return f(ctx)
}
