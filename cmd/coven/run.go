package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coven-run/coven/grimoires"
	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/task"
	"github.com/coven-run/coven/worktree"
)

type runOptions struct {
	app *app

	tasks       []string
	prompt      string
	max         int
	grimoire    string
	provider    string
	model       string
	onto        string
	base        string
	autoApprove bool
	yes         bool
	json        bool
}

func newRun(a *app) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run [TASK...]",
		Short: "Run tasks: each in its own worktree, checked, reviewed and landed",
		Long: `Run tasks, one at a time. Without TASK: all that are ready, the most urgent
first. With -p: a task of your own words, which needs no tracker.

The agent works in a worktree of its own. When it is done and the checks pass,
coven asks for your approval and lands the change on the branch that you have
checked out. Uncommitted files of yours stay as they are.`,
		Example: `  coven run -p "add a --version flag"
  coven run bd-12
  coven run --auto-approve -n 3`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.tasks = args
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.prompt, "prompt", "p", "", "run this `TEXT` as a task")
	f.IntVarP(&o.max, "max", "n", 0, "run at most `N` ready tasks (0: all)")
	f.StringVar(&o.grimoire, "grimoire", "", "the workflow to run; none: just the agent")
	f.StringVar(&o.provider, "provider", "", "who drives the agents (default claude)")
	f.StringVar(&o.model, "model", "", "the model of the agents (default sonnet)")
	f.StringVar(&o.onto, "onto", "", "the `BRANCH` to land on (default: the one checked out)")
	f.StringVar(&o.base, "base", "", "the `REF` to start from (default: the target's tip)")
	f.BoolVar(&o.autoApprove, "auto-approve", false, "land without asking, once the checks pass")
	f.BoolVar(&o.yes, "yes", false, "do not ask before many tasks are run")
	f.BoolVar(&o.json, "json", false, "print events as JSON lines")
	return cmd
}

// manyTasks is how many tasks are run without asking first.
const manyTasks = 5

func (o *runOptions) run(ctx context.Context) error {
	if o.prompt != "" && len(o.tasks) > 0 {
		return usage("", "give tasks or -p, not both")
	}
	h, err := o.app.open(ctx)
	if err != nil {
		return err
	}
	target, err := h.repo.Target(ctx, o.onto)
	if err != nil {
		return err
	}
	todo, err := o.choose(ctx, h)
	if err != nil {
		return err
	}
	if len(todo) == 0 {
		return o.app.say("no task is ready\n  next: coven task add TITLE, or coven run -p \"...\"\n")
	}
	if ok, err := o.confirm(ctx, len(todo)); err != nil || !ok {
		return err
	}
	e, err := h.start()
	if err != nil {
		return err
	}
	defer e.close()
	d := &desk{house: h, engine: e, json: o.json, approve: o.approver()}
	if err := o.preface(ctx, d, target); err != nil {
		return err
	}
	return o.runAll(ctx, d, target, todo)
}

// approver is who the record says has approved, when nobody is asked.
func (o *runOptions) approver() string {
	if o.autoApprove {
		return "--auto-approve"
	}
	return ""
}

// choose returns the tasks to run, in order.
func (o *runOptions) choose(ctx context.Context, h *house) ([]job, error) {
	if o.prompt != "" {
		return o.ownWords(h)
	}
	if len(o.tasks) > 0 {
		return h.named(ctx, o.tasks)
	}
	tracker, err := h.tasks()
	if err != nil {
		return nil, err
	}
	ready, err := tracker.Ready(ctx)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, t := range ready {
		if o.max > 0 && len(jobs) == o.max {
			break
		}
		jobs = append(jobs, job{task: t, tracker: tracked{file: tracker, id: t.ID}})
	}
	return jobs, nil
}

// ownWords makes a task of the user's own words.
func (o *runOptions) ownWords(h *house) ([]job, error) {
	if strings.TrimSpace(o.prompt) == "" {
		return nil, usage("", "the prompt is empty")
	}
	title, _, _ := strings.Cut(strings.TrimSpace(o.prompt), "\n")
	slug := "p-" + session.Slug(title)
	id := slug
	for n := 2; ; n++ {
		_, err := session.OfTask(h.repo.Root, id)
		if errors.Is(err, session.ErrNone) {
			break
		}
		if err != nil {
			return nil, err
		}
		id = fmt.Sprintf("%s-%d", slug, n)
	}
	t := task.Task{ID: id, Title: title, Description: o.prompt}
	if t.Description == title {
		t.Description = ""
	}
	return []job{{task: t, tracker: untracked{}}}, nil
}

// named looks up the tasks that the user named: in the tracker, or among those
// of the user's own words.
func (h *house) named(ctx context.Context, ids []string) ([]job, error) {
	var jobs []job
	for _, id := range ids {
		j, err := h.wordsOf(id)
		if errors.Is(err, session.ErrNone) {
			j, err = h.tracked(ctx, id)
		}
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

func (h *house) tracked(ctx context.Context, id string) (job, error) {
	tracker, err := h.tasks()
	if err != nil {
		return job{}, err
	}
	t, err := tracker.Get(ctx, id)
	return job{task: t, tracker: tracked{file: tracker, id: id}}, err
}

// wordsOf finds a task of the user's own words by its session: ErrNone when the
// id is not one of those.
func (h *house) wordsOf(id string) (job, error) {
	v, err := session.OfTask(h.repo.Root, id)
	if err != nil {
		return job{}, err
	}
	if v.Info.Tracker != untrackedName {
		return job{}, session.ErrNone
	}
	frozen, err := session.Plan(v.Dir)
	if err != nil {
		return job{}, err
	}
	plan, err := grimoires.ReadPlan(frozen)
	if err != nil {
		return job{}, err
	}
	t := task.Task{ID: id, Title: plan.Task.Title, Description: plan.Task.Description}
	return job{task: t, tracker: untracked{}}, nil
}

// confirm asks once before many tasks are run.
func (o *runOptions) confirm(ctx context.Context, count int) (bool, error) {
	if count <= manyTasks || o.yes || !o.app.interactive || o.json {
		return true, nil
	}
	answer, err := o.app.ask(ctx, fmt.Sprintf("Run %d tasks, one after another, with no limit on cost? [y]es [n]o ", count))
	return strings.HasPrefix(answer, "y"), err
}

// preface says what the user should know before agents work.
func (o *runOptions) preface(ctx context.Context, d *desk, target worktree.Target) error {
	if o.json {
		return nil
	}
	lines := []string{"shell commands are not fenced yet: an agent's Bash can reach what you can"}
	uncommitted, err := d.house.repo.Uncommitted(ctx)
	if err != nil {
		return err
	}
	if len(uncommitted) > 0 {
		lines = append(lines, "uncommitted files that agents will not see: "+nameSome(uncommitted))
	}
	checks, found := d.house.checks()
	switch {
	case len(checks) == 0:
		lines = append(lines, "NO CHECKS: nothing says how to test this repository, so nothing is tested before it lands (set checks in .coven/config.yaml)")
	case len(found) > 0:
		lines = append(lines, "checks found: "+strings.Join(found, ", "))
	}
	lines = append(lines, "landing on "+target.Branch)
	for _, line := range lines {
		if err := o.app.say("%s\n", printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// checks are the configured checks, or those that coven finds; found says
// where it found them.
func (h *house) checks() (checks, found []string) {
	if h.config.Checks != nil {
		return h.config.Checks, nil
	}
	return config.DetectChecks(h.repo.Root)
}

// runAll runs tasks one after another and returns with the worst exit code.
func (o *runOptions) runAll(ctx context.Context, d *desk, target worktree.Target, todo []job) error {
	code := exitOK
	for _, j := range todo {
		err := o.runOne(ctx, d, target, j)
		d.app().explain(err)
		code = worse(code, codeOf(err))
		if ctx.Err() != nil {
			break
		}
	}
	return status(code)
}

// runOne goes on with the task's session, or begins a new one.
func (o *runOptions) runOne(ctx context.Context, d *desk, target worktree.Target, j job) error {
	prior, err := session.OfTask(d.house.repo.Root, j.task.ID)
	switch {
	case errors.Is(err, session.ErrNone):
	case err != nil:
		return err
	case prior.Status == session.Running:
		return person(d.command("status"), "task %s: another coven is working on it", j.task.ID)
	case prior.Status == session.Waiting, prior.Status == session.Interrupted, prior.Status == session.Blocked:
		return d.resume(ctx, prior)
	}
	target, err = d.house.repo.Target(ctx, target.Branch) // the task before has moved it
	if err != nil {
		return err
	}
	return d.begin(ctx, j, prior, o.choices(target))
}

func (o *runOptions) choices(target worktree.Target) choices {
	return choices{
		grimoire: o.grimoire, provider: o.provider, model: o.model, target: target, base: o.base,
	}
}

// nameSome names the first few of a list.
func nameSome(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}
