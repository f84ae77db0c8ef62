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

// maxMisses is after how many questions without an answer a plugin hangs.
const maxMisses = 3

// health is what a plugin gives away of how it is.
type health int

const (
	unresponsive health = iota // it answers nothing
	unreachable                // it cannot be reached
	alive                      // it refuses what it does not know, and answers nothing else
	healthy
	noHealthService // it has no health service
)

// healthCheck asks the plugin now and then whether it is well, until its process is
// gone, and kills one that hangs.
//
// A plugin that is busy does not hang: one that has a single hand, as one in
// Python may, cannot answer while it works. So while a call is under way it is
// enough that it breathes, which its gRPC library does for it. A call that never
// ends has a deadline of its own.
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
	i.process.kill(fmt.Errorf("it hung: %d times asked, it did not say within %s that it is well, and was killed", maxMisses, t.timeout))
}

// errUnreachable is the cause of a process that lives and cannot be reached.
var errUnreachable = errors.New("it broke the connection and was killed")

// probe asks once.
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

// answered says that err, or nil, is a word of the plugin.
func answered(err error) bool {
	code := status.Code(err)
	return code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Canceled
}
