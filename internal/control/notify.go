package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coven-run/coven/internal/config"
	"github.com/coven-run/coven/internal/oneline"
	"github.com/coven-run/coven/internal/project"
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
)

// notification is what a notify command gets, in its environment and on standard input.
type notification struct {
	Task    string `json:"task"`
	Title   string `json:"title"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	Next    string `json:"next"`
	Session string `json:"session"`
	Commit  string `json:"commit"`
}

// environment returns the notification as variables.
func (n notification) environment() []string {
	return []string{
		"COVEN_TASK=" + n.Task, "COVEN_TITLE=" + n.Title, "COVEN_STATE=" + n.State, "COVEN_REASON=" + n.Reason,
		"COVEN_DETAIL=" + n.Detail, "COVEN_NEXT=" + n.Next, "COVEN_SESSION=" + n.Session, "COVEN_COMMIT=" + n.Commit,
	}
}

// hookTime bounds how long a notify command may take.
const hookTime = 30 * time.Second

// notifyEnded runs the user's notify commands after a session has stopped, also after an
// interrupt.
func (c *Controller) notifyEnded(ctx context.Context, item project.Item, o Outcome) {
	n := notification{
		Task: item.Task.ID, Title: item.Task.Title, State: string(o.Status), Reason: string(o.Reason), Detail: oneline.Of(o.Detail),
		Next: o.Next, Session: o.Session, Commit: o.Commit,
	}
	c.runHooks(ctx, n)
}

// runHooks runs the user's notify commands for a notification.
func (c *Controller) runHooks(ctx context.Context, n notification) {
	n.Title, n.Detail, n.Next = c.Project.Hidden(n.Title), c.Project.Hidden(n.Detail), c.Project.Hidden(n.Next)
	for _, hook := range c.Project.Config.Notify {
		if !wants(hook, n.State) {
			continue
		}
		if err := runNotice(context.WithoutCancel(ctx), c.Project.Env, hook.Command, n); err != nil {
			c.notify(Notice{Task: n.Task, Text: "warning: notify: " + oneline.Of(err.Error())})
		}
	}
}

func wants(n config.Notice, state string) bool {
	if len(n.On) == 0 {
		return state != string(session.Interrupted)
	}
	return slices.Contains(n.On, state)
}

// runNotice runs one command. It is the user's own and runs outside every fence. Its
// process group is killed when its time is up.
func runNotice(ctx context.Context, e *project.Environment, command string, n notification) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	input, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the notification: %w", err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env, cmd.Stdin = append(e.Environ(), n.environment()...), bytes.NewReader(append(input, '\n'))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, terminal.LastLines(strings.TrimSpace(said.String())))
	}
	return nil
}
