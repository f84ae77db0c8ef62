package runner

import (
	"time"

	"github.com/coven-run/coven/internal/event"
)

// Wait is the error of a leaf that cannot continue yet, because it waits for a person, a rate limit, a
// budget or the checkout. The leaf has no recorded result and is called again on resume.
type Wait struct {
	Reason  event.WaitReason
	Detail  string
	Next    string    // the coven command that continues: approve, resume
	Command string    // another command that continues, such as git push; replaces Next
	More    string    // the amount to add to a budget: usd=+5
	Other   string    // another provider that can continue; may be empty
	Until   time.Time // the earliest time to resume; zero means any time
}

func (w *Wait) Error() string { return "waiting (" + string(w.Reason) + "): " + w.Detail }
