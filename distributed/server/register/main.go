// Command register creates coven's namespace on a new server. The connection is Temporal's own
// configuration: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE (coven if unset), TEMPORAL_TLS_...,
// TEMPORAL_API_KEY.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/coven-run/coven/distributed/server"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := register(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "register:", err)
		os.Exit(1)
	}
}

func register(ctx context.Context) error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	defer c.Close()
	return server.Register(ctx, c, cmp.Or(options.Namespace, server.Namespace))
}
