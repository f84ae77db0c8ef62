package plugins

import (
	"context"
	"errors"
	"fmt"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// maxMisses is the number of consecutive failed health checks after which a plugin
// counts as hung.
const maxMisses = 3

// health is the result of a health check.
type health int

const (
	unresponsive health = iota // no answer
	unreachable                // no connection
	alive                      // rejects unknown methods, but its health service does not answer
	healthy
	noHealthService // has no health service
)

// healthCheck probes the plugin periodically until its process exits, and kills a
// process that hangs.
//
// A busy plugin is not hung: a plugin with a single worker thread, for example in
// Python, cannot answer while it works. So while a call is pending, it is enough that
// its gRPC library answers a ping. A call that never ends has its own deadline.
func (i *instance) healthCheck(t timing) {
	for misses := 0; misses < maxMisses; {
		select {
		case <-i.process.done:
			return
		case <-time.After(t.interval):
		}
		switch sign := i.probe(t.timeout); {
		case sign == noHealthService:
			return
		case sign == healthy, sign == alive && i.calls.Load() > 0:
			misses = 0
		case sign == unreachable && misses == maxMisses-1:
			i.process.kill(errUnreachable)
			return
		default:
			misses++
		}
	}
	i.process.kill(fmt.Errorf("hung: %d health checks without an answer within %s, killed", maxMisses, t.timeout))
}

// errUnreachable is why a running process without a connection is killed.
var errUnreachable = errors.New("closed the connection, killed")

// probe runs one health check.
func (i *instance) probe(timeout time.Duration) health {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	breath := make(chan bool, 1)
	go func() { breath <- answered(i.ping(ctx)) }()
	_, err := grpc_health_v1.NewHealthClient(i.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	breathes := <-breath
	switch {
	case status.Code(err) == codes.Unimplemented:
		return noHealthService
	case answered(err):
		return healthy
	case breathes:
		return alive
	case status.Code(err) == codes.Unavailable:
		return unreachable
	}
	return unresponsive
}

// answered reports whether err, which may be nil, is an answer of the plugin.
func answered(err error) bool {
	code := status.Code(err)
	return code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Canceled
}
