package plugins

import (
	"context"
	"fmt"

	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// declared is a provider that is limited to the capabilities that its program declares, because the user
// approved these when trusting the program.
type declared struct {
	provider.Provider
	plugin *plugin
}

// capabilities returns the capabilities that the running program declares, or nil.
func (d declared) capabilities(ctx context.Context) (provider.Capabilities, error) {
	i, err := d.plugin.get(ctx)
	if err != nil {
		return nil, err
	}
	return i.binary.Capabilities, nil
}

// Command implements provider.Provider. It returns pluginerr.ErrInvalid for a command that contradicts the
// declared capabilities.
func (d declared) Command(ctx context.Context, req provider.Request) (provider.Command, error) {
	can, err := d.capabilities(ctx)
	if err != nil {
		return provider.Command{}, err
	}
	if can != nil && req.Resume && !can.Has(provider.Resume) {
		return provider.Command{}, d.unsupported(provider.Resume)
	}
	cmd, err := d.Provider.Command(ctx, req)
	if err != nil || can == nil {
		return cmd, err
	}
	if wrong := contradiction(can, req, cmd); wrong != "" {
		return provider.Command{}, exit.Usagef("coven plugins test coven-provider-"+d.plugin.need.Name,
			"%s: a command is %w: %s, but the plugin declares %s", d.plugin, pluginerr.ErrInvalid, wrong, can)
	}
	return cmd, nil
}

// contradiction describes how a command contradicts the declared capabilities. It returns "" if it does
// not.
func contradiction(can provider.Capabilities, req provider.Request, cmd provider.Command) string {
	switch {
	case cmd.Gated && !can.Has(provider.Gated):
		return "it is gated"
	case !cmd.Gated && can.Has(provider.Gated):
		return "it is not gated"
	case cmd.ReadOnly && !can.Has(provider.ReadOnly):
		return "it is read-only"
	case req.ReadOnly() && !cmd.ReadOnly && can.Has(provider.ReadOnly):
		return "for an agent that may only read, it is not read-only"
	}
	return ""
}

// Message implements provider.Provider.
func (d declared) Message(ctx context.Context, message provider.Message) ([]byte, error) {
	can, err := d.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if can != nil && !can.Has(provider.Messages) {
		return nil, d.unsupported(provider.Messages)
	}
	return d.Provider.Message(ctx, message)
}

// Answer implements provider.Answerer.
func (d declared) Answer(ctx context.Context, answer provider.Answer) (provider.Reply, error) {
	answerer, ok := d.Provider.(provider.Answerer)
	if !ok {
		return provider.Reply{}, fmt.Errorf("%s: %w: it answers no requests", d.plugin, pluginerr.ErrUnsupported)
	}
	return answerer.Answer(ctx, answer)
}

// unsupported returns the error for a capability that the program does not declare.
func (d declared) unsupported(one provider.Capability) error {
	return fmt.Errorf("%s: %w: its agents cannot %s", d.plugin, pluginerr.ErrUnsupported, one)
}
