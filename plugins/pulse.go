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

// mostMisses is after how many questions without an answer a plugin hangs.
const mostMisses = 3

// sign is what a plugin gives away of how it is.
type sign int

const (
	silent    sign = iota // it answers nothing
	cut                   // it cannot be reached
	breathing             // it refuses what it does not know, and answers nothing else
	well
	unasked // it has no health service
)

// pulse asks the plugin now and then whether it is well, until its process is
// gone, and kills one that hangs.
//
// A plugin that is busy does not hang: one that has a single hand, as one in
// Python may, cannot answer while it works. So while a call is under way it is
// enough that it breathes, which its gRPC library does for it. A call that never
// ends has a deadline of its own.
func (w *worker) pulse(pace pace) {
	for misses := 0; misses < mostMisses; {
		select {
		case <-w.process.done:
			return
		case <-time.After(pace.beat):
		}
		switch sign := w.feel(pace.patience); {
		case sign == unasked:
			return
		case sign == well, sign == breathing && w.calls.Load() > 0:
			misses = 0
		case sign == cut && misses == mostMisses-1:
			w.process.kill(errCut)
			return
		default:
			misses++
		}
	}
	w.process.kill(fmt.Errorf("it hung: %d times asked, it did not say within %s that it is well, and was killed", mostMisses, pace.patience))
}

// errCut is the cause of a process that lives and cannot be reached.
var errCut = errors.New("it broke the connection and was killed")

// feel asks once.
func (w *worker) feel(patience time.Duration) sign {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	breath := make(chan bool, 1)
	go func() { breath <- answered(w.greet(ctx)) }()
	_, err := grpc_health_v1.NewHealthClient(w.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: goplugin.GRPCServiceName})
	breathes := <-breath
	switch {
	case status.Code(err) == codes.Unimplemented:
		return unasked
	case answered(err):
		return well
	case breathes:
		return breathing
	case status.Code(err) == codes.Unavailable:
		return cut
	}
	return silent
}

// answered says that err, or nil, is a word of the plugin.
func answered(err error) bool {
	code := status.Code(err)
	return code != codes.DeadlineExceeded && code != codes.Unavailable && code != codes.Canceled
}
