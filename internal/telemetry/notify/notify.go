// Package notify runs the user's notification commands when a task changes its state.
package notify

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
	"github.com/coven-run/coven/internal/event"
	"github.com/coven-run/coven/internal/terminal"
	"github.com/coven-run/coven/internal/text/oneline"
)

// Notification is passed to a command in its environment and as JSON on standard input.
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

// environment returns the notification as environment variables.
func (n Notification) environment() []string {
	return []string{
		"COVEN_TASK=" + n.Task, "COVEN_TITLE=" + n.Title, "COVEN_STATE=" + n.State, "COVEN_REASON=" + n.Reason,
		"COVEN_DETAIL=" + n.Detail, "COVEN_NEXT=" + n.Next, "COVEN_SESSION=" + n.Session, "COVEN_COMMIT=" + n.Commit,
	}
}

// hookTime limits the running time of a command.
const hookTime = 30 * time.Second

// Run runs the commands that are configured for a notification's state, with the user's environment. It returns
// the errors as lines.
func Run(ctx context.Context, commands []config.Notice, environ []string, n Notification) (problems []string) {
	for _, hook := range commands {
		if !wants(hook, n.State) {
			continue
		}
		if err := run(ctx, environ, hook.Command, n); err != nil {
			problems = append(problems, oneline.Of(err.Error()))
		}
	}
	return problems
}

func wants(n config.Notice, state string) bool {
	if len(n.On) == 0 {
		return state != string(event.StatusInterrupted)
	}
	return slices.Contains(n.On, state)
}

// run runs one command. It is the user's own command and runs outside of any sandbox. Its
// process group is killed at the timeout.
func run(ctx context.Context, environ []string, command string, n Notification) error {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	input, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode the notification: %w", err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env, cmd.Stdin = append(environ, n.environment()...), bytes.NewReader(append(input, '\n'))
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &said, &said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, terminal.LastLines(strings.TrimSpace(said.String())))
	}
	return nil
}
