package config

import (
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/yamldoc"
)

// limits is the limits section of a file.
type limits struct {
	MaxWait  yamldoc.At[time.Duration] `yaml:"max_wait" about:"how long a task waits for a rate limit; 6h"`
	SameCall yamldoc.At[int]           `yaml:"same_call" about:"how often in a row an agent may make the same call with the same result; 5, 0: off"`
}

// over returns the limits of a file on top of the previous ones.
func (l limits) over(doc *yamldoc.Document, before Limits) Limits {
	if l.SameCall.Set() && (l.SameCall.Value < 0 || l.SameCall.Value == 1) {
		doc.Fail(l.SameCall, fmt.Sprintf("%d is neither 0 (off) nor at least 2", l.SameCall.Value), "")
	}
	return Limits{MaxWait: l.MaxWait.Or(before.MaxWait), SameCall: l.SameCall.Or(before.SameCall)}
}
