package accounts

import (
	"context"
	"time"

	"github.com/coven-run/coven/internal/budget/limits"
	"github.com/coven-run/coven/internal/control/fleet"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/plugins/provider"
)

// Others are the other machines that use the accounts of this one. The zero value knows none.
type Others struct {
	Worker *fleet.Worker // knows the limits that they have met; may be nil
	Logins *Logins
}

// Limited returns the limit of a provider's account that another machine has met, and reports whether it is in force.
func (o Others) Limited(ctx context.Context, provider string) (limits.Limit, bool) {
	if o.Worker == nil {
		return limits.Limit{}, false
	}
	until := o.Worker.Limit(ctx, o.Logins.Identity(provider))
	return limits.Limit{Until: clock.Here(until).Round(0), Told: true, Reason: "met on another machine"}, until.After(time.Now())
}

// Tell lets them know a limit of a provider's account, if the API has reported when it ends.
func (o Others) Tell(provider string, met provider.Limit) {
	until := met.Until
	if until.IsZero() {
		until = time.Now().Add(met.After)
	}
	if o.Worker != nil && until.After(time.Now()) {
		o.Worker.Limited(o.Logins.Identity(provider), until)
	}
}
