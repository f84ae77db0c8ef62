package claude

import (
	"cmp"
	"math"
	"net/http"
	"time"

	"github.com/coven-run/coven/plugins/provider"
)

// overloaded is the API's status for an overload.
const overloaded = 529

func limits(status int) bool { return status == http.StatusTooManyRequests || status == overloaded }

// The CLI's own delays before a retry: the first one, which doubles each time, and the maximum jitter. A
// longer delay was requested by the API.
const (
	firstDelay = 500 * time.Millisecond
	moreDelay  = 1.25
)

// refused returns the limit that caused a retry. With its watchdog, the CLI never gives up on a limit.
// After the CLI's usual number of retries, the event has no Again, so that coven handles the limit.
func (l line) refused() []provider.Event {
	if !limits(l.ErrorStatus) {
		return nil
	}
	delay := time.Duration(l.RetryDelay * float64(time.Millisecond))
	limit := provider.Limit{Reason: l.Reason, Status: l.ErrorStatus}
	if l.Attempt <= l.MaxRetries {
		limit.Again = delay
	}
	if own := float64(firstDelay) * math.Pow(2, float64(l.Attempt-1)) * moreDelay; float64(delay) > own {
		limit.After = delay
	}
	return []provider.Event{limit}
}

// rateLimit is the CLI's report about a change of a subscriber's limits.
type rateLimit struct {
	Status   string  `json:"status"` // allowed, allowed_warning, rejected
	ResetsAt float64 `json:"resetsAt"`
	Type     string  `json:"rateLimitType"`  // five_hour, seven_day, ...
	Overage  bool    `json:"isUsingOverage"` // requests are served despite the status rejected
}

func (r rateLimit) events() []provider.Event {
	if r.Status != "rejected" || r.Overage {
		return nil
	}
	limit := provider.Limit{Reason: cmp.Or(r.Type, "rate_limit"), Status: http.StatusTooManyRequests}
	if r.ResetsAt > 0 {
		limit.Until = time.Unix(int64(r.ResetsAt), 0)
	}
	return []provider.Event{limit}
}
