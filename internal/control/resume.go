package control

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/budget"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/control/agents"
	"github.com/coven-run/coven/internal/control/handover"
	"github.com/coven-run/coven/internal/control/planning"
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/exit"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/internal/task/holder"
	"github.com/coven-run/coven/internal/text/shellword"
	"github.com/coven-run/coven/plugins"
)

// ResumeRequest asks to continue the session of a task.
type ResumeRequest struct {
	Task    string
	Seen    session.View  // as in ApproveRequest
	Brought bool          // Bring has just brought the session here
	Budget  budget.Amount // added to the budgets in effect where the session waits
	Switch  Switch
}

// Switch is a change of the provider and the model of a session. Empty fields do not change.
type Switch struct {
	Provider string
	Model    string
}

// CheckSwitch returns an error if agents of the provider of a switch may not run here.
func (c *Controller) CheckSwitch(ctx context.Context, to Switch) error {
	if to.Provider == "" {
		return nil
	}
	return c.AllowsProvider(ctx, to.Provider)
}

// in returns the part of a switch that changes a session. The agents of another provider need its own model.
func (w Switch) in(v session.View, cfg config.Config) Switch {
	if w.Provider == v.Info.Provider {
		w.Provider = ""
	}
	if w.Provider != "" {
		w.Model = cmp.Or(w.Model, project.ModelOf(w.Provider, cfg))
	}
	return w
}

// Resume continues the session of a task. A step that blocked it runs again.
func (c *Controller) Resume(ctx context.Context, r ResumeRequest) (Outcome, error) {
	v, err := c.requested(ctx, r)
	if errors.As(err, new(*handover.LandedError)) {
		return c.resume(ctx, v, r.Budget, r.Switch)
	}
	plain := c.Fleet != nil && r.Budget == (budget.Amount{}) && r.Switch == (Switch{})
	if held := (*handover.HeldError)(nil); errors.As(err, &held) && plain {
		return c.followHeld(ctx, held.Remote, held.Task)
	}
	if err == nil {
		err = Refusal(OpResume, v)
	}
	if err == nil {
		err = c.admitSession(ctx, v)
	}
	if err == nil && v.Pull != nil {
		err = c.forge().Ask(ctx, *v.Pull)
	}
	if err != nil {
		return Outcome{}, err
	}
	done, err := c.resume(ctx, v, r.Budget, r.Switch)
	if plain && v.Info.Remote != "" && (errors.Is(err, session.ErrBusy) || errors.As(err, new(*ChangedError)) || errors.As(err, new(*handover.TakenError))) {
		return c.followHeld(ctx, v.Info.Remote, v.Task)
	}
	return done, err
}

// requested returns the session that a request is about.
func (c *Controller) requested(ctx context.Context, r ResumeRequest) (session.View, error) {
	if r.Brought {
		return c.Project.Find(ctx, r.Task)
	}
	return c.sessionOf(ctx, r.Task, r.Seen)
}

// Backlog lists the sessions that coven resume works on.
type Backlog struct {
	Requests   []ResumeRequest // one for each session
	OverBudget []session.View  // sessions that have spent their own budget
	Damaged    []session.View  // unreadable sessions
	Unchanged  []session.View  // sessions whose pull request has not changed
	Host       error           // of pull requests; nil if it has answered
}

// ToResume returns the sessions to resume: those of the named tasks, or without names those that can be
// resumed unattended. more is added to their budgets.
func (c *Controller) ToResume(ctx context.Context, names []string, more budget.Amount) (Backlog, error) {
	if len(names) == 0 {
		return c.backlog(ctx, more)
	}
	var b Backlog
	for _, name := range names {
		v, err := c.Project.Find(ctx, name)
		if err != nil {
			return Backlog{}, err
		}
		if !slices.ContainsFunc(b.Requests, func(r ResumeRequest) bool { return r.Task == v.Task }) {
			b.Requests = append(b.Requests, ResumeRequest{Task: v.Task, Budget: more})
		}
	}
	return b, nil
}

// backlog returns the sessions that wait to be resumed, the oldest first.
func (c *Controller) backlog(ctx context.Context, more budget.Amount) (Backlog, error) {
	views, err := Sessions(c.Project)
	today, noDay := c.Project.Ledger.Today()
	var b Backlog
	changed, host := c.ChangedPulls(ctx, views, true)
	b.Host = host
	moved := handover.Moved(ctx, c.Project, views)
	unattended, away := c.unattended(ctx, today)
	b.Requests = unattended
	for _, v := range slices.Backward(views) {
		switch {
		case slices.ContainsFunc(unattended, func(r ResumeRequest) bool { return r.Task == v.Task }):
		case v.Away != nil && v.Away.Landed != "", slices.ContainsFunc(moved, func(other session.View) bool { return other.ID == v.ID }):
			b.Requests = append(b.Requests, ResumeRequest{Task: v.Task, Seen: v})
		case v.WaitsForHost() && !slices.ContainsFunc(changed, func(other session.View) bool { return other.ID == v.ID }):
			b.Unchanged = append(b.Unchanged, v)
		case v.Status == session.Damaged:
			b.Damaged = append(b.Damaged, v)
		case v.Status == session.Waiting && overBudget(v, today) && more == (budget.Amount{}):
			b.OverBudget = append(b.OverBudget, v)
		case v.Status == session.Interrupted, v.Status == session.Waiting && !WaitsForReview(v) && !WaitsForMessage(v):
			b.Requests = append(b.Requests, ResumeRequest{Task: v.Task, Seen: v, Budget: more})
		}
	}
	return b, errors.Join(err, noDay, away)
}

// overBudget reports whether a session waits because its own budget is spent, not that of a coven run, or today's budget of the
// repository.
func overBudget(v session.View, today budget.Day) bool {
	if v.WaitsForDay() {
		return today.Spent() != ""
	}
	return v.Reason == event.WaitBudget && v.More != ""
}

// admitSession returns an error if the plugins of a session may not run. It may ask a person.
func (c *Controller) admitSession(ctx context.Context, v session.View) error {
	needs, err := project.NeedsOfSession(v.Dir)
	if err != nil {
		return err
	}
	if c.Ask == nil {
		return c.Project.CheckPlugins(needs)
	}
	return c.Ask(ctx, needs)
}

// checkSession returns an error if the plugins of a session may not run.
func (c *Controller) checkSession(v session.View) error {
	needs, err := project.NeedsOfSession(v.Dir)
	if err != nil {
		return err
	}
	return c.Project.CheckPlugins(needs)
}

// resume continues a session. more is added to the budgets in effect where it waits.
func (c *Controller) resume(ctx context.Context, v session.View, more budget.Amount, to Switch) (Outcome, error) {
	to = to.in(v, c.Project.Config)
	again := event.Resumed{Budget: more, Provider: to.Provider, Model: to.Model}
	if more != (budget.Amount{}) {
		again.At = v.WaitsAt
	}
	if v.Status == session.Blocked || v.Status == session.Failed {
		again.Retry = v.Failing
	}
	return c.resumeAt(ctx, v, again)
}

// resumeAt continues a session. It discards the recorded results that retry names.
func (c *Controller) resumeAt(ctx context.Context, v session.View, retry event.Resumed) (Outcome, error) {
	defer c.park()()
	s, err := c.openForWriting(v)
	if err != nil {
		return Outcome{}, err
	}
	defer s.Close() //nolint:errcheck // every event is on disk
	return c.resumeTaken(ctx, s, v, retry)
}

// resumeTaken continues a session that this process has opened.
func (c *Controller) resumeTaken(ctx context.Context, s *session.Session, v session.View, retry event.Resumed) (Outcome, error) {
	item, err := c.ItemOf(v)
	if err != nil {
		return Outcome{}, err
	}
	v.Dir = s.Dir // the view of an open session lacks it
	plan, err := c.planOf(ctx, v, &retry)
	if err != nil {
		return Outcome{}, err
	}
	v.Info = v.Info.Switched(retry)
	if err := c.checkResumed(ctx, plan, v, retry); err != nil {
		return Outcome{}, err
	}
	s.Hide(c.Runtime.secrets)
	if err := c.unstack(s, &v, plan); err != nil {
		return Outcome{}, err
	}
	// A new claim prevents others from replacing one that looks expired.
	if _, err := c.workspace(s, item.Task.ID, v.Info).Claim(ctx); err != nil {
		return Outcome{}, err
	}
	stopped := v.Status == session.Blocked || v.Status == session.Failed
	if stopped || len(s.Journal.Of(event.AgentStarted)) == 0 {
		err := c.reclaim(ctx, item, v)
		if stopped && err != nil || errors.As(err, new(*task.ClaimedError)) { // otherwise it has its claim, or has just landed
			return Outcome{}, err
		}
	}
	retry.Holder, retry.Sandbox = holder.Name(), string(c.Runtime.Sandbox.Level())
	if err := s.Append(event.Event{Type: event.SessionResumed}, retry); err != nil {
		return Outcome{}, err
	}
	if len(retry.Settings) > 0 {
		if err := planning.Freeze(s, plan); err != nil {
			return Outcome{}, err
		}
	}
	return c.work(ctx, s, item, plan, v.Info)
}

// planOf returns the plan with which a session continues, and sets the settings that are new in it.
func (c *Controller) planOf(ctx context.Context, v session.View, retry *event.Resumed) (*grimoires.Plan, error) {
	renew := len(retry.Settings) > 0
	plan, changed, err := planning.Resumed(ctx, c.Project, v, renew)
	if renew && err == nil {
		retry.Settings, retry.Limit = changed, plan.Grimoire.Budget.Amount
	} else if len(changed) > 0 {
		c.notify(Notice{Task: v.Task, Text: planning.Text(changed) + ": it continues with the old ones", Next: newSettings(v)})
	}
	return plan, err
}

// newSettings returns the command that continues a session with the present settings.
func newSettings(v session.View) string {
	return "coven retry " + shellword.Word(v.Task) + " --new-settings"
}

// checkResumed returns why a session cannot continue with its present provider.
func (c *Controller) checkResumed(ctx context.Context, frozen *grimoires.Plan, v session.View, again event.Resumed) error {
	plan := *frozen
	plan.Provider, plan.Model = v.Info.Provider, v.Info.Model
	if again.Provider != "" || again.Model != "" {
		if err := c.switchRefusal(v); err != nil {
			return err
		}
	}
	if err := c.Project.CheckPlugins(project.NeedsOf(plan.Grimoire, plan.Provider)); err != nil {
		return err
	}
	if err := c.checkTrust(&plan); err != nil {
		return err
	}
	if err := c.checkProviders(ctx, &plan); err != nil {
		return err
	}
	if err := c.checkSandbox(ctx, resumeUnsandboxed); err != nil {
		return err
	}
	if again.From || !atLanding(v) {
		return c.preflight(ctx, &plan)
	}
	return nil
}

// switchRefusal returns why a session cannot change to a provider and a model.
func (c *Controller) switchRefusal(v session.View) error {
	if v.Info.Chat {
		return exit.Usagef(ChatCommand(v.ID), "session %s is a chat: it keeps its provider and its model", v.ID)
	}
	if !c.Project.IsBuiltin(plugins.NeedOf(v.Info.Provider)) {
		return nil
	}
	return agents.CheckModel(v.Info.Provider, v.Info.Model)
}

// atLanding reports whether a session has reached the step that lands its change. Then it needs no agent,
// unless the landing finds conflicts.
func atLanding(v session.View) bool {
	return len(v.Steps) > 0 && v.Steps[len(v.Steps)-1].Kind == "merge"
}

// reclaim claims the task of a session in its tracker again: it was blocked, or released because no agent had begun.
func (c *Controller) reclaim(ctx context.Context, item project.Item, v session.View) error {
	err := c.claimTask(ctx, item, holder.ActorIn(v), v.Info.StackedOn)
	if claimed := (*task.ClaimedError)(nil); errors.As(err, &claimed) {
		return exit.Personf("coven cancel "+shellword.Word(v.Task), "%w", err)
	}
	if status := (*task.StatusError)(nil); errors.As(err, &status) && status.Status == task.StatusClosed {
		return exit.Personf("coven cancel "+shellword.Word(v.Task), "task %s has been closed in the tracker", v.Task)
	}
	return err
}
