package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/control/accounts"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/doctor/programversion"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/process/clock"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/plugins"
	"github.com/coven-run/coven/plugins/builtin"
	"github.com/coven-run/coven/worktree"
)

// CLIError reports an agent CLI that cannot be started. Nothing was claimed.
type CLIError struct {
	Program string
	Err     error
	Next    string
}

// Error implements error.
func (e *CLIError) Error() string {
	if errors.Is(e.Err, programversion.ErrMissing) {
		return fmt.Sprintf("the agent CLI %s is not installed: it is %v", e.Program, e.Err)
	}
	if errors.As(e.Err, new(*accounts.LoginError)) {
		return fmt.Sprintf("no more tasks start: %v", e.Err)
	}
	return fmt.Sprintf("the agent CLI %s cannot be started: %v", e.Program, e.Err)
}

// Unwrap returns the cause, such as programversion.ErrMissing.
func (e *CLIError) Unwrap() error { return e.Err }

// CommandExit returns exit.Usage.
func (e *CLIError) CommandExit() int { return exit.Usage }

// NextCommand returns the command that helps.
func (e *CLIError) NextCommand() string { return e.Next }

// Preflight returns a *CLIError if an agent CLI that the tasks need cannot be started, and an error if there
// is no sandbox and the user has not accepted this. Callers use it before they
// start several tasks, to report the error once. It ignores grimoires that cannot be read: that error is
// reported when the task starts.
func (c *Controller) Preflight(ctx context.Context, todo []project.Item, o Options) error {
	var tasks []worktree.TaskTitle
	for _, item := range todo {
		tasks = append(tasks, worktree.TaskTitle{ID: item.Task.ID, Slug: session.Slug(item.Task.Title)})
	}
	if err := c.checkRepository(ctx, tasks...); err != nil {
		return err
	}
	checked := map[string]bool{}
	for _, item := range todo {
		choice, err := c.Project.GrimoireOf(item.Task, o.Grimoire)
		if err != nil || checked[choice.Grimoire] {
			continue
		}
		checked[choice.Grimoire] = true
		g, err := c.Project.Library.Load(choice.Grimoire)
		if err != nil {
			continue
		}
		if err := c.checkCLIs(ctx, g.Providers(cmp.Or(o.Provider, c.Project.Config.Provider))); err != nil {
			return err
		}
	}
	return nil
}

// checkRepository returns an error if the tasks cannot run in the repository: see checkSandbox, worktree.CheckBranches and
// worktree.CheckPlace.
func (c *Controller) checkRepository(ctx context.Context, tasks ...worktree.TaskTitle) error {
	if err := worktree.CheckBranches(ctx, c.Project.Repo, tasks...); err != nil {
		return err
	}
	if err := worktree.CheckPlace(c.Project.Repo, tasks...); err != nil {
		return err
	}
	return c.checkSandbox(ctx, runUnsandboxed)
}

// preflight returns a *CLIError if an agent CLI of a plan cannot be started, and an error as checkSandbox
// does.
func (c *Controller) preflight(ctx context.Context, plan *grimoires.Plan) error {
	if err := c.checkRepository(ctx, worktree.TaskTitle{ID: plan.Task.ID, Slug: session.Slug(plan.Task.Title)}); err != nil {
		return err
	}
	names := plan.Grimoire.Providers(plan.Provider)
	for _, providers := range agents.ReviewProviders(plan) {
		names = append(names, providers...)
	}
	return c.checkCLIs(ctx, names)
}

// preflightSession is preflight for the frozen plan of a session.
func (c *Controller) preflightSession(ctx context.Context, v session.View) error {
	plan, err := project.PlanOf(v.Dir)
	if err != nil {
		return err
	}
	return c.preflight(ctx, plan)
}

// WaitForAccounts makes sessions wait, and try again, while an account cannot be used. Otherwise they stop.
func (c *Controller) WaitForAccounts() { c.Runtime.providers.Accounts.Faults.Patient = true }

// usable returns an *accounts.Fault if the account of a provider cannot be used. If the process is patient, it waits instead.
func (c *Controller) usable(ctx context.Context, provider string) error {
	faults := &c.Runtime.providers.Accounts.Faults
	if !faults.Any() {
		return nil
	}
	traits, err := c.Runtime.providers.Traits(ctx, provider)
	if err != nil {
		return err
	}
	for fault := faults.Of(traits.Account); fault != nil; fault = faults.Of(traits.Account) {
		if !faults.Patient {
			return fault
		}
		if err := clock.SleepUntil(ctx, fault.Until()); err != nil {
			return err
		}
	}
	return nil
}

// checkCLIs checks that the CLIs of built-in providers are installed, and that the user is logged in.
// Plugins check their own programs. A CLI older than the tested version is reported once.
func (c *Controller) checkCLIs(ctx context.Context, providers []string) error {
	for _, name := range providers {
		if !c.Project.IsBuiltin(plugins.NeedOf(name)) {
			continue
		}
		cli, ok := builtin.CLIOf(name)
		login := c.Runtime.logins.Refused(name)
		if err := c.usable(ctx, name); err != nil {
			return err
		}
		switch {
		case login != nil && ok:
			return &CLIError{Program: cli.Program, Err: login, Next: login.Login}
		case login != nil:
			return login
		case !ok: // coven's own loop
			if err := c.Runtime.logins.Check(name); err != nil {
				return err
			}
			continue
		}
		if _, checked := c.Runtime.started.Load(name); checked {
			continue
		}
		line, err := programversion.Cache{Dir: c.Project.Env.CacheDir()}.Of(ctx, cli.Program)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, programversion.ErrMissing):
			return &CLIError{Program: cli.Program, Err: err, Next: cli.Install()}
		case err != nil:
			return &CLIError{Program: cli.Program, Err: err, Next: cli.Program + " --version"}
		}
		if err := c.Runtime.logins.Check(name); err != nil {
			return err
		}
		if _, reported := c.Runtime.started.LoadOrStore(name, true); !reported {
			c.warnVersion(cli, line)
		}
	}
	return nil
}

// warnVersion warns the user of a CLI that is older than the tested version.
func (c *Controller) warnVersion(cli builtin.AgentCLI, line string) {
	switch older, known := programversion.OlderThan(line, cli.Tested); {
	case !known:
		c.notify(Notice{Text: fmt.Sprintf("warning: %s does not print its version", cli.Program), Next: cli.Program + " --version"})
	case older:
		c.notify(Notice{Text: fmt.Sprintf("warning: %s %s is older than %s, the version that coven is tested with", cli.Program, line, cli.Tested), Next: cli.Install()})
	}
}
