// Command coven-arbiter-majority is an arbiter plugin: the loop continues while more
// than half of the reviewers fail the change.
//
// The option share sets another percentage than 50.
package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/arbiter"
	"github.com/coven-run/coven/plugins/hostservice"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/reviewer"
)

func main() { plugins.Serve(plugins.Arbiter(majority{})) }

type majority struct{}

// Decide implements arbiter.Arbiter.
func (majority) Decide(_ context.Context, q arbiter.Question, _ hostservice.Services) (arbiter.Decision, error) {
	share := 50
	for key, value := range q.Options {
		n, err := strconv.Atoi(value)
		if key != "share" || err != nil || n < 0 || n > 100 {
			return arbiter.Decision{}, fmt.Errorf("%s %q: the only option is share, a number from 0 to 100: %w", key, value, pluginerr.ErrInvalid)
		}
		share = n
	}
	against := 0
	for _, o := range q.Opinions {
		if o.Verdict == reviewer.Fail {
			against++
		}
	}
	return arbiter.Decision{
		Continue: against*100 > share*len(q.Opinions),
		Reason:   fmt.Sprintf("%d of %d reviewers say fail", against, len(q.Opinions)),
	}, nil
}
