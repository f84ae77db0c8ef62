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

// maxMisses is the number of consecutive failed health checks after which a plugin is killed.
const maxMisses = 3

// health is the result of a health check.
type health int

const (
	unresponsive health = iota // no answer
	unreachable                // no connection
	alive                      // rejects unknown methods, but its health service does not answer
	healthy
	noHealthService // the plugin does not implement the health service
)

// healthCheck probes the plugin periodically until its process exits, and kills a process that hangs.
//
// A busy plugin does not hang: with a single worker thread, for example in Python, it cannot answer the
// health check while it works. While a call is pending, an answer of its gRPC library to a ping is
// therefore enough. A call that never ends has its own deadline.
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

// errUnreachable is the reason for killing a running process that accepts no connection.
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

// answered reports whether the plugin answered a call that returned err.
func answered(err error) bool {
	code := status.Code(err)
	return code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Canceled
}
