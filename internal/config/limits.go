package config

import (
	"fmt"
	"time"

	"github.com/coven-run/coven/internal/yamldoc"
)

// limits is Limits as a file has them.
type limits struct {
	MaxWait  yamldoc.At[time.Duration] `yaml:"max_wait"`
	SameCall yamldoc.At[int]           `yaml:"same_call"`
}

// over are the limits that a file gives over those from before.
func (l limits) over(doc *yamldoc.Document, before Limits) Limits {
	if l.SameCall.Set() && (l.SameCall.Value < 0 || l.SameCall.Value == 1) {
		doc.Fail(l.SameCall, fmt.Sprintf("%d is not 0 (off) and not 2 or more", l.SameCall.Value), "")
	}
	return Limits{MaxWait: l.MaxWait.Or(before.MaxWait), SameCall: l.SameCall.Or(before.SameCall)}
}
