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
	"github.com/coven-run/coven/runner"
)

// Notification is what a notice is told, in its environment and on standard input.
type Notification struct {
	Task    string `json:"task"`
	Title   string `json:"title"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	Next    string `json:"next"`
	Session string `json:"session"`
	Commit  string `json:"commit"`
}

// environment is the news as variables.
func (n Notification) environment() []string {
	return []string{
		"COVEN_TASK=" + n.Task, "COVEN_TITLE=" + n.Title, "COVEN_STATE=" + n.State, "COVEN_REASON=" + n.Reason,
		"COVEN_DETAIL=" + n.Detail, "COVEN_NEXT=" + n.Next, "COVEN_SESSION=" + n.Session, "COVEN_COMMIT=" + n.Commit,
	}
}

// noticeTime bounds how long a notice may take.
const noticeTime = 30 * time.Second

// announce runs the user's commands that want to know how a session ended. The
// run may be over because a person stopped it: that is told too.
func (d *Controller) announce(ctx context.Context, j project.Item, s *session.Session, e runner.Outcome) {
	n := Notification{
		Task: j.Task.ID, Title: j.Task.Title, State: string(e.Status), Reason: string(e.Reason), Detail: oneline.Of(e.Detail),
		Next: e.Next, Session: s.ID, Commit: e.Commit,
	}
	d.TellOthers(ctx, n)
}

func (d *Controller) TellOthers(ctx context.Context, n Notification) {
	n.Title, n.Detail, n.Next = d.Project.Hidden(n.Title), d.Project.Hidden(n.Detail), d.Project.Hidden(n.Next)
	for _, hook := range d.Project.Config.Notify {
		if !wants(hook, n.State) {
			continue
		}
		if err := runNotice(context.WithoutCancel(ctx), d.Project.Env, hook.Command, n); err != nil {
			d.notify(Notice{Task: n.Task, Text: "warning: notify: " + oneline.Of(err.Error())})
		}
	}
}

func wants(n config.Notice, state string) bool {
	if len(n.On) == 0 {
		return state != string(session.Interrupted)
	}
	return slices.Contains(n.On, state)
}

// runNotice runs one command. It is the user's own, outside every fence; what it
// leaves running is ended with its group.
func runNotice(ctx context.Context, e *project.Environment, command string, n Notification) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	input, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the news: %w", err)
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
