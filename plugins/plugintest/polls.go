package plugintest

import (
	"context"
	"errors"

	"github.com/coven-run/coven/plugins/forge"
	"github.com/coven-run/coven/plugins/pluginerr"
)

// query returns a query to a host that refuses connections.
func query() forge.Query {
	return forge.Query{
		Repository: forge.Repository{API: "http://127.0.0.1:1", Host: "127.0.0.1", Path: "owner/name"},
		Known:      []forge.Known{{Number: 1}},
	}
}

// polled polls a host that refuses connections. The plugin returns an error.
func (s *suite) polled(ctx context.Context) error {
	f, err := s.plugin().Forge(ctx)
	if err != nil {
		return err
	}
	_, err = f.Poll(ctx, query())
	switch {
	case err == nil:
		return errors.New("the host refuses connections, but Poll returns no error")
	case ctx.Err() != nil, errors.Is(err, pluginerr.ErrGone), errors.Is(err, pluginerr.ErrInvalid), errors.Is(err, pluginerr.ErrUnsupported):
		return err
	}
	return nil
}
