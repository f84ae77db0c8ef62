package main

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
	"github.com/coven-run/coven/internal/session"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/runner"
)

// news is what a notice is told, in its environment and on standard input.
type news struct {
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
func (n news) environment() []string {
	return []string{
		"COVEN_TASK=" + n.Task, "COVEN_TITLE=" + n.Title, "COVEN_STATE=" + n.State, "COVEN_REASON=" + n.Reason,
		"COVEN_DETAIL=" + n.Detail, "COVEN_NEXT=" + n.Next, "COVEN_SESSION=" + n.Session, "COVEN_COMMIT=" + n.Commit,
	}
}

// noticeTime bounds how long a notice may take.
const noticeTime = 30 * time.Second

// announce runs the user's commands that want to know how a session ended. The
// run may be over because a person stopped it: that is told too.
func (d *desk) announce(ctx context.Context, j job, s *session.Session, e runner.Outcome) {
	n := news{
		Task: j.task.ID, Title: j.task.Title, State: string(e.Status), Reason: string(e.Reason), Detail: oneline.Of(e.Detail),
		Next: e.Next, Session: s.ID, Commit: e.Commit,
	}
	d.tellOthers(ctx, n)
}

func (d *desk) tellOthers(ctx context.Context, n news) {
	n.Title, n.Detail, n.Next = d.house.hidden(n.Title), d.house.hidden(n.Detail), d.house.hidden(n.Next)
	for _, hook := range d.house.config.Notify {
		if !wants(hook, n.State) {
			continue
		}
		if err := d.house.env.runNotice(context.WithoutCancel(ctx), hook.Command, n); err != nil {
			d.notify(notice{task: n.Task, text: "warning: notify: " + oneline.Of(err.Error())})
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
func (e *env) runNotice(ctx context.Context, command string, n news) error {
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	input, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the news: %w", err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env, cmd.Stdin = append(e.environ(), n.environment()...), bytes.NewReader(append(input, '\n'))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, terminal.LastLines(strings.TrimSpace(said.String())))
	}
	return nil
}
