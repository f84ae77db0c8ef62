package accounts

import (
	"context"
	"testing"
	"time"

	"github.com/coven-run/coven/plugins/provider"
)

// late is a provider that answers when it is let.
type late struct {
	provider.Provider
	asked, let chan struct{}
}

func (l late) Command(context.Context, provider.Request) (provider.Command, error) {
	close(l.asked)
	<-l.let
	return provider.Command{Account: "late", Gated: true}, nil
}

// An agent does not wait for the plugin of another agent's provider.
func TestAccountsOfOthers(t *testing.T) {
	a := NewAccounts(t.TempDir())
	slow := late{asked: make(chan struct{}), let: make(chan struct{})}
	first := make(chan Traits, 1)
	go func() {
		known, _ := a.of(t.Context(), "slow", slow)
		first <- known
	}()
	<-slow.asked
	quick := late{asked: make(chan struct{}), let: make(chan struct{})}
	close(quick.let)
	second := make(chan error, 1)
	go func() {
		_, err := a.of(t.Context(), "quick", quick)
		second <- err
	}()
	select {
	case err := <-second:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("one plugin waits for the other")
	}
	close(slow.let)
	if known := <-first; known.Account != "late" {
		t.Errorf("%+v", known)
	}
	if known, err := a.of(t.Context(), "slow", nil); err != nil || known.Account != "late" {
		t.Errorf("%+v, %v", known, err)
	}
}
