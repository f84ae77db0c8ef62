package task

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Claim claims a task for actor. The program's own claim is a transaction, so only one
// of several claims succeeds. It ignores blockers, so coven checks them first. A task
// that is blocked only by its status is opened first.
func (c *CLI) Claim(ctx context.Context, id, actor string, despite ...string) (Task, error) {
	if actor == "" {
		return Task{}, errors.New("claim a task: no actor given")
	}
	t, err := c.claimable(ctx, id, actor, despite)
	if err != nil || held(t, actor) {
		return t, err
	}
	if t.Status == StatusBlocked {
		if _, err := c.change(ctx, "--actor="+actor, "update", "--status="+StatusOpen, "--json", "--", id); err != nil {
			return Task{}, c.notFound(id, err)
		}
	}
	out, err := c.change(ctx, "--actor="+actor, "update", "--claim", "--json", "--", id)
	if err == nil {
		return c.after(ctx, t, out)
	}
	if failed := (*ProgramError)(nil); !errors.As(err, &failed) || failed.ExitCode < 0 {
		return Task{}, err
	}
	// Either the claim failed, or it succeeded and the program failed later. The task
	// shows which is true.
	now, why := c.claimable(ctx, id, actor, despite)
	if why != nil || held(now, actor) {
		return now, why
	}
	return Task{}, claimError(id, err)
}

func held(t Task, actor string) bool { return t.Status == StatusInProgress && t.Assignee == actor }

// claimable reads a task, and returns an error if actor cannot claim it.
func (c *CLI) claimable(ctx context.Context, id, actor string, despite []string) (Task, error) {
	t, g, err := c.look(ctx, id)
	if err != nil || held(t, actor) {
		return t, err
	}
	if t.Status == StatusOpen || t.Status == StatusBlocked {
		if t, g, err = c.family(ctx, t, g); err != nil {
			return Task{}, err
		}
	}
	if err := claimable(g, t, actor, despite); err != nil {
		return Task{}, err
	}
	return t, nil
}

// claimError converts the program's error about a failed claim. The task has
// changed again since then.
func claimError(id string, err error) error {
	failed := (*ProgramError)(nil)
	if errors.As(err, &failed) {
		if m := claimed.FindStringSubmatch(failed.Message); m != nil {
			return &ClaimedError{ID: id, Owner: strings.TrimSpace(m[1])}
		}
		if _, status, ok := strings.Cut(failed.Message, "not claimable: status "); ok {
			return &StatusError{ID: id, Status: strings.TrimSpace(status)}
		}
	}
	return err
}

// after returns the task after a change: its known state, updated from the program's
// answer. If the answer is unusable, the task is read again.
func (c *CLI) after(ctx context.Context, t Task, out *output) (Task, error) {
	answered, err := out.tasks()
	if err != nil || len(answered) != 1 || answered[0].ID != t.ID {
		return c.Get(ctx, t.ID)
	}
	is := answered[0]
	t.Status, t.Assignee, t.Notes, t.CloseReason = is.Status, is.Assignee, is.Notes, is.CloseReason
	t.UpdatedAt, t.StartedAt, t.ClosedAt = is.UpdatedAt, is.StartedAt, is.ClosedAt
	return t, nil
}

// Close closes a task, even if it is blocked. The program cannot check
// the assignee in the same command, so coven checks it just before. A reason of more
// than 64 KiB is truncated.
func (c *CLI) Close(ctx context.Context, id, actor, reason string) (Task, error) {
	t, _, err := c.look(ctx, id)
	if err != nil {
		return Task{}, err
	}
	reason = argument(reason)
	if t.Status == StatusClosed && (reason == "" || t.CloseReason == reason) {
		return t, nil
	}
	if err := checkOwner(t, actor); err != nil && t.Status != StatusClosed {
		return Task{}, err
	}
	args := as(actor, "close", "--json")
	if reason != "" {
		args = append(args, "--reason="+reason)
	}
	out, err := forced(func(flags ...string) (*output, error) {
		return c.change(ctx, slices.Concat(args, flags, []string{"--", id})...)
	})
	if err != nil {
		return Task{}, c.notFound(id, err)
	}
	return c.after(ctx, t, out)
}

// forced runs a command, and runs it again with --force if the program refuses it without.
func forced(run func(flags ...string) (*output, error)) (*output, error) {
	out, err := run()
	if failed := (*ProgramError)(nil); errors.As(err, &failed) && forceable.MatchString(failed.Message) {
		return run("--force")
	}
	return out, err
}

// as adds the flag for the actor in the program's history.
func as(actor string, args ...string) []string {
	if actor == "" {
		return args
	}
	return append([]string{"--actor=" + actor}, args...)
}

// Block sets a task's status to blocked, removes its assignee and appends note, in one
// command.
func (c *CLI) Block(ctx context.Context, id, actor, note string) (Task, error) {
	return c.unassign(ctx, id, actor, note, func(t Task) (string, bool) {
		return StatusBlocked, t.Status == StatusBlocked && t.Assignee == ""
	})
}

// Release removes a task's assignee and opens the task if it was in progress or
// blocked, in one command.
func (c *CLI) Release(ctx context.Context, id, actor, note string) (Task, error) {
	return c.unassign(ctx, id, actor, note, func(t Task) (string, bool) {
		if t.Status == StatusInProgress || t.Status == StatusBlocked {
			return StatusOpen, false
		}
		return t.Status, t.Assignee == ""
	})
}

// Note appends note to a task's notes. The program cannot check the assignee in the
// same command, so coven checks it just before.
func (c *CLI) Note(ctx context.Context, id, actor, note string) (Task, error) {
	note = argument(note)
	t, _, err := c.look(ctx, id)
	if err != nil || noted(t.Notes, note) {
		return t, err
	}
	if err := checkOwner(t, actor); err != nil {
		return Task{}, err
	}
	out, err := c.append(ctx, t, as(actor, "update", "--json"), note)
	if err != nil {
		return Task{}, c.notFound(id, err)
	}
	return c.after(ctx, t, out)
}

// unassign removes a task's assignee. to returns the new status, and whether the task
// needs no other change.
func (c *CLI) unassign(ctx context.Context, id, actor, note string, to func(Task) (string, bool)) (Task, error) {
	note = argument(note)
	t, _, err := c.look(ctx, id)
	if err != nil {
		return Task{}, err
	}
	// A single command claims and changes the task, so that the program checks the owner again in
	// a transaction. If that fails, the task is read again.
	for _, checked := range []bool{c.kind == BD && actor != "" && held(t, actor), false} {
		status, done := to(t)
		if t.Status == StatusClosed || done && noted(t.Notes, note) {
			return t, nil
		}
		if err := checkOwner(t, actor); err != nil {
			return Task{}, err
		}
		var out *output
		out, err = c.update(ctx, t, actor, status, note, checked)
		if err == nil {
			return c.after(ctx, t, out)
		}
		if failed := (*ProgramError)(nil); !checked || !errors.As(err, &failed) || failed.ExitCode < 0 {
			break
		}
		if t, _, err = c.look(ctx, id); err != nil {
			return Task{}, err
		}
	}
	return Task{}, c.notFound(id, err)
}

// update sets the status and a note, and removes the assignee. A person may remove that of another's claim.
func (c *CLI) update(ctx context.Context, t Task, actor, status, note string, checked bool) (*output, error) {
	args := as(actor, "update", "--json", "--assignee=")
	if status != t.Status {
		args = append(args, "--status="+status)
	}
	if checked {
		args = append(args, "--claim")
	}
	run := func(flags ...string) (*output, error) {
		if noted(t.Notes, note) {
			return c.change(ctx, slices.Concat(args, flags, []string{"--", t.ID})...)
		}
		return c.append(ctx, t, slices.Concat(args, flags), note)
	}
	if actor == "" {
		return forced(run)
	}
	return run()
}

// append runs a command that changes a task and appends a note.
func (c *CLI) append(ctx context.Context, t Task, args []string, note string) (*output, error) {
	id := []string{"--", t.ID}
	out, err := c.change(ctx, slices.Concat(args, []string{"--append-notes=" + note}, id)...)
	if unknownFlag(err) {
		all := strings.TrimPrefix(t.Notes+"\n"+note, "\n")
		return c.change(ctx, slices.Concat(args, []string{"--notes=" + argument(all)}, id)...)
	}
	return out, err
}

// argument makes a text usable as an argument: valid UTF-8 without NUL, which
// databases do not accept either, and within the system's size limit.
func argument(text string) string {
	const note = "\n[cut by coven: the whole text is in its session]"
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText-len(note)], "") + note
	}
	return text
}

// Add adds a task. The create command includes the dependencies, so that the task
// never appears to be ready before they are set. If that fails, they are added
// afterwards.
func (c *CLI) Add(ctx context.Context, n New) (Task, error) {
	if err := n.check(); err != nil {
		return Task{}, err
	}
	for _, text := range []string{n.Title, n.Description, checklist(n.Acceptance), n.Type, strings.Join(n.Labels, ",")} {
		if err := c.checkArgument(text); err != nil {
			return Task{}, err
		}
	}
	after := unique(n.After)
	for _, id := range after {
		if _, err := c.Get(ctx, id); err != nil {
			return Task{}, err
		}
	}
	args, err := n.arguments(after)
	if err != nil {
		return Task{}, err
	}
	out, err := c.change(ctx, args...)
	if failed := (*ProgramError)(nil); errors.As(err, &failed) && invalid.MatchString(failed.Message) {
		return Task{}, fmt.Errorf("%w: %s", ErrInvalid, failed.Message)
	}
	if err != nil {
		return Task{}, err
	}
	made, err := out.tasks()
	if err != nil || len(made) != 1 {
		return Task{}, fmt.Errorf("the task may have been added: %w", errors.Join(err, out.notIssues()))
	}
	if len(after) == 0 {
		return made[0], nil
	}
	return c.ensureDependencies(ctx, made[0].ID, after)
}

// ensureDependencies ensures that a new task depends on others.
func (c *CLI) ensureDependencies(ctx context.Context, id string, after []string) (Task, error) {
	t, err := c.Get(ctx, id)
	if err != nil {
		return Task{}, err
	}
	for _, on := range after {
		if slices.Contains(t.DependsOn, Dependency{ID: on, Type: "blocks"}) {
			continue
		}
		if _, err := c.change(ctx, "dep", "add", "--json", "--", id, on); err != nil {
			return t, fmt.Errorf("task %s was added, but does not depend on %s: %w", id, on, err)
		}
		t.DependsOn = append(t.DependsOn, Dependency{ID: on, Type: "blocks"})
	}
	return t, nil
}

// arguments returns the command that adds a task. No text in it can be mistaken for a
// flag.
func (n New) arguments(after []string) ([]string, error) {
	args := []string{"create", "--json", "--title=" + n.Title, "--priority=" + strconv.Itoa(n.Priority)}
	if n.Type != "" {
		args = append(args, "--type="+n.Type)
	}
	if n.Description != "" {
		args = append(args, "--description="+inputSafe(n.Description))
	}
	if len(n.Acceptance) > 0 {
		args = append(args, "--acceptance="+checklist(n.Acceptance))
	}
	if len(n.Labels) > 0 {
		list, err := commas(unique(n.Labels))
		if err != nil {
			return nil, err
		}
		args = append(args, "--labels="+list)
	}
	plain := slices.DeleteFunc(slices.Clone(after), func(id string) bool { return strings.ContainsAny(id, ":,\"\n ") })
	if len(plain) > 0 {
		args = append(args, "--deps="+strings.Join(plain, ","))
	}
	return args, nil
}

// commas formats words as a CSV list for a flag.
func commas(words []string) (string, error) {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.Write(words); err != nil {
		return "", fmt.Errorf("%w: labels: %w", ErrInvalid, err)
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n"), w.Error()
}
