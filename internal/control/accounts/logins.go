package accounts

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coven-run/coven/internal/driver"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/sandbox/forwarder"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/plugins/builtin/endpoint"
	"github.com/coven-run/coven/plugins/pluginerr"
	"github.com/coven-run/coven/plugins/provider"
)

// Logins finds the credentials of the user, for all agents of a process. Agents get none of
// them: their requests are forwarded.
type Logins struct {
	Getenv func(string) string // of the user

	mu    sync.Mutex
	found *forwarder.Login

	refused sync.Map // *LoginError by the name of the provider
}

// Refuse records that an API refused the login of a provider.
func (l *Logins) Refuse(login *LoginError) { l.refused.Store(login.Provider, login) }

// Refused returns the error of a provider whose login an API has refused, or nil.
func (l *Logins) Refused(name string) *LoginError {
	if login, ok := l.refused.Load(name); ok {
		return login.(*LoginError)
	}
	return nil
}

// find returns the login of the user, or nil if it cannot be forwarded. Without one, the error
// is a *LoginError.
func (l *Logins) find() (*forwarder.Login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found != nil {
		return l.found, nil
	}
	found, err := forwarder.Find(l.Getenv, l.Getenv("HOME"))
	switch {
	case errors.Is(err, forwarder.ErrNotForwarded):
		return nil, nil //nolint:nilnil // the agents get the variables
	case errors.Is(err, forwarder.ErrNoLogin):
		return nil, NoLogin("claude")
	case err != nil:
		return nil, fmt.Errorf("find the login of claude: %w", err)
	}
	l.found = found
	return found, nil
}

// NoLogin returns the error for an agent CLI without a credential.
func NoLogin(name string) *LoginError {
	cli, _ := builtin.CLIOf(name)
	return &LoginError{Provider: name, Reason: name + " is not logged in", Login: cli.Login}
}

// Check returns a *LoginError if a provider needs a login that the user does not have.
func (l *Logins) Check(name string) error {
	if api, ok := builtin.APIOf(name); ok {
		return checkAPI(name, api, l.Getenv)
	}
	if name != "claude" {
		return nil
	}
	_, err := l.find()
	return err
}

// Identity returns an opaque name of the account that agents of a provider use, which is the same on all machines with its login. It is empty if the account
// cannot be identified.
func (l *Logins) Identity(name string) string {
	if api, ok := builtin.APIOf(name); ok {
		return api.Identity(l.Getenv)
	}
	if name != "claude" {
		return ""
	}
	login, err := l.find()
	if login == nil || err != nil {
		return ""
	}
	return login.Identity()
}

// checkAPI returns why agents of the loop cannot ask an API.
func checkAPI(name string, api endpoint.API, getenv func(string) string) error {
	err := api.Check(getenv)
	if errors.Is(err, pluginerr.ErrLogin) {
		why, login := api.Refused(getenv)
		return &LoginError{Provider: name, Reason: why, Login: login}
	}
	if err != nil {
		return exit.Usagef("export "+api.BaseURL+"=...", "%w", err)
	}
	return nil
}

// Forward starts the forwarder of an API for an agent. It is nil if the agent must get the
// user's credential.
func (l *Logins) Forward(ctx context.Context, api string, report func(error)) (driver.Forwarder, error) {
	if api != provider.ForwardAnthropic {
		return nil, fmt.Errorf("the provider plugin wants coven to forward %q, which coven does not know", api)
	}
	login, err := l.find()
	if login == nil || err != nil {
		return nil, err
	}
	f, err := forwarder.Start(context.WithoutCancel(ctx), forwarder.Options{Login: login, Report: report})
	if err != nil {
		return nil, err
	}
	return forwarded{f, login}, nil
}

// forwarded is a forwarder with the login that it holds back.
type forwarded struct {
	*forwarder.Forwarder
	login *forwarder.Login
}

// Withholds implements driver.Forwarder.
func (f forwarded) Withholds(name string) bool { return f.login.Withholds(name) }
