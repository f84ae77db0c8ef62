package main

import (
	"context"

	"github.com/coven-run/coven/plugins"
)

// admitPlugins says whether plugins may run. On a terminal it asks about those
// that only need a person's trust.
func (a *app) admitPlugins(ctx context.Context, h *house, needs []plugins.Need) error {
	wanting, err := h.unfit(needs)
	if err == nil || len(wanting) == 0 || !a.interactive {
		return err
	}
	trusted, askErr := a.askTrust(ctx, h, wanting, nil, false)
	if askErr != nil {
		return askErr
	}
	if !trusted {
		return err
	}
	return h.mayRun(needs)
}
