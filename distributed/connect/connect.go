// Package connect connects to the server.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// Namespace is the namespace of the sessions, unless Temporal's configuration names another one.
const Namespace = "coven"

// Dial connects to the server at an address, HOST:PORT, as identity. The rest of the connection is Temporal's own configuration: TEMPORAL_NAMESPACE, TEMPORAL_TLS_...,
// TEMPORAL_API_KEY and the profile in its file. Beyond loopback, the connection must be encrypted, because whoever can start workflows can run commands on all
// workers.
func Dial(ctx context.Context, address, identity string) (client.Client, error) {
	options, err := Options(address, identity)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, options)
}

// IsAway reports whether a server did not answer, so that trying again may help.
func IsAway(err error) bool {
	away, late := (*serviceerror.Unavailable)(nil), (*serviceerror.DeadlineExceeded)(nil)
	return errors.As(err, &away) || errors.As(err, &late) || errors.Is(err, context.DeadlineExceeded)
}

// Options returns the options of Dial.
func Options(address, identity string) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, err
	}
	if address != "" {
		options.HostPort = address
	}
	if options.HostPort == "" {
		return options, fmt.Errorf("name the server: --on HOST:PORT")
	}
	if _, _, err := net.SplitHostPort(options.HostPort); err != nil {
		return options, fmt.Errorf("%q is not an address of the form HOST:PORT", options.HostPort)
	}
	if options.Namespace == "" || options.Namespace == "default" && os.Getenv("TEMPORAL_NAMESPACE") == "" {
		options.Namespace = Namespace
	}
	if tls := options.ConnectionOptions.TLS; (tls == nil || tls.InsecureSkipVerify) && !isLoopback(options.HostPort) {
		return options, fmt.Errorf("%s is not this machine, and the connection would not be encrypted and verified: set TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH, or TEMPORAL_API_KEY", options.HostPort)
	}
	options.Identity = identity
	options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{} // messages are small
	options.Logger = log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	return options, nil
}

// isLoopback reports whether an address is on this machine.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
